"""Rotations on a CUDA device: one rounding, one launch, the same rows as on the CPU."""

import pytest
import torch

from posenc import apply_rope, apply_rope_qk, frequencies, rope_tables
from posenc.kernels import launch_triton

PAIRINGS = pytest.mark.parametrize("interleaved", (False, True), ids=("half", "interleaved"))
DTYPES = pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16, torch.float16), ids=str)
FAR = [0, 1, 131071, 2**24 + 1, 2**31 - 1, 2**31, 2**31 + 5, 2**40 + 7, 2**53 + 1, 2**62]
COMPILE_NOISE = (  # torch's own warnings while it traces
    "ignore:.*should not be instantiated:DeprecationWarning",
    "ignore:.*torch.jit.script:DeprecationWarning",
    "ignore:.*torch.jit.script_method:DeprecationWarning",
    "ignore:.*TensorFloat32:UserWarning",
    "ignore:.*Online softmax:UserWarning",
)


def quiet(test):
    for noise in COMPILE_NOISE:
        test = pytest.mark.filterwarnings(noise)(test)
    return test


@pytest.fixture
def launches(monkeypatch):
    """Count the launches of the kernel."""
    counted, run = [], launch_triton._run

    def counting(q, k, *how):
        counted.append(1 if k is None else 2)
        return run(q, k, *how)

    monkeypatch.setattr(launch_triton, "_run", counting)
    return counted


