"""The kernel against a float64 oracle: every width, dtype, pairing, stride, tail and table.

The interpreter truncates float32 to bfloat16, which a GPU rounds: there one step is allowed.
"""

import pytest
import torch
from turned import PAIRINGS, close, draw, oracle, tables

from posenc import _rotation, apply_rope, apply_rope_qk
from posenc.kernels import launch_triton

DTYPES = pytest.mark.parametrize(
    "dtype", (torch.float32, torch.bfloat16, torch.float16, torch.float64), ids=str
)


@PAIRINGS
@DTYPES
@pytest.mark.parametrize(
    ("dim", "width"), [(8, 8), (64, 64), (12, 12), (10, 6), (128, 32), (256, 256), (80, 74)]
)
def test_every_width_dtype_and_pairing(launches, interleaved, dtype, dim, width):
    """Catches a sign, a half offset, 16-bit arithmetic, channels that are lost, a mask."""
    q, k = draw(2, 3, 5, dim, dtype=dtype), draw(2, 2, 5, dim, dtype=dtype, seed=1)
    table, how = tables([3, 1, 4, 1000, 5], width, dtype), {"interleaved": interleaved}
    for inverse in (True, False):
        found = apply_rope_qk(q, k, *table, inverse=inverse, **how)
        for y, x in zip(found, (q, k), strict=True):
            close(y, oracle(x, *table, interleaved, inverse), x)
    assert launches == [2, 2]  # q and k by one launch
    q_out, k_out = torch.full_like(q, torch.nan), torch.full_like(k, torch.nan)
    apply_rope_qk(q, k, *table, out=(q_out, k_out), **how)
    assert torch.equal(q_out, found[0])
    assert torch.equal(k_out, found[1])
    same = apply_rope_qk(q, k, *table, out=(q, k_out), **how)
    assert same[0] is q
    assert torch.equal(q, found[0])
    assert torch.equal(apply_rope(k, *table, **how), found[1])


