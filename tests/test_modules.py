"""The torch modules: thin, right wherever people put them, stateless but for what they learn."""

import copy
import pickle

import numpy as np
import pytest
import torch
from oracle import cos_sin, paper_omega

from posenc import alibi_bias, alibi_slopes, sinusoidal_encoding, t5_bucket
from posenc.learned import positions_from_mask, row_offset
from posenc.modules import ALiBi, LearnedEncoding, SinusoidalEncoding, T5Bias


def rows(positions, dim=4):
    cos, sin = cos_sin(list(positions), paper_omega(dim))
    return torch.as_tensor(np.stack([sin, cos], axis=-1).reshape(len(cos), dim)).float()


@pytest.mark.equation("eq-sinusoidal")
def test_time_is_the_last_axis_but_one():
    """Catches x[:T] on a batch-first input: golden value T40."""
    out = SinusoidalEncoding(4)(torch.zeros(2, 3, 4))
    assert torch.equal(out[0], out[1])
    assert torch.equal(out[0], rows(range(3)))
    assert torch.equal(SinusoidalEncoding(4)(torch.zeros(3, 4)), rows(range(3)))
    assert torch.equal(SinusoidalEncoding(4)(torch.zeros(2, 5, 3, 4))[1, 4], rows(range(3)))


@pytest.mark.parametrize("offset", (1, 9, 10**9, 2**63 - 11))
def test_prefill_and_decode_agree(offset):
    """Catches an offset that is ignored, off by one, or rounded through a float."""
    encode, x = SinusoidalEncoding(4), torch.zeros(1, 10, 4)
    whole = encode(x, offset=offset)
    steps = [encode(x[:, :1], offset=offset + t) for t in range(10)]
    assert torch.equal(whole, torch.cat(steps, dim=1))
    assert torch.equal(whole[0], rows(range(offset, offset + 10)))


@pytest.mark.parametrize("name", ("bfloat16", "float16", "float32", "float64"))
def test_the_sum_is_rounded_once_to_the_dtype_of_x(name):
    """Catches a float32 result for bfloat16 input, and a table rounded before the sum."""
    dtype = getattr(torch, name)
    x = torch.linspace(-3, 3, 400).reshape(1, 100, 4).to(dtype)
    out = SinusoidalEncoding(4)(x)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    table = sinusoidal_encoding(torch.arange(100), 4, dtype=wide)
    assert out.dtype == dtype
    assert torch.equal(out, (x.to(wide) + table).to(dtype))


def on_meta():
    with torch.device("meta"):
        return SinusoidalEncoding(4).to_empty(device="cpu")


@pytest.mark.parametrize(
    "treat",
    [
        lambda m: m.to(torch.bfloat16),
        lambda m: m.half(),
        copy.deepcopy,
        lambda m: pickle.loads(pickle.dumps(m)),
        lambda m: on_meta(),
    ],
    ids=("bfloat16", "half", "deepcopy", "pickle", "meta"),
)
def test_nothing_done_to_the_module_moves_its_angles(treat):
    """Catches buffers: cast, lost on the meta device, or expected in a checkpoint."""
    module = treat(SinusoidalEncoding(4))
    assert torch.equal(module(torch.zeros(1, 2000, 4))[0], rows(range(2000)))
    assert not module.state_dict()
    assert not list(module.parameters())


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")
@pytest.mark.parametrize(
    "offset", (True, 1.0, torch.tensor(True), torch.tensor(1.0), torch.tensor([1, 2, 3])), ids=str
)
def test_eager_and_compiled_refuse_the_same_offsets(offset):
    """Catches a batch of offsets broadcast over time, and a bool taken for 1, in a graph."""
    module, x = SinusoidalEncoding(4), torch.zeros(3, 1, 4)
    with pytest.raises(TypeError, match="offset must be an integer"):
        module(x, offset)
    torch._dynamo.reset()
    with pytest.raises(Exception, match="offset must be an integer"):
        torch.compile(module, backend="eager", fullgraph=True)(x, offset)


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")
@pytest.mark.parametrize("offset", (10**10, torch.tensor(10**10)), ids=("int", "tensor"))
def test_a_large_offset_is_exact_when_compiled(offset):
    """Catches positions of int32 or float32 in a graph."""
    torch._dynamo.reset()
    module, x = SinusoidalEncoding(4), torch.zeros(1, 2, 4)
    right = rows(range(10**10, 10**10 + 2))
    assert torch.equal(module(x, offset)[0], right)
    compiled = torch.compile(module, backend="eager", fullgraph=True)
    assert torch.equal(compiled(x, offset)[0], right)


