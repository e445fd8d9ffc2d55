"""What torch does with a rotation: gradients, transforms, compilation, export."""

import numpy as np
import pytest
import torch
from torch.autograd import forward_ad

from posenc import apply_rope, apply_rope_qk, frequencies, rope_tables

COMPILE_NOISE = (  # torch's own warnings while it traces
    "ignore:.*should not be instantiated:DeprecationWarning",
    "ignore:.*torch.jit.script:DeprecationWarning",
    "ignore:.*torch.jit.script_method:DeprecationWarning",
)
PAIRINGS = pytest.mark.parametrize("interleaved", (False, True))


def quiet(test):
    for noise in COMPILE_NOISE:
        test = pytest.mark.filterwarnings(noise)(test)
    return test


def draw(*shape, dtype=torch.float32, seed=0):
    return torch.as_tensor(np.random.default_rng(seed).normal(size=shape)).to(dtype)


def tables(positions, width, dtype=torch.float32):
    return rope_tables(torch.as_tensor(positions), frequencies(width), dtype=dtype)


@PAIRINGS
@pytest.mark.parametrize("dtype", (torch.float32, torch.float64, torch.bfloat16))
@pytest.mark.parametrize("shape", ((2, 3, 5, 12), (1, 2, 2100, 130)), ids=("small", "blocks"))
def test_the_gradient_is_the_rotation_back(interleaved, dtype, shape):
    """Kind H. Golden value T27: catches a wrong sign, a gradient lost in a complex view."""
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    cos, sin = tables(range(7, 7 + shape[-2]), shape[-1] - 2, wide)
    x, w = draw(*shape, dtype=dtype).requires_grad_(), draw(*shape, dtype=dtype, seed=1)
    y = apply_rope(x, cos, sin, interleaved=interleaved)
    assert y.requires_grad
    assert torch.equal(y, apply_rope(x.detach(), cos, sin, interleaved=interleaved))
    (y * w).sum().backward()
    right = apply_rope(w, cos, sin, interleaved=interleaved, inverse=True)
    assert torch.equal(x.grad, right)
    assert x.grad.dtype == dtype
    q, k = apply_rope_qk(x, x.detach(), cos, sin, interleaved=interleaved)
    assert q.requires_grad
    assert not k.requires_grad


@quiet
@PAIRINGS
@pytest.mark.parametrize("axis", (-2, -3))
@pytest.mark.parametrize("inverse", (False, True))
def test_gradients_of_every_order_and_mode(interleaved, axis, inverse):
    """Kind H. Catches a backward that is no function, and tangents that a view drops."""
    cos, sin = tables([[2, 9, 5]], 4, torch.float64)
    x = draw(2, 3, 3, 6, dtype=torch.float64).requires_grad_()
    how = {"interleaved": interleaved, "position_axis": axis, "inverse": inverse}

    def rotation(x):
        return apply_rope(x, cos, sin, **how)

    modes = {"check_forward_ad": True, "check_batched_grad": True}
    assert torch.autograd.gradcheck(rotation, x, **modes)
    assert torch.autograd.gradgradcheck(rotation, x)
    with forward_ad.dual_level():
        tangent = draw(2, 3, 3, 6, dtype=torch.float64, seed=1)
        dual = forward_ad.make_dual(x.detach(), tangent)
        found = forward_ad.unpack_dual(rotation(dual)).tangent
    assert (found - rotation(tangent)).abs().max() < 1e-15


@PAIRINGS
def test_learned_frequencies_get_their_gradient(interleaved):
    """Catches tables taken for constants, with and without positions that gather rows."""
    cos, sin = (t.requires_grad_() for t in tables(range(5), 4, torch.float64))
    x = draw(2, 3, 6, dtype=torch.float64).requires_grad_()
    for positions in (None, torch.tensor([1, 1, 4])):
        rows = (cos, sin) if positions is not None else (cos[:3], sin[:3])
        rows = tuple(t.detach().requires_grad_() for t in rows)

        def rotation(x, cos, sin, positions=positions):
            return apply_rope(x, cos, sin, interleaved=interleaved, positions=positions)

        assert torch.autograd.gradcheck(rotation, (x, *rows))
    omega = torch.tensor([0.3, 0.01], requires_grad=True)
    angle = torch.arange(3)[:, None] * omega
    y = apply_rope(x.detach().float(), angle.cos(), angle.sin(), interleaved=interleaved)
    y[0, 2, 0].backward()
    assert (omega.grad != 0).any()


@PAIRINGS
def test_nothing_is_saved_but_the_tables(interleaved):
    """Catches activations kept for the backward pass."""
    saved = []
    cos, sin = tables(range(64), 32)
    x = draw(4, 64, 32).requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (saved.append(t), t)[1], lambda t: t):
        apply_rope_qk(x, x * 1, cos, sin, interleaved=interleaved)
    places = {t.untyped_storage().data_ptr() for t in saved}
    assert places == {t.untyped_storage().data_ptr() for t in (cos, sin)}


