"""The package against transformers: ALiBi of BLOOM and MPT, T5's buckets, offset tables."""

import numpy as np
import pytest
import torch
from transformers import BartConfig, OPTConfig, RobertaConfig, T5Config
from transformers.models.bart.modeling_bart import BartLearnedPositionalEmbedding
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor
from transformers.models.opt.modeling_opt import OPTLearnedPositionalEmbedding
from transformers.models.roberta.modeling_roberta import RobertaEmbeddings
from transformers.models.t5.modeling_t5 import T5Attention

from posenc import alibi_bias, alibi_slopes, t5_bucket
from posenc.learned import positions_from_mask, row_offset
from posenc.modules import LearnedEncoding, T5Bias

RNG = np.random.default_rng(0)
HEADS = (1, 2, 3, 8, 12, 16, 40, 71, 112)


@pytest.mark.parametrize("heads", HEADS)
def test_blooms_bias_is_ours_up_to_a_constant_in_each_row(heads):
    """Catches other slopes or another order of them, and a bias that falls towards the query."""
    mask = torch.ones(2, 30, dtype=torch.int64)
    theirs = build_alibi_tensor(mask, heads, torch.float32).reshape(2, heads, 1, 30)
    slopes = torch.tensor(alibi_slopes(heads)).float()
    ours = alibi_bias(slopes, torch.arange(30).expand(2, -1), torch.arange(30).expand(2, -1))
    row = ours - theirs  # BLOOM's form is slope * key
    constant = -slopes[:, None, None] * torch.arange(30)[:, None]
    assert (row - constant).abs().max() <= 8e-6


@pytest.mark.parametrize("heads", HEADS)
def test_blooms_padding_counts_as_our_positions_do(heads):
    """Catches positions that count padding: BLOOM takes them from the mask."""
    mask = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])
    theirs = build_alibi_tensor(mask, heads, torch.float32).reshape(2, heads, 5)
    positions = positions_from_mask(mask)
    slopes = torch.tensor(alibi_slopes(heads)).float()
    ours = alibi_bias(slopes, torch.zeros(2, 1, dtype=torch.int64), positions)[:, :, 0]
    seen = mask[:, None, :].bool().expand_as(ours)
    assert (ours - theirs)[seen].abs().max() <= 2e-6


@pytest.mark.parametrize("heads", HEADS)
def test_mpts_bias_is_ours_at_the_last_query(heads):
    """Catches slopes for other numbers of heads: MPT cuts a longer list, and it comes out equal."""
    theirs = build_mpt_alibi_tensor(heads, 50)
    slopes = torch.tensor(alibi_slopes(heads)).float()
    ours = alibi_bias(slopes, torch.tensor([49]), torch.arange(50))
    torch.testing.assert_close(ours, theirs, rtol=3e-7, atol=0)


@pytest.mark.parametrize("both", (False, True))
def test_t5s_buckets_are_ours(both):
    """Catches a sign, a boundary, and a dtype that wraps, over all distances that matter."""
    relative = torch.arange(-3000, 3001).reshape(17, 353)
    theirs = T5Attention._relative_position_bucket(relative, bidirectional=both)
    assert torch.equal(t5_bucket(relative, bidirectional=both), theirs)


@pytest.mark.parametrize("both", (False, True))
def test_t5s_buckets_of_other_sizes_are_ours_but_at_exact_powers(both):
    """Catches sizes mixed up; a float32 logarithm may miss a boundary that is an exact power."""
    apart = 0
    for _ in range(200):
        size = {"num_buckets": 2 * int(RNG.integers(2, 65))}
        size["max_distance"] = size["num_buckets"] + int(RNG.integers(1, 5000))
        relative = torch.tensor(RNG.integers(-6000, 6001, size=500))
        theirs = T5Attention._relative_position_bucket(relative, bidirectional=both, **size)
        ours = t5_bucket(relative, bidirectional=both, **size)
        before = t5_bucket(relative - relative.sign(), bidirectional=both, **size)
        differ = ours != theirs
        assert torch.equal(theirs[differ], before[differ])  # theirs opens one token later
        apart += int(differ.sum())
    assert apart <= 20


@pytest.mark.parametrize("both", (False, True))
def test_t5s_bias_is_ours_in_prefill_and_in_decoding(both):
    """Catches heads and buckets exchanged, and a query whose position is not the cache's length."""
    config = T5Config(d_model=16, d_kv=4, num_heads=4, is_decoder=not both)
    theirs = T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
    ours = T5Bias(4, bidirectional=both)
    ours.load_state_dict(theirs.relative_attention_bias.state_dict())
    assert torch.equal(ours(range(40), range(40)), theirs.compute_bias(40, 40)[0])
    last = theirs.compute_bias(1, 40, past_seen_tokens=39)[0]
    assert torch.equal(ours([39], range(40)), last)


def test_opts_table_is_ours():
    """Catches OPT's two rows forgotten, and padding that takes a token's row."""
    config = OPTConfig()
    theirs = OPTLearnedPositionalEmbedding(config.max_position_embeddings, 8)
    ours = LearnedEncoding(config.max_position_embeddings + 2, 8, offset=row_offset("opt"))
    ours.load_state_dict(theirs.state_dict())
    mask = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])
    assert torch.equal(ours(positions_from_mask(mask)), theirs(mask))
    last = config.max_position_embeddings - 1
    assert torch.equal(ours([last])[0], theirs.weight[-1])


def test_barts_table_is_ours():
    """Catches BART's two rows forgotten, and the last usable position."""
    config = BartConfig()
    theirs = BartLearnedPositionalEmbedding(config.max_position_embeddings, 8)
    ours = LearnedEncoding(config.max_position_embeddings + 2, 8, offset=row_offset("bart"))
    ours.load_state_dict(theirs.state_dict())
    ids = torch.zeros(1, 5, dtype=torch.int64)
    for start in (0, 7, 1019):
        assert torch.equal(ours(range(start, start + 5)), theirs(ids, start)[0])


@pytest.mark.parametrize("padding_idx", (0, 1, 3))
def test_robertas_rows_are_ours(padding_idx):
    """Catches positions that start at 0, or at the padding index itself."""
    ids = torch.tensor(RNG.integers(0, 5, size=(20, 11)))
    theirs = RobertaEmbeddings.create_position_ids_from_input_ids(ids, padding_idx)
    ours = positions_from_mask(ids != padding_idx) + row_offset("roberta", padding_idx=padding_idx)
    assert torch.equal(ours, theirs)
    config = RobertaConfig(max_position_embeddings=514)
    assert config.max_position_embeddings - row_offset("roberta") == 512