def draw(*shape, dtype=torch.float32, seed=0):
    """Drawn on the CPU, moved to the device."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(dtype).cuda()


def oracle(x, cos, sin, interleaved, inverse=False):
    """Pairs in float64 on the CPU."""
    x, cos, sin = (t.detach().double().cpu() for t in (x, cos, sin))
    half = cos.shape[-1]
    pairs = (0, 2 * half, 2), (1, 2 * half, 2)
    first, second = (slice(*p) for p in (pairs if interleaved else ((0, half), (half, 2 * half))))
    a, b, s = x[..., first], x[..., second], -sin if inverse else sin
    y = x.clone()
    y[..., first], y[..., second] = a * cos - b * s, b * cos + a * s
    return y


def close(found, right, x):
    """Float32 arithmetic and one rounding, to the nearest."""
    assert found.dtype == x.dtype
    assert found.device.type == "cuda"
    error = (found.detach().double().cpu() - right).abs()
    bound = 4e-7 * float(x.detach().abs().max())
    if x.dtype != torch.float32:
        info = torch.finfo(x.dtype)
        power = torch.floor(torch.log2(right.abs().clamp_min(1e-300)))
        bound = bound + (2.0**power).clamp_min(info.tiny) * info.eps / 2
    assert bool((error <= bound).all()), float((error - bound).max())


@pytest.mark.equation("eq-coarse-fine")
def test_float32_rope_tables_are_those_of_the_cpu():
    """Catches another formula on the device: at most one entry in 10**7 may differ."""
    f = frequencies(128, 500000.0)
    for span in (range(131072), range(2**31 - 1000, 2**31 + 130072)):
        here, there = rope_tables(span, f, device="cpu"), rope_tables(span, f, device="cuda")
        differ = sum(int((t.cpu() != h).sum()) for h, t in zip(here, there, strict=True))
        assert differ <= sum(h.numel() for h in here) // 10**7
    here = rope_tables(torch.tensor(FAR), f)
    there = rope_tables(torch.tensor(FAR, device="cuda"), f)
    for h, t in zip(here, there, strict=True):
        assert int((t.cpu() != h).sum()) <= 1


@PAIRINGS
@pytest.mark.parametrize(
    ("dtype", "dim", "width"),
    [
        (torch.float32, 128, 128),
        (torch.float16, 128, 128),
        *((torch.bfloat16, *sizes) for sizes in [(128, 128), (64, 64), (256, 256)]),
        *((torch.bfloat16, *sizes) for sizes in [(80, 80), (96, 24)]),
    ],
)
def test_one_rounding_at_any_position(launches, interleaved, dtype, dim, width):
    """Catches 16-bit arithmetic, two roundings, angles that float32 cannot hold."""
    positions = torch.tensor(FAR)
    cos, sin = (t.cuda() for t in rope_tables(positions, frequencies(width)))
    q, k = draw(2, 8, 10, dim, dtype=dtype), draw(2, 2, 10, dim, dtype=dtype, seed=1)
    for inverse in (False, True):
        how = {"interleaved": interleaved, "inverse": inverse}
        for y, x in zip(apply_rope_qk(q, k, cos, sin, **how), (q, k), strict=True):
            close(y, oracle(x, cos, sin, interleaved, inverse), x)
    own = (q.clone(), k.clone())
    apply_rope_qk(*own, cos, sin, interleaved=interleaved, out=own)
    for y, x in zip(own, (q, k), strict=True):
        close(y, oracle(x, cos, sin, interleaved), x)
    assert launches == [2, 2, 2]


@PAIRINGS
def test_the_device_agrees_with_the_cpu(interleaved):
    """Catches a kernel and a formula that do not mean the same: many tokens, a partial width."""
    q, k = draw(2, 4, 1000, 80), draw(2, 2, 1000, 80, seed=1)
    f = frequencies(40)
    table = rope_tables(range(1000), f, device="cuda")
    there = apply_rope_qk(q, k, *table, interleaved=interleaved)
    table = rope_tables(range(1000), f, device="cpu")
    here = apply_rope_qk(q.cpu(), k.cpu(), *table, interleaved=interleaved)
    for t, h in zip(there, here, strict=True):
        assert float((t.cpu() - h).abs().max()) <= 1e-6


@PAIRINGS
@DTYPES
def test_non_contiguous(launches, interleaved, dtype):
    """Catches a stride taken for another: fused, transposed, spread, expanded, into strided out."""
    cos, sin = (t.cuda() for t in rope_tables(torch.tensor([7, 131071, 3, 0, 9]), frequencies(64)))
    fused = draw(2, 5, 4, 3, 64, dtype=dtype)
    q, k, v = (fused[:, :, :, i].transpose(1, 2) for i in range(3))
    spread = draw(2, 8, 10, 128, dtype=dtype)[:, ::2, ::2, ::2]
    turned = draw(64, 4, 2, 5, dtype=dtype).permute(2, 1, 3, 0)
    shared = draw(1, 1, 5, 64, dtype=dtype).expand(2, 4, 5, 64)
    for a, b in ((q, k), (spread, turned), (shared, v)):
        found = apply_rope_qk(a, b, cos, sin, interleaved=interleaved)
        for y, x in zip(found, (a, b), strict=True):
            close(y, oracle(x, cos, sin, interleaved), x)
    right, kept = [oracle(x, cos, sin, interleaved) for x in (q, k)], v.clone()
    apply_rope_qk(q, k, cos, sin, interleaved=interleaved, out=(q, k))
    close(q, right[0], q)
    close(k, right[1], k)
    assert torch.equal(v, kept)
    assert launches == [2] * 4


@PAIRINGS
def test_positions_are_looked_up_inside(launches, interleaved):
    """Catches another token's row, a row beyond the tables, a check that a graph cannot make."""
    table = rope_tables(range(131072), frequencies(128), device="cuda")
    q, k = draw(2, 8, 3, 128), draw(2, 2, 3, 128, seed=1)
    positions = torch.tensor([[0, 131071, 7], [131070, 1, 1]], device="cuda")
    rows = [t[positions][:, None] for t in table]
    for integer in (torch.int64, torch.int32):
        how = {"interleaved": interleaved, "positions": positions.to(integer)}
        for y, x in zip(apply_rope_qk(q, k, *table, **how), (q, k), strict=True):
            close(y, oracle(x, *rows, interleaved), x)
    assert launches == [2, 2]
    for bad in (131072, -1, 2**40):
        positions[1, 2] = bad
        with pytest.raises(ValueError, match=rf"0 ... 131071, the rows of cos and sin, got {bad}"):
            apply_rope_qk(q, k, *table, interleaved=interleaved, positions=positions)
    assert launches == [2, 2]
    torch.cuda.synchronize()  # nothing illegal has happened


@PAIRINGS
def test_graph_capture_gives_nan_outside(interleaved):
    """Catches a launch that a graph does not hold, a synchronization, a clamp."""
    table = rope_tables(range(64), frequencies(64), device="cuda")
    q, k = draw(2, 8, 1, 64, dtype=torch.bfloat16), draw(2, 2, 1, 64, dtype=torch.bfloat16, seed=1)
    positions = torch.tensor([[3], [63]], device="cuda")
    outs = (torch.empty_like(q), torch.empty_like(k))
    how = {"interleaved": interleaved, "positions": positions, "out": outs}
    apply_rope_qk(q, k, *table, **how)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        apply_rope_qk(q, k, *table, **how)
    for at in ([[5], [0]], [[64], [9]], [[-1], [2]]):
        positions.copy_(torch.tensor(at))
        graph.replay()
        torch.cuda.synchronize()
        for y, x in zip(outs, (q, k), strict=True):
            for row, (p,) in enumerate(at):
                if 0 <= p < 64:
                    wanted = oracle(x[row], *(t[p : p + 1] for t in table), interleaved)
                    close(y[row], wanted, x[row])
                else:
                    assert bool(torch.isnan(y[row]).all())