def test_the_tables_of_an_older_checkpoint_are_passed_over():
    """Catches an unexpected key where other implementations stored their table."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), SinusoidalEncoding(4))
    stored = {**model.state_dict(), "1.pe": torch.zeros(5000, 1, 4)}
    model.load_state_dict(stored)
    assert torch.equal(model[1](torch.zeros(3, 4)), rows(range(3)))
    assert "1.pe" in stored
    with pytest.raises(RuntimeError, match="Unexpected key"):
        model.load_state_dict({**stored, "2.pe": torch.zeros(1)})


def test_the_table_is_made_where_x_lies():
    """Catches a table left on the CPU."""
    assert SinusoidalEncoding(4)(torch.zeros(3, 4, device="meta")).is_meta


def test_spacing_reaches_the_table():
    """Catches an option that is stored and never used: a tensor2tensor checkpoint needs it."""
    module = SinusoidalEncoding(8, layout="concatenated", spacing="endpoint")
    right = sinusoidal_encoding(range(5), 8, layout="concatenated", spacing="endpoint")
    assert torch.equal(module(torch.zeros(5, 8)), torch.from_numpy(right))


def test_gradients_pass_and_the_input_stays():
    """Catches an in-place sum."""
    x = torch.ones(2, 3, 4, requires_grad=True)
    SinusoidalEncoding(4)(x).sum().backward()
    assert torch.equal(x.grad, torch.ones(2, 3, 4))
    assert torch.equal(x.detach(), torch.ones(2, 3, 4))


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")
def test_compiled_in_one_graph_with_changing_length_and_offset():
    """Catches graph breaks, and a compilation for every new length or offset."""
    from torch._dynamo.testing import CompileCounter

    torch._dynamo.reset()
    counter = CompileCounter()
    encode = SinusoidalEncoding(4)
    compiled = torch.compile(encode, fullgraph=True, backend=counter)
    for length, offset in ((5, 0), (9, 3), (17, 100), (33, 7), (65, 9)):
        x = torch.zeros(2, length, 4)
        assert torch.equal(compiled(x, offset), encode(x, offset))
    assert counter.frame_count <= 3


def test_layout_and_base_reach_the_table():
    """Catches options that are stored and never used."""
    module = SinusoidalEncoding(8, base=500.0, layout="concatenated")
    right = sinusoidal_encoding(torch.arange(5), 8, base=500.0, layout="concatenated")
    assert torch.equal(module(torch.zeros(5, 8)), right)
    assert "dim=8, base=500, layout='concatenated', spacing='paper'" in repr(module)


@pytest.mark.equation("eq-learned")
def test_a_position_has_the_row_behind_its_offset():
    """Catches an offset that is ignored: RoBERTa's first token has row 2."""
    table = LearnedEncoding(514, 3, offset=row_offset("roberta"))
    assert torch.equal(table(range(512)), table.weight[2:])
    assert torch.equal(table(7), table.weight[9])
    assert torch.equal(
        table(torch.tensor([[0, 511]], dtype=torch.int16)), table.weight[[2, 513]][None]
    )
    padded = positions_from_mask(torch.tensor([[0, 0, 1, 1]]))
    assert torch.equal(table(padded), table.weight[[1, 1, 2, 3]][None])
    bert = LearnedEncoding(512, 3)
    assert torch.equal(bert(range(512)), bert.weight)


def test_only_rows_that_were_looked_up_learn():
    """Catches a gradient that is lost, doubled, or spread over the table."""
    table = LearnedEncoding(6, 2, offset=2)
    table(torch.tensor([0, 1, 1])).sum().backward()
    assert table.weight.grad[:, 0].tolist() == [0, 0, 1, 2, 0, 0]


@pytest.mark.parametrize(
    ("rows", "offset", "bad", "sentence"),
    [
        (
            512,
            0,
            512,
            r"0 ... 511: the table has 512 rows and offset 0, which serve 512 pos.*got 512",
        ),
        (514, 2, 512, r"-1 ... 511: the table has 514 rows and offset 2, which serve 512 pos"),
        (512, 0, -1, r"0 ... 511: .* got -1"),
        (514, 2, -2, r"-1 ... 511: .* got -2"),
    ],
)
def test_a_position_outside_the_table_raises_and_names_the_usable_length(
    rows, offset, bad, sentence
):
    """Catches an IndexError from the inside, a clamp, and a negative position that wraps."""
    table = LearnedEncoding(rows, 2, offset=offset)
    with pytest.raises(ValueError, match=sentence):
        table(torch.tensor([0, 1, bad]))


def cache_of(module):
    """A bias of one query after nine others, and of all ten."""
    return module(torch.tensor([9]), torch.arange(10)), module(torch.arange(10), torch.arange(10))


