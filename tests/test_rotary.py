"""Rotations: golden values, complex arithmetic in float64, and what must hold for any tables."""

import json
from pathlib import Path

import numpy as np
import oracle
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from posenc import Frequencies, apply_rope, apply_rope_qk, frequencies, phases, rope_tables

GOLDEN = json.loads(Path(__file__).with_name("golden.json").read_text())
DTYPES = ("float32", "float64", "float16", "bfloat16")
ULP = {"float32": 2.0**-23, "float64": 2.0**-52, "float16": 2.0**-11, "bfloat16": 2.0**-8}


def turned(x, cos, sin, interleaved, inverse=False):
    """Complex multiplication in float64, pair by pair; tables broadcast as they are."""
    x, cos, sin = (np.asarray(torch.as_tensor(a).detach().double()) for a in (x, cos, sin))
    y, half = x.copy(), cos.shape[-1]
    for i in range(half):
        a, b = (2 * i, 2 * i + 1) if interleaved else (i, i + half)
        unit = cos[..., i] + (-1j if inverse else 1j) * sin[..., i]
        pair = (x[..., a] + 1j * x[..., b]) * unit
        y[..., a], y[..., b] = pair.real, pair.imag
    return y


def tables(length, rotary_dim, dtype="float32"):
    """Exact tables for T positions, as torch tensors in the dtype that x of dtype needs."""
    wide = torch.float64 if dtype == "float64" else torch.float32
    return rope_tables(torch.arange(3, 3 + length), frequencies(rotary_dim), dtype=wide)


def draw(*shape, dtype="float32", seed=0):
    values = np.random.default_rng(seed).normal(size=shape)
    return torch.as_tensor(values).to(getattr(torch, dtype))


@pytest.mark.parametrize("golden", GOLDEN["rope"], ids=lambda golden: golden["id"])
@pytest.mark.parametrize("tensor", (False, True), ids=("numpy", "torch"))
def test_golden_rotations(golden, tensor):
    """Kind A. Catches the other pairing, the other sign, and tables laid out for another one."""
    omega = frequencies(golden["rotary_dim"])
    cos, sin = rope_tables([golden["position"]], omega, dtype=np.float64)
    x = np.array([golden["x"]], dtype=np.float64)
    if tensor:
        x, cos, sin = (torch.as_tensor(a) for a in (x, cos, sin))
    y = apply_rope(x, cos, sin, interleaved=golden["interleaved"])
    np.testing.assert_allclose(np.asarray(y)[0], golden["y"], rtol=0, atol=1e-9)
    assert abs(np.linalg.norm(y) - np.linalg.norm(golden["x"])) < 1e-14
    back = apply_rope(y, cos, sin, interleaved=golden["interleaved"], inverse=True)
    np.testing.assert_allclose(back, x, rtol=0, atol=2e-15)  # T44


@pytest.mark.parametrize("golden", GOLDEN["rope_scores"], ids=lambda golden: golden["id"])
def test_golden_scores_depend_on_the_distance(golden):
    """Kind A. Catches a sign that differs, and one of the two rotated by the other pairing."""
    how, f = {"interleaved": golden["interleaved"]}, frequencies(4)
    q, k = np.array([[1.0, 2, 3, 4]]), np.array([[4.0, 3, 2, 1]])
    for m, n in golden["positions"]:
        at_m, at_n = (rope_tables([p], f, dtype=np.float64) for p in (m, n))
        score = np.vdot(apply_rope(q, *at_m, **how), apply_rope(k, *at_n, **how))
        assert abs(score - golden["score"]) < 1e-9
        if (m, n, how["interleaved"]) == (3, 1, True):
            mixed = np.vdot(
                apply_rope(q, *at_m, interleaved=True), apply_rope(k, *at_n, interleaved=False)
            )
            assert abs(mixed - 10.9041925989) < 1e-9


