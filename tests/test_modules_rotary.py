"""RotaryEmbedding: the functions as a module, right wherever people put it."""

import copy
import pickle

import numpy as np
import pytest
import torch

from posenc import Frequencies, apply_rope, frequencies, rope_tables
from posenc.modules import RotaryEmbedding

F = frequencies(8)


def draw(*shape, dtype=torch.float32):
    return torch.as_tensor(np.random.default_rng(0).normal(size=shape)).to(dtype)


def right(x, positions, interleaved=False, axis=-2, omega=F):
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    cos, sin = rope_tables(torch.as_tensor(positions), omega, dtype=wide)
    return apply_rope(x, cos, sin, interleaved=interleaved, position_axis=axis)


@pytest.mark.parametrize("interleaved", (False, True))
@pytest.mark.parametrize("axis", (-2, -3))
@pytest.mark.parametrize("name", ("float32", "float64", "bfloat16", "float16"))
def test_it_is_its_functions(interleaved, axis, name):
    """Golden values T8, T21, T25: catches positions ignored, key heads refused, float32 leaked."""
    rope = RotaryEmbedding(F, interleaved=interleaved, position_axis=axis)
    q, k = (draw(2, h, 5, 12, dtype=getattr(torch, name)) for h in (4, 2))
    if axis == -3:
        q, k = q.transpose(1, 2), k.transpose(1, 2)
    for positions in (
        torch.tensor([3, 1, 4, 1, 10**9]),
        torch.tensor([[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]),
        torch.tensor([[[0, 1, 2, 3, 4]]]) if axis == -2 else torch.tensor([[0, 1, 2, 3, 4]]),
        [-1, 0, 1, 2, 3],
        range(7, 12),
    ):
        at = list(positions) if isinstance(positions, range) else positions
        for found, x in zip(rope(q, k, positions), (q, k), strict=True):
            assert torch.equal(found, right(x, at, interleaved, axis))
            assert found.dtype == x.dtype
    scaled = RotaryEmbedding(Frequencies(F.omega, attention_factor=2.0), interleaved=interleaved)
    q = draw(1, 5, 8)
    plain = RotaryEmbedding(Frequencies(F.omega), interleaved=interleaved)
    assert torch.equal(scaled(q, q, range(5))[0], 2 * plain(q, q, range(5))[0])


def on_meta():
    with torch.device("meta"):
        return RotaryEmbedding(F, interleaved=False).to_empty(device="cpu")


@pytest.mark.parametrize(
    "treat",
    [
        lambda m: m.to(torch.bfloat16),
        lambda m: m.half(),
        lambda m: m.bfloat16().float(),
        copy.deepcopy,
        lambda m: pickle.loads(pickle.dumps(m)),
        lambda m: on_meta(),
        lambda m: m.to("meta").to_empty(device="cpu"),
    ],
    ids=("bfloat16", "half", "there and back", "deepcopy", "pickle", "meta", "emptied"),
)
def test_nothing_done_to_the_module_moves_its_angles(treat):
    """Kinds B and G. Golden values T4, T24: catches buffers, cast or lost on the meta device."""
    module = treat(RotaryEmbedding(F, interleaved=False))
    x = draw(1, 300, 8)
    at = torch.arange(4000, 4300)
    assert torch.equal(module(x, x, at)[0], right(x, at))
    assert module.frequencies == F
    assert module.frequencies.omega[0] == 1
    assert not module.state_dict()
    assert not list(module.parameters())
    assert not list(module.buffers())


def test_older_checkpoints_load_and_change_nothing():
    """Kind G. Golden value T24: catches unexpected keys, and tables overwritten."""
    model = torch.nn.ModuleDict({"rope": RotaryEmbedding(F, interleaved=False)})
    stored = {"rope.inv_freq": torch.zeros(4), "rope.cos_cached": torch.zeros(9, 8)}
    model.load_state_dict(stored)
    assert len(stored) == 2
    x = draw(1, 5, 8)
    assert torch.equal(model["rope"](x, x, range(5))[0], right(x, range(5)))
    with pytest.raises(RuntimeError, match="Unexpected key"):
        model.load_state_dict({"rope.weight": torch.zeros(4)})


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")
@pytest.mark.parametrize("interleaved", (False, True))
def test_compiled_and_exported_with_changing_length(interleaved):
    """Kind G. Golden value T28: catches graph breaks, recompilations, a length baked in."""
    from torch._dynamo.testing import CompileCounterWithBackend

    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    rope = RotaryEmbedding(F, interleaved=interleaved)
    compiled = torch.compile(rope, fullgraph=True, backend=counter)
    for length, offset in ((5, 0), (9, 3), (17, 10**9), (33, 7)):
        q, k, at = draw(2, 4, length, 8), draw(2, 2, length, 8), torch.arange(length) + offset
        for found, wanted in zip(compiled(q, k, at), rope(q, k, at), strict=True):
            assert torch.allclose(found, wanted, rtol=0, atol=5e-7)
    assert counter.frame_count <= 3
    length = torch.export.Dim("length")
    shapes = ({2: length}, {2: length}, {0: length})
    exported = torch.export.export(rope, (q, k, at), dynamic_shapes=shapes).module()
    found = exported(q[:, :, :6], k[:, :, :6], at[:6])
    assert torch.allclose(found[1], rope(q, k, at)[1][:, :, :6], rtol=0, atol=5e-7)


def test_gradients_pass_and_inputs_stay():
    """Catches a rotation in place."""
    q, k = draw(2, 3, 4, 8).requires_grad_(), draw(2, 1, 4, 8).requires_grad_()
    before = q.detach().clone()
    turned = RotaryEmbedding(F, interleaved=True)(q, k, range(4))
    sum(x.sum() for x in turned).backward()
    assert torch.equal(q.detach(), before)
    assert k.grad.shape == k.shape
    assert "interleaved=True, position_axis=-2" in repr(RotaryEmbedding(F, interleaved=True))


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: RotaryEmbedding(F), TypeError, "interleaved"),
        (lambda: RotaryEmbedding(8, interleaved=True), TypeError, "frequencies must be Freq"),
        (lambda: RotaryEmbedding(F, interleaved=None), TypeError, "interleaved must be True for"),
        (
            lambda: RotaryEmbedding(F, interleaved=True, position_axis=2),
            ValueError,
            "position_axis must be -2",
        ),
        (
            lambda: RotaryEmbedding(F, interleaved=True)(draw(5, 8), draw(5, 8), torch.ones(5)),
            TypeError,
            "positions must be integers, got float32",
        ),
        (
            lambda: RotaryEmbedding(F, interleaved=True)(draw(5, 8), draw(5, 8), np.arange(5)),
            TypeError,
            "q and positions must both be NumPy's, or both torch's",
        ),
        (
            lambda: RotaryEmbedding(F, interleaved=True)(
                draw(5, 8), draw(5, 8), torch.arange(5, device="meta")
            ),
            ValueError,
            "q and positions must be on one device, got cpu and meta",
        ),
        (
            lambda: RotaryEmbedding(F, interleaved=True)(draw(5, 8), draw(5, 8), range(4)),
            ValueError,
            "cos must have T = 5 as q has on axis -2, got 4",
        ),
        (
            lambda: RotaryEmbedding(F, interleaved=True)(draw(5, 6), draw(5, 6), range(5)),
            ValueError,
            "cos must have at most head_dim/2 = 3 columns for q, got 4",
        ),
        (
            lambda: RotaryEmbedding(F, interleaved=True)(np.ones((5, 8)), draw(5, 8), range(5)),
            TypeError,
            "q and k must both be NumPy's, or both torch's",
        ),
    ],
)
def test_bad_input_gets_one_clear_sentence(call, error, sentence):
    """Catches a pairing left out, and errors from the inside."""
    with pytest.raises(error, match=sentence):
        call()