@pytest.mark.equation("eq-alibi", "eq-slopes")
@pytest.mark.parametrize("both", (False, True))
def test_alibi_is_its_functions_in_float32(both):
    """Catches slopes of another order, and a query that is counted from 0 in decoding."""
    last, whole = cache_of(ALiBi(6, bidirectional=both))
    right = alibi_bias(alibi_slopes(6), range(10), range(10), bidirectional=both)
    assert whole.dtype == torch.float32
    assert torch.equal(whole, torch.as_tensor(right).float())
    assert torch.equal(last, whole[:, 9:])
    assert ALiBi(6)(torch.arange(3, device="meta"), range(3)).is_meta


@pytest.mark.equation("eq-t5-bucket")
@pytest.mark.parametrize("both", (False, True))
def test_t5_looks_each_bucket_up(both):
    """Catches query minus key, heads for buckets, and a query counted from 0 in decoding."""
    module = T5Bias(4, bidirectional=both, num_buckets=16, max_distance=40)
    assert not module(range(3), range(3)).any()
    torch.nn.init.normal_(module.weight)
    last, whole = cache_of(module)
    distance = np.arange(10)[None, :] - np.arange(10)[:, None]
    bucket = t5_bucket(distance, bidirectional=both, num_buckets=16, max_distance=40)
    for head in range(4):
        assert torch.equal(whole[head], module.weight[:, head][bucket])
    assert torch.equal(last, whole[:, 9:])
    batch = torch.stack([torch.arange(10), torch.arange(10) * 3])
    assert torch.equal(module(batch, batch)[0], whole)
    far = module([2**63 - 1], [-(2**63), 0]) if both else module([2**63 - 1], [-(2**63)])
    assert torch.equal(far[:, 0, 0], module.weight[7 if both else 15])


def test_t5s_table_learns_and_its_dtype_is_widened():
    """Catches gradients lost, and a bias that meets the scores in 16 bits."""
    module = T5Bias(2, bidirectional=False).to(torch.bfloat16)
    bias = module(range(3), range(3))
    assert bias.dtype == torch.float32
    bias.sum().backward()
    assert module.weight.grad[:3, 1].tolist() == [6, 2, 1]
    assert T5Bias(2, bidirectional=True).double()(range(3), range(3)).dtype == torch.float64


@pytest.mark.parametrize(
    "treat",
    [
        lambda m: m.to(torch.bfloat16),
        lambda m: m.half(),
        copy.deepcopy,
        lambda m: pickle.loads(pickle.dumps(m)),
        lambda m: m.to("meta").to_empty(device="cpu"),
    ],
    ids=("bfloat16", "half", "deepcopy", "pickle", "meta"),
)
def test_nothing_done_to_alibi_moves_its_slopes(treat):
    """Catches slopes in a buffer: cast, lost on the meta device, or expected in a checkpoint."""
    module = treat(ALiBi(12))
    right = torch.as_tensor(alibi_slopes(12)).float()
    assert torch.equal(module([1], range(2))[:, 0, 0], -right)
    assert not module.state_dict()
    assert not list(module.parameters())


def test_a_default_device_moves_no_bias_and_no_row():
    """Catches tensors made where the default device is, not where the positions are."""
    modules = ALiBi(4), T5Bias(4, bidirectional=True), LearnedEncoding(5, 2)
    for module in modules:
        inputs = (range(3),) if isinstance(module, LearnedEncoding) else (range(3), range(4))
        right = module(*inputs)
        with torch.device("meta"):
            assert torch.equal(module(*inputs), right)


def test_a_table_on_the_meta_device_has_no_values_to_check():
    """Catches a check that reads a meta tensor."""
    assert LearnedEncoding(4, 2).to("meta")([0, 3]).shape == (2, 2)