def test_a_table_of_repeated_columns_does_not_fit():
    """Kind A. The classic mix: a table for one pairing, [c1, c1, c2, c2], used with the other."""
    cos, sin = (np.repeat(t, 2, axis=-1) for t in rope_tables([1], frequencies(4)))
    with pytest.raises(ValueError, match="cos must have at most head_dim/2 = 2 columns"):
        apply_rope(np.ones((1, 4), np.float32), cos, sin, interleaved=False)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_shape_is_complex_multiplication(data):
    """Kinds A and H. Catches an axis, a stride, a width or a pairing that some shapes hide."""
    interleaved, inverse = data.draw(st.booleans()), data.draw(st.booleans())
    dtype = data.draw(st.sampled_from(DTYPES))
    axis = data.draw(st.sampled_from((-2, -3)))
    half = data.draw(st.integers(1, 6))
    dim = 2 * half + 2 * data.draw(st.integers(0, 3))
    outer = data.draw(st.lists(st.integers(1, 4), max_size=3))
    length, heads = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 3))
    batch = [data.draw(st.sampled_from((1, n))) for n in outer]
    batch = batch[: data.draw(st.integers(0, len(batch)))]
    x = draw(*outer, *([length] if axis == -2 else [length, heads]), dim, dtype=dtype, seed=half)
    wide = "float64" if dtype == "float64" else "float32"
    cos, sin = (draw(*batch, length, half, dtype=wide, seed=s) for s in (1, 2))
    layout = data.draw(st.sampled_from(("plain", "transposed", "stepped", "expanded", "sliced")))
    if layout == "transposed":
        x = x.transpose(0, -1).contiguous().transpose(0, -1)
    elif layout == "stepped":
        x = torch.repeat_interleave(x, 2, -1)[..., ::2]
    elif layout == "expanded" and outer:
        x = x[:1].expand(x.shape)
    elif layout == "sliced":
        x = torch.cat([x, x, x], -1)[..., dim : 2 * dim]
    middle = len(outer) - len(batch)
    around = (*batch, *[1] * middle, length, *([1] if axis == -3 else []), half)
    right = turned(x, cos.reshape(around), sin.reshape(around), interleaved, inverse)
    before = x.clone()
    how = {"interleaved": interleaved, "inverse": inverse, "position_axis": axis}
    y = apply_rope(x, cos, sin, **how)
    assert y.dtype == x.dtype
    bound = 4 * ULP[dtype] * max(1.0, float(np.abs(right).max()))
    assert np.abs(y.double().numpy() - right).max() <= bound
    assert torch.equal(x, before)
    both = apply_rope_qk(x, x, cos, sin, **how)
    assert torch.equal(both[0], y)
    assert torch.equal(both[1], y)
    if dtype != "bfloat16":
        ours = apply_rope(*(a.numpy() for a in (x, cos, sin)), **how)
        assert ours.dtype == x.numpy().dtype
        assert np.abs(ours.astype(float) - right).max() <= bound


@pytest.mark.parametrize("base", (1e4, 5e5))
@pytest.mark.parametrize("interleaved", (False, True))
def test_scores_keep_to_the_distance_at_any_shift(base, interleaved):
    """Kind B. Catches angles in float32 (5e-4 at shift 10**5) and tables in bfloat16."""
    rng, f = np.random.default_rng(0), frequencies(128, base)
    q, k = (rng.normal(size=(2000, 128)) for _ in range(2))
    q, k = (torch.as_tensor(x / np.linalg.norm(x, axis=1, keepdims=True)).float() for x in (q, k))
    m, n = (torch.as_tensor(rng.integers(0, 4096, 2000)) for _ in range(2))

    def scores(dtype, shift):
        a, b = (
            apply_rope(x.to(dtype), *rope_tables(p + shift, f), interleaved=interleaved).double()
            for x, p in ((q, m), (k, n))
        )
        assert a.dtype == torch.float64
        return (a * b).sum(-1)

    for shift in (1, 10**3, 10**5, 10**7):
        for dtype, bound in ((torch.float32, 5e-8), (torch.bfloat16, 1.3e-3)):
            assert (scores(dtype, shift) - scores(dtype, 0)).abs().max() <= bound
    wide = [(rope_tables(p, f, dtype=torch.float64)) for p in (m, n)]
    exact = (
        apply_rope(q.double(), *wide[0], interleaved=interleaved)
        * apply_rope(k.double(), *wide[1], interleaved=interleaved)
    ).sum(-1)
    assert (scores(torch.float32, 0) - exact).abs().max() <= 5e-8


@pytest.mark.parametrize("dtype", ("float16", "bfloat16"))
@pytest.mark.parametrize("interleaved", (False, True))
@pytest.mark.parametrize("shape", ((2, 3, 5, 64), (1, 9, 700, 96)), ids=("few", "many"))
def test_narrow_inputs_are_rounded_once(dtype, interleaved, shape):
    """Kind B. Golden value T25: catches arithmetic in 16 bits, and float32 that leaks out."""
    x = draw(*shape, dtype=dtype)
    cos, sin = tables(shape[-2], 64)
    y = apply_rope(x, cos, sin, interleaved=interleaved)
    assert y.dtype == x.dtype
    assert torch.equal(y, apply_rope(x.float(), cos, sin, interleaved=interleaved).to(x.dtype))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(apply_rope(x, cos, sin, interleaved=interleaved), y)
        q, k = apply_rope_qk(x, x[:, :1], cos, sin, interleaved=interleaved)
    assert torch.equal(q, y)
    assert q.dtype == k.dtype == x.dtype


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("interleaved", (False, True))
@pytest.mark.parametrize("rotary_dim", (64, 32))
@pytest.mark.parametrize("heads", (1, 5))
def test_prefill_and_decode_agree_to_the_bit(dtype, interleaved, rotary_dim, heads):
    """Kind C. Golden value T6: catches an offset ignored, off by one, or seen from the end."""
    n, f = 10, frequencies(rotary_dim)
    x = draw(2, heads, n, 64, dtype=dtype)
    wide = torch.float64 if dtype == "float64" else torch.float32

    def part(start, stop):
        cos, sin = rope_tables(torch.arange(start, stop), f, dtype=wide)
        return apply_rope(x[:, :, start:stop], cos, sin, interleaved=interleaved)

    whole = part(0, n)
    assert torch.equal(torch.cat([part(0, n - 1), part(n - 1, n)], 2), whole)
    assert torch.equal(torch.cat([part(t, t + 1) for t in range(n)], 2), whole)
    assert torch.equal(torch.cat([part(3, 7), part(7, 10)], 2), whole[:, :, 3:])
    assert not torch.equal(part(n - 1, n), x[:, :, n - 1 :])