@quiet
@PAIRINGS
def test_transforms_go_through(interleaved):
    """Catches writes into memory that vmap does not know, and checks on values that are hidden."""
    x, table = draw(4, 3, 5, 8), tables(range(9), 8)
    positions = torch.tensor([[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [8, 8, 8, 8, 8], [5, 6, 7, 8, 9]])

    def rotation(x, positions):
        return apply_rope(x, *table, interleaved=interleaved, positions=positions)

    y = torch.vmap(rotation)(x, positions)
    assert torch.allclose(y[:3], rotation(x[:3], positions[:3]), rtol=0, atol=5e-7)
    assert torch.isnan(y[3, :, 4]).all()  # 9 is no row: never row 8, never row 0
    assert not torch.isnan(y[3, :, :4]).any()
    plain = torch.vmap(lambda x: apply_rope(x, *tables(range(5), 8), interleaved=interleaved))(x)
    right = apply_rope(x, *tables(range(5), 8), interleaved=interleaved)
    assert torch.allclose(plain, right, rtol=0, atol=5e-7)
    grads = torch.func.vmap(torch.func.grad(lambda x: rotation(x, positions[0]).sum()))(x)
    ones = torch.ones_like(x)
    right = apply_rope(ones, *table, interleaved=interleaved, positions=positions[0], inverse=True)
    assert torch.allclose(grads, right, rtol=0, atol=5e-7)
    jacobian = torch.func.jacrev(lambda x: rotation(x, positions[0]))(x[0])
    assert jacobian.shape == (3, 5, 8, 3, 5, 8)


@quiet
@PAIRINGS
def test_compiled_in_one_graph_with_changing_length(interleaved):
    """Kind G. Golden value T28: catches graph breaks, and a compilation for every length."""
    from torch._dynamo.testing import CompileCounterWithBackend

    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    table = tables(range(64), 8)

    def rotation(q, k, positions, out=None):
        return apply_rope_qk(q, k, *table, interleaved=interleaved, positions=positions, out=out)

    compiled = torch.compile(rotation, fullgraph=True, backend=counter)
    for length in (5, 9, 17, 33):
        q, k = draw(2, 4, length, 10).requires_grad_(), draw(2, 2, length, 10)
        positions = torch.arange(length).flip(0).expand(2, length)
        for found, right in zip(compiled(q, k, positions), rotation(q, k, positions), strict=True):
            assert torch.allclose(found, right, rtol=0, atol=5e-7)
        compiled(q, k, positions)[0].sum().backward()
        right = rotation(torch.ones_like(q), k, positions)  # shape only
        assert q.grad.shape == right[0].shape
        back = apply_rope(
            torch.ones_like(q),
            *table,
            interleaved=interleaved,
            positions=positions,
            inverse=True,
        )
        assert torch.allclose(q.grad, back, rtol=0, atol=5e-7)
    assert counter.frame_count <= 3
    with pytest.raises(RuntimeError, match=r"positions must lie in 0 ... 63"):
        compiled(q, k, positions + 40)
    q = q.detach()
    found = torch.compile(rotation, fullgraph=True, backend="aot_eager")(q, k, positions, (q, k))
    assert found[0] is q


@quiet
@PAIRINGS
def test_exported_with_a_free_length(interleaved):
    """Kind G. Catches complex numbers in the graph, and a length that is baked in."""

    class Model(torch.nn.Module):
        def forward(self, x, positions):
            cos, sin = rope_tables(positions, frequencies_of_8)
            return apply_rope(x, cos, sin, interleaved=interleaved)

    frequencies_of_8 = frequencies(8)
    length = torch.export.Dim("length")
    exported = torch.export.export(
        Model(), (draw(2, 3, 9, 8), torch.arange(9)), dynamic_shapes=({2: length}, {0: length})
    )
    assert "complex" not in str(exported.graph)
    x, positions = draw(2, 3, 5, 8), torch.tensor([3, 10**9, -7, 0, 2])
    found = exported.module()(x, positions)
    right = apply_rope(x, *rope_tables(positions, frequencies_of_8), interleaved=interleaved)
    assert torch.allclose(found, right, rtol=0, atol=5e-7)


@PAIRINGS
def test_meta_tensors_subclasses_and_negative_bits(interleaved):
    """Catches memory that is read where there is none, and views that torch refuses."""
    table = tables(range(5), 8)
    x = draw(2, 5, 8)
    right = apply_rope(x, *table, interleaved=interleaved)
    away = [t.to("meta") for t in table]
    assert apply_rope(x.to("meta"), *away, interleaved=interleaved).shape == x.shape
    at = torch.arange(5, device="meta")
    assert apply_rope(x.to("meta"), *away, interleaved=interleaved, positions=at).is_meta
    turned = apply_rope(torch._neg_view(-x), *table, interleaved=interleaved)
    assert torch.equal(turned, right)
    parameter = torch.nn.Parameter(x)
    assert apply_rope(parameter, *table, interleaved=interleaved).requires_grad
    with torch.no_grad():
        assert apply_rope(parameter, *table, interleaved=interleaved, out=parameter) is parameter
    assert torch.equal(parameter.detach(), right)
    with torch.inference_mode():
        x = draw(2, 5, 8)
        assert torch.equal(apply_rope(x, *table, interleaved=interleaved), right)
