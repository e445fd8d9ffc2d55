"""Rotations against other implementations, on shapes drawn at random."""

import numpy as np
import onnx
import pytest
import rotary_embedding_torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator
from transformers import LlamaConfig
from transformers.models.cohere import modeling_cohere
from transformers.models.gpt_neox import modeling_gpt_neox
from transformers.models.gptj import modeling_gptj
from transformers.models.llama import modeling_llama
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
from x_transformers import x_transformers

from posenc import apply_rope, apply_rope_qk, frequencies, pairing_permutation, rope_tables

SHAPES = {
    "batch": st.integers(1, 3),
    "heads": st.integers(1, 4),
    "length": st.integers(1, 7),
    "half": st.integers(1, 8),
    "rest": st.integers(0, 3),
    "seed": st.integers(0, 10**6),
}
EVERY_SHAPE = given(**SHAPES)
SOME = settings(max_examples=40, deadline=None)
CLOSE = {"rtol": 0, "atol": 2e-6}


def draw(*shape, seed):
    return torch.as_tensor(np.random.default_rng(seed).normal(size=shape)).float()


def onnx_reference(x, cos_cache, sin_cache, position_ids, interleaved, rotary_dim):
    """RotaryEmbedding by ONNX's own reference evaluator, on x [B, H, S, D] in NumPy."""
    names = ["x", "cos", "sin", "ids"]
    options = {"interleaved": interleaved, "rotary_embedding_dim": rotary_dim}
    node = onnx.helper.make_node("RotaryEmbedding", names, ["y"], **options)
    arrays = zip(names, (x, cos_cache, sin_cache, position_ids), strict=True)
    return ReferenceEvaluator(node).run(None, dict(arrays))[0]


@pytest.mark.parametrize("interleaved", (False, True))
@pytest.mark.parametrize("real", (False, True), ids=("random tables", "real tables"))
@SOME
@EVERY_SHAPE
def test_onnx(interleaved, real, batch, heads, length, half, rest, seed):
    """Golden value T41: the specification's reference and torch's operator, 4-D and 3-D."""
    dim, rows = 2 * (half + rest), length + 5
    x = draw(batch, heads, length, dim, seed=seed)
    ids = torch.as_tensor(np.random.default_rng(seed).integers(0, rows, (batch, length)))
    if real:
        cos, sin = rope_tables(torch.arange(rows), frequencies(2 * half))
    else:
        cos, sin = draw(rows, half, seed=seed + 1), draw(rows, half, seed=seed + 2)
    how = {"interleaved": interleaved, "positions": ids}
    y = apply_rope(x, cos, sin, **how)
    arrays = (a.numpy() for a in (x, cos, sin, ids))
    reference = onnx_reference(*arrays, int(interleaved), 2 * half if rest else 0)
    np.testing.assert_allclose(y.numpy(), reference, **CLOSE)
    gathered = apply_rope(x, cos[ids], sin[ids], interleaved=interleaved)
    assert torch.equal(gathered, y)
    operator = torch.onnx.ops.rotary_embedding
    options = {"interleaved": interleaved, "rotary_embedding_dim": 2 * half if rest else 0}
    assert torch.allclose(operator(x, cos, sin, ids, **options), y, **CLOSE)
    assert torch.allclose(operator(x, cos[ids], sin[ids], **options), y, **CLOSE)
    if rest == 0:  # 3-D: [B, S, H * D]
        flat = x.transpose(1, 2).reshape(batch, length, heads * dim)
        theirs = operator(flat, cos, sin, ids, num_heads=heads, **options)
        ours = apply_rope(flat.unflatten(-1, (heads, dim)), cos, sin, position_axis=-3, **how)
        assert torch.allclose(theirs, ours.flatten(-2), **CLOSE)


@SOME
@EVERY_SHAPE
def test_transformers(batch, heads, length, half, rest, seed):
    """Llama (half-split), GPT-J and Cohere (interleaved), GPT-NeoX (half-split, partial)."""
    at = torch.as_tensor(np.random.default_rng(seed).integers(0, 4096, (batch, length)))
    cos, sin = rope_tables(at, frequencies(2 * half))
    twice, repeated = (
        [torch.cat([t, t], -1) for t in (cos, sin)],
        [t.repeat_interleave(2, -1) for t in (cos, sin)],
    )
    q = draw(batch, heads, length, 2 * half, seed=seed)
    k = draw(batch, 1, length, 2 * half, seed=seed + 1)
    split, woven = (apply_rope_qk(q, k, cos, sin, interleaved=i) for i in (False, True))
    for theirs, ours in zip(modeling_llama.apply_rotary_pos_emb(q, k, *twice), split, strict=True):
        assert torch.allclose(theirs, ours, **CLOSE)
    theirs = modeling_cohere.apply_rotary_pos_emb(q, k, *repeated)
    assert torch.allclose(theirs[0], woven[0], **CLOSE)
    theirs = modeling_gptj.apply_rotary_pos_emb(q.transpose(1, 2), sin, cos)
    ours = apply_rope(q.transpose(1, 2), cos, sin, interleaved=True, position_axis=-3)
    assert torch.allclose(theirs, ours, **CLOSE)
    wide = draw(batch, heads, length, 2 * (half + rest), seed=seed)
    theirs, _ = modeling_gpt_neox.apply_rotary_pos_emb(wide, wide, *twice)
    assert torch.allclose(theirs, apply_rope(wide, cos, sin, interleaved=False), **CLOSE)