@PAIRINGS
@pytest.mark.parametrize("tokens", (1, 2, 15, 17, 32))
@pytest.mark.parametrize("heads", (1, 3, 17))
def test_tails_of_tokens_and_heads(launches, interleaved, tokens, heads):
    """Catches a mask at a tail: what lies behind each tensor must stay as it is."""
    width = 126
    room = [torch.full((heads + 1, tokens + 3, 128), 7.0) for _ in range(2)]
    q, k = room[0][:heads, :tokens], room[1][: (heads + 1) // 2, :tokens]
    q.copy_(draw(*q.shape))
    k.copy_(draw(*k.shape, seed=1))
    table = tables(range(tokens), width)
    right = [oracle(x, *table, interleaved) for x in (q, k)]
    sources = [q.clone(), k.clone()]
    apply_rope_qk(q, k, *table, interleaved=interleaved, out=(q, k))
    for y, wanted, x in zip((q, k), right, sources, strict=True):
        close(y, wanted, x)
    assert (room[0][heads:] == 7).all()
    assert (room[0][:, tokens:] == 7).all()
    assert (room[1][(heads + 1) // 2 :] == 7).all()
    assert launches == [2]


@PAIRINGS
def test_loops_over_heads(monkeypatch, interleaved):
    """Catches a step to the next heads, in a launch so large that programs turn several tiles."""
    monkeypatch.setattr(launch_triton, "_MANY", 0)
    q, k = draw(2, 11, 9, 16), draw(2, 3, 9, 16, seed=1)
    for table in (tables(range(9), 16), tables(range(18), 16)):
        rows = [t.reshape(-1, 9, 8) for t in table]
        rows = rows if len(rows[0]) == 2 else [t[0] for t in rows]
        for y, x in zip(apply_rope_qk(q, k, *rows, interleaved=interleaved), (q, k), strict=True):
            close(y, oracle(x, *rows, interleaved), x)
    per_head = [t.reshape(1, 11, 9, 8) for t in tables(range(99), 16)]
    close(
        apply_rope(q, *per_head, interleaved=interleaved),
        oracle(q, *per_head, interleaved),
        q,
    )


@PAIRINGS
@pytest.mark.parametrize("axis", (-2, -3))
def test_any_strides(launches, interleaved, axis):
    """Catches a stride taken for another: fused, transposed, spread, expanded."""
    table = tables([[7, 3, 9, 1, 2]], 12)
    fused = draw(2, 5, 4, 3, 16)
    parts = [fused[:, :, :, i] for i in range(3)]  # [2, 5, 4, 16] of one memory
    moved = draw(16, 4, 2, 5).permute(2, 3, 1, 0)  # channels farthest apart
    spread = draw(2, 10, 8, 32)[:, ::2, ::2, ::2]
    shared = draw(1, 5, 1, 16).expand(2, 5, 4, 16)
    turn = (lambda x: x) if axis == -3 else (lambda x: x.transpose(1, 2))
    how = {"interleaved": interleaved, "position_axis": axis}
    for q, k in ((parts[0], parts[1]), (moved, spread), (shared, parts[2])):
        q, k = turn(q), turn(k)
        right = [oracle(x, *table, interleaved, axis=axis) for x in (q, k)]
        found = apply_rope_qk(q, k, *table, **how)
        for y, wanted, x in zip(found, right, (q, k), strict=True):
            close(y, wanted, x)
        out = turn(torch.empty(2, 5, 4, 16, 2)[..., 0])
        close(apply_rope(q, *table, out=out, **how), right[0], q)
    assert launches == [2, 1] * 3
    q, k, kept = (turn(part) for part in parts)
    right, before = [oracle(x, *table, interleaved, axis=axis) for x in (q, k)], kept.clone()
    apply_rope_qk(q, k, *table, out=(q, k), **how)
    close(q, right[0], q)
    close(k, right[1], k)
    assert torch.equal(kept, before)  # the values between them


def test_any_number_of_axes(launches):
    """Catches axes that are merged where they must not be, and launches that are too many."""
    table = tables(range(4), 8)
    for shape in ((4, 8), (3, 4, 8), (2, 3, 4, 8), (2, 3, 2, 4, 8), (2, 1, 3, 2, 4, 8)):
        x = draw(*shape)
        launches.clear()
        close(apply_rope(x, *table, interleaved=True), oracle(x, *table, True), x)
        assert launches == [1]
    x = draw(2, 3, 2, 4, 8).transpose(0, 2).flip(0)[:, :, ::2]  # no two axes go on
    y = draw(3, 3, 3, 2, 5, 8)[:2, :2, :2, :, :4]
    for apart in (x, y):
        close(apply_rope(apart, *table, interleaved=True), oracle(apart, *table, True), apart)
    rows = torch.tensor([[[3, 1, 2, 0]], [[0, 0, 3, 2]]])
    by_number = apply_rope(y, *table, interleaved=False, positions=rows)
    close(by_number, oracle(y, *(t[rows] for t in table), False), y)
    per_head = [t.reshape(2, 2, 2, 4, 4) for t in tables(range(32), 8)]
    close(apply_rope(y, *per_head, interleaved=False), oracle(y, *per_head, False), y)


@PAIRINGS
@pytest.mark.parametrize("integer", (torch.int64, torch.int32, torch.uint8))
def test_positions_are_looked_up_inside(launches, interleaved, integer):
    """Catches a row of another token, of another batch row, or of another head."""
    table = tables(range(50), 8)
    q, k = draw(2, 3, 4, 10), draw(2, 3, 4, 10, seed=1)
    batch = torch.tensor([[7, 3, 3, 49], [0, 12, 5, 1]], dtype=integer)
    per_head = torch.arange(24).reshape(2, 3, 4).to(integer)
    for positions in (batch, batch[0], batch[:1], per_head):
        rows = [t[positions.long()] for t in table]
        found = apply_rope_qk(q, k, *table, interleaved=interleaved, positions=positions)
        for y, x in zip(found, (q, k), strict=True):
            close(y, oracle(x, *rows, interleaved), x)
    assert launches == [2] * 4
    turned = q.transpose(1, 2)
    found = apply_rope(
        turned, *table, interleaved=interleaved, positions=batch.tolist(), position_axis=-3
    )
    rows = [t[batch.long()] for t in table]
    close(found, oracle(turned, *rows, interleaved, axis=-3), turned)


@PAIRINGS
def test_tables_of_any_strides(interleaved):
    """Catches strides of one table used for the other, and an axis of 1 that is stepped along."""
    cos, sin = tables(range(6), 8)
    x = draw(2, 3, 6, 8)
    pair = torch.stack([cos, sin], -1)  # as complex numbers lie
    for c, s in ((pair[..., 0], pair[..., 1]), (cos.mT.contiguous().mT, sin)):
        close(apply_rope(x, c, s, interleaved=interleaved), oracle(x, cos, sin, interleaved), x)
        at = torch.tensor([5, 0, 3, 3, 1, 2])
        close(
            apply_rope(x, c, s, interleaved=interleaved, positions=at),
            oracle(x, cos[at], sin[at], interleaved),
            x,
        )
    rows = [t.reshape(1, 3, 2, 4) for t in (cos, sin)]
    close(
        apply_rope(x[:, :, :2], *rows, interleaved=interleaved),
        oracle(x[:, :, :2], *rows, interleaved),
        x,
    )


def test_views_that_negate(launches):
    """Catches a sign that torch keeps beside the memory, for inputs and for outputs."""
    table, x = tables(range(4), 8), draw(2, 3, 4, 8)
    right = oracle(x, *table, True)
    close(apply_rope(torch._neg_view(-x), *table, interleaved=True), right, x)
    assert launches == []  # the formula
    memory = torch.empty_like(x)
    apply_rope(x, *table, interleaved=True, out=torch._neg_view(memory))
    close(-memory, right, x)
    assert launches == [1]


def test_queries_and_keys_that_do_not_fit_one_launch(launches):
    """Catches a launch that takes the strides of q for those of k."""
    table = tables(range(4), 6)
    q, k = draw(2, 3, 4, 8), draw(3, 4, 12, seed=1)  # other axes, another head_dim
    found = apply_rope_qk(q, k, *table, interleaved=False)
    for y, x in zip(found, (q, k), strict=True):
        close(y, oracle(x, *table, False), x)
    q, k = draw(2, 3, 4, 8), draw(2, 5, 4, 12, seed=1)
    launches.clear()
    found = apply_rope_qk(q, k, *table, interleaved=False)
    for y, x in zip(found, (q, k), strict=True):
        close(y, oracle(x, *table, False), x)
    assert launches == [2]
    q, k = draw(2, 1, 4, 8), draw(2, 5, 4, 8, seed=1)
    rows = [t.reshape(2, 4, 3) for t in tables(range(8), 6)]
    found = apply_rope_qk(q, k, *rows, interleaved=True)
    for y, x in zip(found, (q, k), strict=True):
        close(y, oracle(x, *rows, True), x)


@pytest.mark.parametrize("axis", ("batch", "head", "token"))
def test_addresses_beyond_32_bits(axis):
    """Catches offsets computed in 32 bits; the memory between is never touched."""
    far = 2**31 + 32
    room = torch.empty(far + 64, dtype=torch.float16)
    shape, strides = {
        "batch": ((2, 1, 3, 8), (far, 24, 8, 1)),
        "head": ((1, 2, 3, 8), (48, far, 8, 1)),
        "token": ((1, 1, 3, 8), (24, 24, far // 2, 1)),
    }[axis]
    x = room.as_strided(shape, strides)
    x.copy_(draw(*x.shape))
    table = tables(range(3), 8)
    right, source = oracle(x, *table, False), x.clone()
    close(apply_rope(x, *table, interleaved=False), right, source)
    apply_rope(x, *table, interleaved=False, out=x)
    close(x, right, source)


@PAIRINGS
def test_a_position_outside_gives_nan_where_no_error_can_be_raised(monkeypatch, interleaved):
    """Catches a clamp, a wrap to the last row, and memory read outside the tables."""
    around = torch.full((3, 4), 9.0)  # memory there is, but no row
    table = [torch.cat([around, t, around])[3:7] for t in tables(range(4), 8)]
    q, k = draw(2, 3, 5, 10), draw(2, 1, 5, 10, seed=1)
    positions = torch.tensor([[0, 4, 3, -1, 2], [1, 2**40, 2, 3, -(2**63)]])
    outside = (positions < 0) | (positions >= 4)
    with pytest.raises(ValueError, match=r"positions must lie in 0 ... 3, .* got 4"):
        apply_rope_qk(q, k, *table, interleaved=interleaved, positions=positions)
    monkeypatch.setattr(_rotation, "_cannot_ask", lambda index: True)
    found = apply_rope_qk(q, k, *table, interleaved=interleaved, positions=positions)
    rows = [t[positions.masked_fill(outside, 0)] for t in table]
    for y, x in zip(found, (q, k), strict=True):
        hidden = outside[:, None].expand(x.shape[:-1])
        assert torch.isnan(y[..., :8][hidden]).all()
        assert torch.equal(y[..., 8:], x[..., 8:])
        close(y[~hidden], oracle(x, *rows, interleaved)[~hidden.numpy()], x)


def test_the_door_answers_before_the_kernel(launches):
    """Catches an illegal launch: each in a sentence, and nothing is written."""
    table, x = tables(range(4), 8), draw(2, 3, 4, 8)
    for bad, positions, error, sentence in (
        (x, [0, 1, 2, 4], ValueError, "positions must lie in 0 ... 3"),
        (x, [0, 1, 2, -1], ValueError, "positions must lie in 0 ... 3"),
        (x.to("meta"), None, ValueError, "must be on one device, got meta and cpu"),
        (x.int(), None, TypeError, "x must be of a floating dtype"),
        (x.to(torch.float8_e5m2), None, TypeError, "x must be of a floating dtype"),
        (x.double(), None, TypeError, "cos must be float64"),
        (x[:, :, :3], None, ValueError, "cos must have T = 3"),
        (x[..., :6], None, ValueError, "cos must have at most"),
    ):
        with pytest.raises(error, match=sentence):
            apply_rope(bad, *table, interleaved=True, positions=positions)
    assert launches == []
    for shape in ((2, 3, 0, 8), (0, 3, 4, 8), (2, 0, 4, 8)):
        empty = draw(*shape)
        rows = [t[: shape[2]] for t in table]
        assert apply_rope(empty, *rows, interleaved=True).shape == shape
    assert launches == []
    q, k = apply_rope_qk(draw(2, 0, 4, 8), x, *table, interleaved=True)
    assert q.shape == (2, 0, 4, 8)
    close(k, oracle(x, *table, True), x)
    none = torch.zeros(0, dtype=torch.int64)
    assert apply_rope(x[:, :, :0], *table, interleaved=True, positions=none).numel() == 0