def test_checkpoints_hold_the_learned_tables_alone():
    """Catches a buffer beside the weight, and a weight of another shape than transformers'."""
    for module, shape in (
        (LearnedEncoding(514, 8, offset=2), (514, 8)),
        (T5Bias(4, bidirectional=True), (32, 4)),
    ):
        assert {name: tuple(w.shape) for name, w in module.state_dict().items()} == {
            "weight": shape
        }
        other = torch.nn.Embedding(*shape)
        module.load_state_dict(other.state_dict())
        assert torch.equal(module.weight, other.weight)
    assert abs(LearnedEncoding(512, 64).weight.std() - 0.02) < 1e-3
    assert "offset=2" in repr(LearnedEncoding(514, 8, offset=2))
    assert "n_heads=4, bidirectional=True" in repr(ALiBi(4, bidirectional=True))
    assert "num_buckets=32, max_distance=128" in repr(T5Bias(4, bidirectional=True))


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")
@pytest.mark.parametrize(
    "make",
    [
        lambda: ALiBi(3),
        lambda: T5Bias(3, bidirectional=False),
        lambda: LearnedEncoding(99, 3, offset=2),
    ],
    ids=("alibi", "t5", "learned"),
)
def test_biases_and_tables_compile_in_one_graph(make):
    """Catches graph breaks, a compilation for every length, and a check that compiling drops."""
    from torch._dynamo.testing import CompileCounterWithBackend

    torch._dynamo.reset()
    counter, module = CompileCounterWithBackend("aot_eager"), make()
    compiled = torch.compile(module, fullgraph=True, backend=counter)
    for start, length in ((0, 5), (3, 9), (16, 17), (9, 33), (2, 65)):
        inputs = torch.arange(start, length), torch.arange(length)
        inputs = inputs[:1] if isinstance(module, LearnedEncoding) else inputs
        assert torch.equal(compiled(*inputs), module(*inputs))
    assert counter.frame_count <= 4
    if isinstance(module, LearnedEncoding):
        with pytest.raises(RuntimeError, match="which serve 97 positions"):
            compiled(torch.arange(60, 98))


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda: SinusoidalEncoding(5), ValueError, "dim must be even, got 5"),
        (lambda: SinusoidalEncoding(4, base=-1), ValueError, "base must be positive and finite"),
        (lambda: SinusoidalEncoding(4, layout="x"), ValueError, "layout must be 'interleaved' or"),
        (lambda: SinusoidalEncoding(4, spacing="x"), ValueError, "spacing must be 'paper' or"),
        (lambda: SinusoidalEncoding(4)(None), TypeError, "x must be a tensor, got NoneType"),
        (lambda: SinusoidalEncoding(4)(np.zeros((3, 4))), TypeError, "x must be a tensor, got nd"),
        (
            lambda: SinusoidalEncoding(4)(torch.zeros(3, 5)),
            ValueError,
            r"x must have shape \[..., T, 4\], got \[3, 5\]",
        ),
        (lambda: SinusoidalEncoding(4)(torch.zeros(4)), ValueError, r"x must have shape"),
        (
            lambda: SinusoidalEncoding(4)(torch.zeros(3, 4, dtype=torch.int64)),
            TypeError,
            "x must be of a floating dtype, got torch.int64",
        ),
        (
            lambda: SinusoidalEncoding(4)(torch.zeros(3, 4), offset=1.0),
            TypeError,
            "offset must be an integer, got float",
        ),
        (
            lambda: SinusoidalEncoding(4)(torch.zeros(3, 4), offset=2**63 - 2),
            ValueError,
            "positions must fit in int64",
        ),
        (lambda: LearnedEncoding(0, 4), ValueError, "rows must be at least 1, got 0"),
        (lambda: LearnedEncoding(4, 2, offset=-1), ValueError, "offset must be at least 0, got -1"),
        (
            lambda: ALiBi(4, bidirectional="no"),
            TypeError,
            "bidirectional must be True or False, got str",
        ),
        (
            lambda: T5Bias(4, bidirectional=1),
            TypeError,
            "bidirectional must be True or False, got int",
        ),
        (lambda: LearnedEncoding(4, 4.0), TypeError, "dim must be an integer, got float"),
        (
            lambda: LearnedEncoding(2, 4, offset=2),
            ValueError,
            "offset must be less than the 2 rows",
        ),
        (
            lambda: LearnedEncoding(4, 4)(torch.ones(2)),
            TypeError,
            "positions must be integers, got f",
        ),
        (
            lambda: LearnedEncoding(4, 4)(torch.arange(2, device="meta")),
            ValueError,
            "weight and positions must be on one device, got cpu and meta",
        ),
        (
            lambda: LearnedEncoding(4, 4)(np.arange(2)),
            TypeError,
            "weight and positions must both be NumPy's, or both torch's",
        ),
        (lambda: ALiBi(0), ValueError, "n_heads must be at least 1, got 0"),
        (lambda: ALiBi(2)(range(3), [0.0]), TypeError, "key_positions must be integers, got float"),
        (lambda: ALiBi(2)(range(3), range(2)), ValueError, "key_positions must not be fewer than"),
        (
            lambda: ALiBi(2)(np.arange(3), np.arange(3)),
            TypeError,
            "slopes and query_positions must both be NumPy's, or both torch's",
        ),
        (lambda: T5Bias(-1, bidirectional=True), ValueError, "n_heads must be at least 1, got -1"),
        (
            lambda: T5Bias(2, bidirectional=True, num_buckets=33),
            ValueError,
            "num_buckets must be even if bidirectional, got 33",
        ),
        (
            lambda: T5Bias(2, bidirectional=False)(range(3), range(2)),
            ValueError,
            "key_positions must not be fewer than query_positions",
        ),
        (
            lambda: T5Bias(2, bidirectional=True)(range(3), torch.arange(3, device="meta")),
            ValueError,
            "weight and key_positions must be on one device, got cpu and meta",
        ),
    ],
)
def test_bad_input_gets_one_clear_sentence(make, error, sentence):
    """Catches a broadcast over the wrong axis, and errors from the inside."""
    with pytest.raises(error, match=sentence):
        make()
