"""What torch does with the kernel: gradients, compilation in one graph, export, modes."""

import warnings

import pytest
import torch
from turned import PAIRINGS, close, draw, oracle, tables

from posenc import _rotation, apply_rope, apply_rope_qk
from posenc.kernels import rotate_cuda

COMPILE_NOISE = (  # torch's own warnings while it traces
    "ignore:.*should not be instantiated:DeprecationWarning",
    "ignore:.*torch.jit.script:DeprecationWarning",
    "ignore:.*torch.jit.script_method:DeprecationWarning",
)


def quiet(test):
    for noise in COMPILE_NOISE:
        test = pytest.mark.filterwarnings(noise)(test)
    return test


@PAIRINGS
@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16, torch.float64), ids=str)
def test_the_gradient_is_the_rotation_back(launches, interleaved, dtype):
    """Catches a sign of the backward, activations that are kept, a gradient of the wrong dtype."""
    table = tables(range(9), 6, dtype)
    at = torch.tensor([[8, 3, 4], [0, 0, 7]])
    rows = [t[at] for t in table]
    q, k = (draw(2, h, 3, 8, dtype=dtype, seed=h).requires_grad_() for h in (3, 1))
    w = [draw(*x.shape, dtype=dtype, seed=9) for x in (q, k)]
    how = {"interleaved": interleaved, "positions": at}
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (saved.append(t), t)[1], lambda t: t):
        found = apply_rope_qk(q, k, *table, **how)
    assert {t.untyped_storage().data_ptr() for t in saved} == {
        t.untyped_storage().data_ptr() for t in (*table, at)
    }
    for y, x in zip(found, (q, k), strict=True):
        close(y, oracle(x, *rows, interleaved), x)
    grads = torch.autograd.grad(found, (q, k), w)
    for gradient, x, w_x in zip(grads, (q, k), w, strict=True):
        close(gradient, oracle(w_x, *rows, interleaved, inverse=True), x)
    assert launches == [2, 2]  # one there, one back
    y, frozen = apply_rope_qk(q, k.detach(), *table, **how)
    assert y.requires_grad
    assert not frozen.requires_grad
    apply_rope_qk(q, k, *table, **how)[0].sum().backward()  # no gradient comes back through k
    close(q.grad, oracle(torch.ones_like(q), *rows, interleaved, inverse=True), q)
    assert k.grad is None or not k.grad.any()


@quiet
@PAIRINGS
def test_gradients_of_every_order(interleaved):
    """Catches a backward that cannot be differentiated, or that knows no batches."""
    table = [t.detach() for t in tables(range(5), 2, torch.float64)]
    at = torch.tensor([4, 2])

    def rotation(q, k):
        return apply_rope_qk(q, k, *table, interleaved=interleaved, positions=at)

    q, k = (draw(1, h, 2, 4, dtype=torch.float64, seed=h).requires_grad_() for h in (1, 2))
    assert torch.autograd.gradcheck(rotation, (q, k), check_batched_grad=True)
    assert torch.autograd.gradcheck(rotation, (q, k), check_forward_ad=True, fast_mode=True)
    assert torch.autograd.gradgradcheck(rotation, (q, k), fast_mode=True)
    mapped = torch.vmap(lambda q: rotation(q, k)[0])(q[None].detach())
    assert torch.allclose(mapped[0], rotation(q, k)[0])


@PAIRINGS
def test_tables_that_learn_take_the_formula(launches, interleaved):
    """Catches tables taken for constants."""
    cos, sin = (t.detach().requires_grad_() for t in tables(range(5), 4, torch.float64))
    x, at = draw(1, 3, 6, dtype=torch.float64).requires_grad_(), torch.tensor([1, 1, 4])

    def rotation(x, cos, sin):
        return apply_rope(x, cos, sin, interleaved=interleaved, positions=at)

    assert torch.autograd.gradcheck(rotation, (x, cos, sin))
    assert launches == []
    with torch.no_grad():
        rotation(x, cos, sin)
    assert launches == [1]


@quiet
@PAIRINGS
@pytest.mark.parametrize("backend", ("aot_eager", "inductor"))
def test_compiled_in_one_graph_as_one_operator(launches, interleaved, backend):
    """Catches a graph break, an operator for each tensor, a compilation for every length."""
    from torch._dynamo.testing import CompileCounterWithBackend

    torch._dynamo.reset()
    counter = CompileCounterWithBackend(backend)
    table = tables(range(64), 8)

    def rotation(q, k, positions, out=None):
        how = {"interleaved": interleaved, "positions": positions, "out": out}
        return apply_rope_qk(q, k, *table, **how)

    compiled = torch.compile(rotation, fullgraph=True, backend=counter)
    for length in (5, 9, 17):
        q = draw(2, length, 4, 10).transpose(1, 2).requires_grad_()
        k = draw(2, 2, length, 10).requires_grad_()
        positions = torch.arange(length).flip(0).expand(2, length)
        rows = [t[positions] for t in table]
        launches.clear()
        found = compiled(q, k, positions)
        for y, x in zip(found, (q, k), strict=True):
            close(y, oracle(x, *rows, interleaved), x)
        grads = torch.autograd.grad(found, (q, k), [torch.ones_like(x) for x in (q, k)])
        for gradient, x in zip(grads, (q, k), strict=True):
            close(gradient, oracle(torch.ones_like(x), *rows, interleaved, inverse=True), x)
        assert launches == [2, 2]
    assert counter.frame_count <= 3
    for graph in counter.graphs:
        calls = [str(n.target) for n in graph.graph.nodes if "posenc" in str(n.target)]
        assert len(calls) == 1, calls
        assert calls[0].startswith("posenc.rotate")