@PAIRINGS
@DTYPES
def test_gradients(launches, interleaved, dtype):
    """Catches a sign of the backward, two launches for q and k, activations that are kept."""
    cos, sin = (t.cuda() for t in rope_tables(torch.tensor(FAR), frequencies(64)))
    q, k = (draw(2, h, 10, 96, dtype=dtype, seed=h).requires_grad_() for h in (8, 2))
    w = [draw(*x.shape, dtype=dtype, seed=9) for x in (q, k)]
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (saved.append(t), t)[1], lambda t: t):
        turned = apply_rope_qk(q, k, cos, sin, interleaved=interleaved)
    assert {t.data_ptr() for t in saved} == {cos.data_ptr(), sin.data_ptr()}
    for gradient, x, w_x in zip(torch.autograd.grad(turned, (q, k), w), (q, k), w, strict=True):
        close(gradient, oracle(w_x, cos, sin, interleaved, inverse=True), x)
    assert launches == [2, 2]
    y = apply_rope(q, cos, sin, interleaved=interleaved)
    y.sum().backward()  # an expanded gradient
    close(q.grad, oracle(torch.ones_like(q), cos, sin, interleaved, inverse=True), q)


@quiet
@PAIRINGS
def test_compiled_in_one_graph(interleaved):
    """Catches a graph break, a compilation for every length, a row that is clamped."""
    from torch._dynamo.testing import CompileCounterWithBackend

    torch._dynamo.reset()
    counter = CompileCounterWithBackend("inductor")
    table = rope_tables(range(64), frequencies(64), device="cuda")

    def rotation(q, k, positions):
        q, k = apply_rope_qk(2 * q, k, *table, interleaved=interleaved, positions=positions)
        return q + 1, k

    compiled = torch.compile(rotation, fullgraph=True, backend=counter)
    for length in (5, 9, 17, 33):
        q, k = (draw(2, h, length, 64, seed=h).requires_grad_() for h in (4, 2))
        positions = torch.arange(length, device="cuda").flip(0)
        rows = [t[positions] for t in table]
        found = compiled(q, k, positions)
        close(found[0] - 1, oracle(2 * q, *rows, interleaved), 8 * q)
        close(found[1], oracle(k, *rows, interleaved), k)
        gradients = torch.autograd.grad(found, (q, k), [torch.ones_like(x) for x in (q, k)])
        for gradient, x, factor in zip(gradients, (q, k), (2, 1), strict=True):
            ones = torch.full_like(x, factor)
            close(gradient, oracle(ones, *rows, interleaved, inverse=True), 2 * x)
    assert counter.frame_count <= 3
    with torch.no_grad():
        found = compiled(q, k, positions + 40)
    outside = (positions + 40 >= 64)[None, None, :, None].expand(found[1].shape)
    assert torch.equal(torch.isnan(found[1]), outside)


def test_addresses_beyond_32_bits():
    """Catches offsets computed in 32 bits, in tensors and in tables."""
    if torch.cuda.mem_get_info()[0] < 24 * 2**30:
        pytest.skip("needs 24 GiB of free device memory")
    tokens, dim = 2**24 + 3, 128
    x = torch.zeros(1, tokens, dim, dtype=torch.bfloat16, device="cuda")  # 2**31 + 384 elements
    x[:, -5:] = draw(1, 5, dim, dtype=torch.bfloat16)
    before = x[:, -5:].clone()
    table = [torch.zeros(tokens, dim // 2, device="cuda") for _ in range(2)]
    for whole, rows in zip(table, rope_tables(FAR[5:], frequencies(dim)), strict=True):
        whole[-5:] = torch.as_tensor(rows).cuda()
    apply_rope(x, *table, interleaved=False, out=x)
    close(x[:, -5:], oracle(before, *(t[-5:] for t in table), False), before)
    assert not x[:, :-5].any()