@SOME
@EVERY_SHAPE
def test_complex_numbers_and_torchtunes_formula(batch, heads, length, half, rest, seed):
    """Meta's ``view_as_complex`` and torchtune's formula, on [B, T, H, D]."""
    cos, sin = rope_tables(torch.arange(length), frequencies(2 * half))
    x = draw(batch, length, heads, 2 * half, seed=seed)
    ours = apply_rope(x, cos, sin, interleaved=True, position_axis=-3)
    turning = torch.complex(cos, sin)[None, :, None]
    meta = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2)) * turning
    assert torch.allclose(torch.view_as_real(meta).flatten(3), ours, **CLOSE)
    pairs = x.reshape(*x.shape[:-1], -1, 2)
    c, s = cos[None, :, None], sin[None, :, None]
    tune = torch.stack(
        [pairs[..., 0] * c - pairs[..., 1] * s, pairs[..., 1] * c + pairs[..., 0] * s], -1
    )
    assert torch.allclose(tune.flatten(3), ours, **CLOSE)


def test_transformers_tables_agree_until_float32_fails():
    """Their angles are float32 products: right near 0, wrong by half a turn at 10**8."""
    config = LlamaConfig(hidden_size=128, num_attention_heads=1, head_dim=128)
    rope = LlamaRotaryEmbedding(config)
    base = config.rope_parameters["rope_theta"]
    for position, bound in ((100, 1e-5), (4095, 5e-4)):
        theirs = rope(torch.zeros(1), torch.tensor([[position]]))
        ours = rope_tables(torch.tensor([[position]]), frequencies(128, base))
        for a, b in zip(theirs, ours, strict=True):
            assert (a[..., :64] - b).abs().max() <= bound
    theirs = rope(torch.zeros(1), torch.tensor([[10**8]]))[0][..., :64]
    ours = rope_tables(torch.tensor([[10**8]]), frequencies(128, base))[0]
    assert (theirs - ours).abs().max() > 0.5


def test_a_converted_llama_head_has_the_same_scores():
    """Kind A. Catches a conversion that some other convention needs."""
    perm = torch.as_tensor(pairing_permutation(16, to_interleaved=True))
    q, k = draw(1, 2, 5, 16, seed=0), draw(1, 2, 5, 16, seed=1)
    cos, sin = rope_tables(torch.arange(5), frequencies(16))
    split = apply_rope_qk(q, k, cos, sin, interleaved=False)
    woven = apply_rope_qk(q[..., perm], k[..., perm], cos, sin, interleaved=True)
    assert torch.allclose(split[0] @ split[1].mT, woven[0] @ woven[1].mT, rtol=0, atol=1e-5)


@SOME
@EVERY_SHAPE
def test_rotary_embedding_torch(batch, heads, length, half, rest, seed):
    """Interleaved and partial, in float32, at positions that an offset starts."""
    width = 2 * half + 2  # theirs divides by width - 2
    rope = rotary_embedding_torch.RotaryEmbedding(width, cache_if_possible=False)
    x = draw(batch, heads, length, width + 2 * rest, seed=seed)
    offset = seed % 512
    theirs = rope.rotate_queries_or_keys(x, offset=offset)
    cos, sin = rope_tables(torch.arange(offset, offset + length), frequencies(width))
    ours = apply_rope(x, cos, sin, interleaved=True)
    # their angles are float32 products: half an ulp of the position, times the length of x
    assert torch.allclose(theirs, ours, rtol=0, atol=2e-6 + offset * 2.0**-22)


@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float16))
def test_rotary_embedding_torch_loses_positions_that_ours_keep(dtype):
    """Kind B. Positions in the dtype of x: theirs cannot tell 2049 from 2048."""
    rope = rotary_embedding_torch.RotaryEmbedding(8, cache_if_possible=False)
    x = draw(1, 1, 1, 8, seed=0).to(dtype)
    merged, kept = [], []
    for position in (2048, 2049):
        merged.append(rope.rotate_queries_or_keys(x, offset=position))
        table = rope_tables(torch.tensor([position]), frequencies(8))
        kept.append(apply_rope(x, *table, interleaved=True))
    assert torch.equal(*merged)
    assert (kept[0] - kept[1]).abs().max() > 0.1


@SOME
@EVERY_SHAPE
def test_x_transformers(batch, heads, length, half, rest, seed):
    """Interleaved and partial, in float32, at the first positions."""
    width = 2 * half + 2  # theirs divides by width - 2
    rope = x_transformers.RotaryEmbedding(width)
    x = draw(batch, heads, length, width + 2 * rest, seed=seed)
    angles, scale = rope.forward_from_seq_len(length)
    theirs = x_transformers.apply_rotary_pos_emb(x, angles, scale)
    cos, sin = rope_tables(torch.arange(length), frequencies(width))
    ours = apply_rope(x, cos, sin, interleaved=True)
    assert torch.allclose(theirs, ours, rtol=0, atol=4e-6)