@quiet
@PAIRINGS
@pytest.mark.parametrize("backend", ("aot_eager", "inductor"))
def test_compiled_into_outputs_and_in_place(monkeypatch, interleaved, backend):
    """Catches outputs that a graph writes nowhere, and NaN that a graph replaces by an error."""
    monkeypatch.setattr(_rotation, "_cannot_ask", lambda index: True)
    torch._dynamo.reset()
    table = tables(range(64), 8)

    def rotation(q, k, positions, q_out, k_out):
        how = {"interleaved": interleaved, "positions": positions, "out": (q_out, k_out)}
        apply_rope_qk(q + 0, k, *table, **how)
        return 2 * q_out

    def in_place(q, k, positions):
        how = {"interleaved": interleaved, "positions": positions, "out": (q, k)}
        return apply_rope_qk(q, k, *table, **how)

    q, k, positions = draw(2, 4, 5, 10), draw(2, 2, 5, 10), torch.tensor([7, 0, 9, 63, 2])
    rows = [t[positions] for t in table]
    right = [oracle(x, *rows, interleaved) for x in (q, k)]
    q_out, k_out = torch.empty_like(q), torch.empty_like(k)
    twice = torch.compile(rotation, fullgraph=True, backend=backend)(q, k, positions, q_out, k_out)
    assert torch.equal(twice, 2 * q_out)
    for y, wanted, x in zip((q_out, k_out), right, (q, k), strict=True):
        close(y, wanted, x)
    sources = [q.clone(), k.clone()]
    compiled = torch.compile(in_place, fullgraph=True, backend=backend)
    same = compiled(q, k, positions)
    assert same[0] is q
    for y, wanted, x in zip((q, k), right, sources, strict=True):
        close(y, wanted, x)
    compiled(q, k, torch.tensor([0, 1, 64, 2, 3]))
    assert torch.isnan(q[:, :, 2, :8]).all()
    assert not torch.isnan(q[:, :, [0, 1, 3, 4]]).any()


@quiet
def test_the_operators_keep_torchs_rules():
    """Catches a fake result of other strides, an alias, a schema that does not tell all."""
    table = tables(range(5), 8)
    for x in (draw(2, 3, 5, 8), draw(2, 5, 3, 8).transpose(1, 2), draw(8, 5, 2).permute(2, 1, 0)):
        shaped = [t.reshape(*[1] * (x.ndim - 2), 5, 4) for t in table]
        args = ([x, x.clone()], *shaped, None, True, False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            torch.library.opcheck(torch.ops.posenc.rotate.default, args)
            wanted = ([x.clone().requires_grad_()], *shaped, None, False, False)
            torch.library.opcheck(torch.ops.posenc.rotate.default, wanted)
            outs = [torch.empty_like(x), torch.empty_like(x)]
            args = ([x, x.clone()], outs, *shaped, None, True, False)
            torch.library.opcheck(torch.ops.posenc.rotate_into.default, args)


def test_exported_programs_and_modes_that_look():
    """Catches an exported program that needs posenc, and a mode that sees nothing."""
    from torch.utils._python_dispatch import TorchDispatchMode

    table = tables(range(5), 8)
    seen = []

    class Looking(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    x = draw(2, 3, 5, 8)
    with Looking():
        y = apply_rope(x, *table, interleaved=True)
    assert "posenc.rotate.default" in seen
    close(y, oracle(x, *table, True), x)

    class Model(torch.nn.Module):
        def forward(self, x):
            return apply_rope(x, *table, interleaved=True)

    exported = torch.export.export(Model(), (x,))
    assert "posenc" not in str(exported.graph)
    close(exported.module()(x), oracle(x, *table, True), x)


def test_without_triton_the_formula_gives_the_same(monkeypatch, launches):
    """Catches a rotation that needs triton."""
    table, x, at = tables(range(5), 8), draw(2, 3, 4, 8), [0, 2, 4, 1]
    with_it = apply_rope(x, *table, interleaved=True, positions=at)
    assert launches == [1]
    monkeypatch.setattr(rotate_cuda, "HAS_TRITON", False)
    without = apply_rope(x, *table, interleaved=True, positions=at)
    assert launches == [1]
    assert (with_it - without).abs().max() <= 5e-7