@pytest.mark.parametrize("interleaved", (False, True))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", ((2, 3, 1100, 96), (1, 1, 6000, 96)), ids=("heads", "rows"))
def test_ways_of_every_size_agree_to_the_bit(dtype, interleaved, shape):
    """Kind H. Catches a block, a scratch or a way in place that rotates otherwise than the rest."""
    x, length = draw(*shape, dtype=dtype), shape[2]  # more than a block
    for rotary_dim in (96, 72, 64):
        cos, sin = tables(length, rotary_dim, dtype)
        how = {"interleaved": interleaved}
        y = apply_rope(x, cos, sin, **how)
        parts = [slice(t, t + 100) for t in range(0, length, 100)]
        rows = [apply_rope(x[:, :, part], cos[part], sin[part], **how) for part in parts]
        assert torch.equal(torch.cat(rows, 2), y)
        inside = x.transpose(1, 2).contiguous()
        assert torch.equal(apply_rope(inside, cos, sin, position_axis=-3, **how).transpose(1, 2), y)
        by_row = [t.expand(shape[0], -1, -1) for t in (cos, sin)]
        assert torch.equal(apply_rope(x, *by_row, **how), y)
        given, own = torch.empty_like(x), x.clone()
        assert apply_rope(x, cos, sin, out=given, **how) is given
        assert torch.equal(given, y)
        assert apply_rope(own, cos, sin, out=own, **how) is own
        assert torch.equal(own, y)


@pytest.mark.parametrize("dim", (72, 80, 96, 128))
@pytest.mark.parametrize("interleaved", (False, True))
def test_rotations_are_a_group(dim, interleaved):
    """Golden value T44. Catches a reflection, a scaling, and angles that do not add."""
    f, eye = frequencies(dim), np.eye(dim)[:, None, :]

    def matrix(p):
        cos, sin = rope_tables([p], f, dtype=np.float64)
        return apply_rope(eye, cos, sin, interleaved=interleaved)[:, 0].T

    r = matrix(7)
    assert np.abs(r @ r.T - np.eye(dim)).max() < 1e-15
    assert abs(np.linalg.det(r) - 1) < 1e-13
    assert np.abs(matrix(7) @ matrix(1000) - matrix(1007)).max() < 1e-15
    assert np.abs(matrix(-7) - r.T).max() < 1e-15


@pytest.mark.parametrize("positions", (range(3, 203), [3, 4, 250], np.arange(-9, 70)))
def test_tables_are_phases_times_the_factor(positions):
    """Catches a factor left out, squared, or multiplied after the rounding to float32."""
    plain = frequencies(16)
    scaled = Frequencies(plain.omega, attention_factor=1.1386294361119891)
    index = list(positions)
    with_it = rope_tables(positions, scaled)
    exact = oracle.cos_sin(index, [float(w) for w in plain.omega])
    for found, right in zip(with_it, exact, strict=True):
        assert found.dtype == np.float32
        assert (found == (1.1386294361119891 * right).astype(np.float32)).all()
    for found, right in zip(rope_tables(positions, plain), phases(positions, plain), strict=True):
        assert (found == right).all()
    out = (torch.empty(len(index), 8), torch.empty(len(index), 8))
    at = positions if isinstance(positions, (range, list)) else torch.as_tensor(positions)
    assert rope_tables(at, scaled, out=out)[0] is out[0]
    assert (out[1].numpy() == with_it[1]).all()
    narrow = rope_tables(torch.tensor(index), scaled, dtype=torch.bfloat16)[0]
    assert torch.equal(narrow, torch.as_tensor(1.1386294361119891 * exact[0]).to(torch.bfloat16))


def test_neighbours_beyond_256_have_rows_of_their_own():
    """Kind B. Golden values T3, T4: catches positions or frequencies in 16 bits."""
    for low in (256, 2048, 2**24, 2**53):
        pair = rope_tables(torch.tensor([low, low + 1]), frequencies(128))[0]
        assert not torch.equal(pair[0], pair[1])
    assert abs(frequencies(128).omega[1] - 0.8659643234) < 1e-10  # T21: head_dim 128, not 160
    cos = rope_tables([4095], frequencies(128), dtype=np.float64)[0]
    assert abs(cos[0, 1] - -0.7423658) < 1e-7  # .4238415 with omega in bfloat16
    assert abs(rope_tables([1857], frequencies(32), dtype=np.float64)[0][0, 1] - 0.3066928) < 1e-7
    bf16 = [int(torch.tensor(p).to(torch.bfloat16)) for p in (257, 259, 1001, 4095)]
    assert bf16 == [256, 260, 1000, 4096]
    with pytest.raises(TypeError, match="256 and 257 are one number in bfloat16"):
        rope_tables(torch.arange(4096, dtype=torch.bfloat16), frequencies(128))
