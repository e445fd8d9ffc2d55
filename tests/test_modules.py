"""The torch module: thin, stateless, and right wherever people put it."""

import copy
import pickle

import numpy as np
import pytest
import torch
from oracle import cos_sin, paper_omega

from posenc import sinusoidal_encoding
from posenc.modules import SinusoidalEncoding


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
    assert "dim=8, base=500, layout='concatenated'" in repr(module)


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda: SinusoidalEncoding(5), ValueError, "dim must be even, got 5"),
        (lambda: SinusoidalEncoding(4, base=-1), ValueError, "base must be positive and finite"),
        (lambda: SinusoidalEncoding(4, layout="x"), ValueError, "layout must be 'interleaved' or"),
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
    ],
)
def test_bad_input_gets_one_clear_sentence(make, error, sentence):
    """Catches a broadcast over the wrong axis, and errors from the inside."""
    with pytest.raises(error, match=sentence):
        make()
