"""The door of the rotation: which row of a table meets which token, where results go, errors."""

import numpy as np
import pytest
import torch

from posenc import apply_rope, apply_rope_qk, frequencies, rope_tables

F = frequencies(8)


def draw(*shape, dtype=torch.float32):
    return torch.as_tensor(np.random.default_rng(0).normal(size=shape)).to(dtype)


def at(positions, width=8):
    return rope_tables(torch.as_tensor(positions, dtype=torch.int64), frequencies(width))


def rope(x, table, **how):
    return apply_rope(x, *table, **{"interleaved": True, **how})


@pytest.mark.parametrize("interleaved", (False, True))
@pytest.mark.parametrize("axis", (-2, -3))
@pytest.mark.parametrize("width", (8, 4))
def test_rows_of_a_batch_have_their_own_positions(interleaved, axis, width):
    """Kind H. Golden value T8: as many heads as rows, so plain broadcasting is caught."""
    rows = torch.tensor([[0, 1, 2], [5, 6, 7]])
    x = draw(1, 2, 3, 8).expand(2, 2, 3, 8)  # 2 rows, 2 heads, the same in both rows
    x = x if axis == -2 else x.transpose(1, 2)
    how = {"interleaved": interleaved, "position_axis": axis}
    y = rope(x, at(rows, width), **how)
    assert not torch.equal(y[0], y[1])
    for b in range(2):
        assert torch.equal(y[b], rope(x[b], at(rows[b], width), **how))
    by_row = rope(x, at(range(9), width), positions=rows, **how)
    assert torch.equal(by_row, y)
    wide = [t.double() for t in at(rows, width)]
    q = k = x.double() if axis == -2 else x.double().transpose(1, 2)
    q, k = apply_rope_qk(q, k.flip(-2), *wide, interleaved=interleaved)
    if width == 8:
        relative = (q[0] @ k[0].mT) - (q[1] @ k[1].mT)
        assert relative.abs().max() < 1e-6  # float32 tables, made wide
    per_head = rope(x, at(rows.reshape(2, 1, 3), width), **how) if axis == -2 else y
    assert torch.equal(per_head, y)


def test_a_batch_axis_of_1_is_shared_and_heads_may_have_their_own():
    """Catches an axis of 1 that is refused, or matched with another axis."""
    x = draw(2, 3, 5, 8)
    shared = rope(x, at(torch.arange(5)))
    assert torch.equal(rope(x, at(torch.arange(5)[None])), shared)
    assert torch.equal(rope(x, at(torch.arange(5)[None, None])), shared)
    of_heads = torch.arange(15).reshape(1, 3, 5)
    y = rope(x, at(of_heads))
    for h in range(3):
        assert torch.equal(y[:, h], rope(x[:, h], at(of_heads[0, h])))


@pytest.mark.parametrize("interleaved", (False, True))
def test_positions_choose_rows_in_any_order(interleaved):
    """Kind C and H. Catches positions that are ignored: no arange among them."""
    x, table = draw(2, 3, 4, 8), at(range(40))
    positions = torch.tensor([[7, 3, 3, 39], [0, 12, 5, 1]])
    y = rope(x, table, positions=positions, interleaved=interleaved)
    assert torch.equal(y, rope(x, at(positions), interleaved=interleaved))
    one = [7, 3, 3, 39]
    assert torch.equal(rope(x, table, positions=one, interleaved=interleaved)[0], y[0])
    ours = apply_rope(
        x.numpy(),
        *(t.numpy() for t in table),
        interleaved=interleaved,
        positions=positions.numpy().astype(np.uint8),
    )
    assert np.abs(ours - y.numpy()).max() <= 5e-7
    narrow = rope(x, table, positions=positions.to(torch.int16), interleaved=interleaved)
    assert torch.equal(narrow, y)


@pytest.mark.parametrize("bad", (4, -1, 2**40))
@pytest.mark.parametrize("tensor", (False, True), ids=("numpy", "torch"))
def test_a_position_outside_the_tables_raises_and_writes_nothing(bad, tensor):
    """Kind C. Golden value T12: catches a clamp, a wrap to the last row, a zero, an IndexError."""
    x, cos, sin = draw(3, 8), *at(range(4))
    if not tensor:
        x, cos, sin = x.numpy(), cos.numpy(), sin.numpy()
    before = x.copy() if not tensor else x.clone()
    how = {"interleaved": False, "positions": [0, bad, 1], "out": x}
    sentence = rf"positions must lie in 0 ... 3, the rows of cos and sin, got {bad}"
    with pytest.raises(ValueError, match=sentence):
        apply_rope(x, cos, sin, **how)
    assert (x == before).all()


def test_calls_of_any_length_do_not_know_of_each_other():
    """Kind C. Golden value T12: lengths 4, 6, 4. Catches a cache that grows, or does not."""
    short, long = draw(4, 8), draw(6, 8)
    first = rope(short, at(range(4)))
    longer = rope(long, at(range(6)))
    assert torch.equal(rope(short, at(range(4))), first)
    assert torch.equal(longer[:4], rope(long[:4], at(range(4))))
    with pytest.raises(ValueError, match="cos must have T = 6 as x has on axis -2, got 4"):
        rope(long, at(range(4)))


@pytest.mark.parametrize("interleaved", (False, True))
@pytest.mark.parametrize("tensor", (False, True), ids=("numpy", "torch"))
def test_out_may_be_the_input_or_a_neighbour_in_one_memory(interleaved, tensor):
    """Kind H. Catches slices of a fused qkv refused, and a second half made from the new first."""
    fused = draw(2, 5, 3, 24)
    q, k, free = fused.split(8, -1)
    cos, sin = at(range(5))
    how = {"interleaved": interleaved, "position_axis": -3}
    right_q, right_k = apply_rope_qk(q.clone(), k.clone(), cos, sin, **how)
    if not tensor:
        q, k, free, cos, sin = (a.numpy() for a in (q, k, free, cos, sin))
    assert apply_rope(q, cos, sin, out=free, **how) is free
    assert np.abs(np.asarray(free) - right_q.numpy()).max() <= 5e-7
    both = apply_rope_qk(q, k, cos, sin, out=(q, k), **how)
    assert both[0] is q
    assert both[1] is k
    assert np.abs(np.asarray(q) - right_q.numpy()).max() <= 5e-7
    assert np.abs(np.asarray(k) - right_k.numpy()).max() <= 5e-7
    twin = q[:]  # another name for the same elements
    assert apply_rope(q, cos, sin, out=twin, inverse=True, **how) is twin


def overlapping():
    memory = torch.arange(200.0)
    return memory[:40].view(5, 8), memory[4:44].view(5, 8)


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (
            lambda x, t: rope(overlapping()[0], t, out=torch.empty(5, 4)),
            ValueError,
            r"out must have the shape of x, \[5, 8\], got \[5, 4\]",
        ),
        (
            lambda x, t: rope(x, t, out=torch.empty(5, 8, dtype=torch.float64)),
            ValueError,
            "out must have the dtype of x, torch.float32, got torch.float64",
        ),
        (
            lambda x, t: rope(x, t, out=torch.empty(5, 8, device="meta")),
            ValueError,
            "out must be on device cpu, got meta",
        ),
        (lambda x, t: rope(x, t, out=np.empty((5, 8), np.float32)), TypeError, "out must be x's k"),
        (
            lambda x, t: rope(x, t, out=torch.empty(1, 8).expand(5, 8)),
            ValueError,
            "out must not hold an element twice",
        ),
        (
            lambda x, t: rope(x.requires_grad_(), t, out=torch.empty(5, 8)),
            ValueError,
            "out must be left out while gradients are recorded",
        ),
        (
            lambda x, t: rope(x, t, out=torch.empty(5, 8, requires_grad=True)),
            ValueError,
            "out must be left out while gradients are recorded",
        ),
        (
            lambda x, t: rope(t[0].view(5, 4), (t[0][:, :2], t[1][:, :2]), out=t[0]),
            ValueError,
            "out must be memory that shares nothing with cos",
        ),
        (
            lambda x, t: apply_rope_qk(x, x.clone(), *t, interleaved=True, out=x),
            TypeError,
            r"out must be a pair \(q, k\), got Tensor",
        ),
        (
            lambda x, t: apply_rope_qk(x, x.clone(), *t, interleaved=True, out=(x, x)),
            ValueError,
            "out of k must be memory that shares nothing with q",
        ),
        (
            lambda x, t: apply_rope_qk(x, x, *t, interleaved=True, out=(x, x)),
            ValueError,
            "out of q must be memory that shares nothing with k",
        ),
    ],
)
def test_an_out_that_does_not_fit_is_refused(call, error, sentence):
    """Catches results written over what is still to be read, and gradients that get lost."""
    x, table = draw(5, 8), at(range(5))
    before = x.clone(), table[0].clone()
    with pytest.raises(error, match=sentence):
        call(x, table)
    assert torch.equal(x, before[0])
    assert torch.equal(table[0], before[1])


@pytest.mark.parametrize("tensor", (False, True), ids=("numpy", "torch"))
def test_an_out_that_overlaps_in_part_is_refused(tensor):
    """Kind H. Catches an element rotated twice."""
    x, out = overlapping()
    cos, sin = at(range(5))
    if not tensor:
        memory = np.arange(200, dtype=np.float32)
        x, out, cos, sin = memory[:40].reshape(5, 8), memory[4:44].reshape(5, 8), *at_numpy(5)
    with pytest.raises(ValueError, match="out must be x itself or memory that shares nothing"):
        apply_rope(x, cos, sin, interleaved=True, out=out)
    with pytest.raises(ValueError, match="out must be x itself or memory that shares nothing"):
        apply_rope(x, cos, sin, interleaved=True, out=x[::-1] if not tensor else out)
    assert float(x[0, 1]) == 1


def at_numpy(length):
    return rope_tables(range(length), F)


def test_a_read_only_out_is_refused():
    """Catches NumPy's own error from the inside."""
    x = np.ones((5, 8), np.float32)
    x.setflags(write=False)
    with pytest.raises(ValueError, match="out must be writeable, got a read-only array"):
        apply_rope(x, *at_numpy(5), interleaved=True, out=x)
    assert apply_rope(x, *at_numpy(5), interleaved=True).flags.writeable


X = np.ones((2, 5, 8), np.float32)


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: apply_rope(X, *at_numpy(5)), TypeError, "interleaved"),
        (
            lambda: apply_rope(X, *at_numpy(5), interleaved=None),
            TypeError,
            r"interleaved must be True for pairs \(2i, 2i \+ 1\) or False for .*, got None",
        ),
        (
            lambda: apply_rope(X, *at_numpy(5), interleaved=1),
            TypeError,
            "interleaved must be True .* got 1",
        ),
        (
            lambda: apply_rope(X, *at_numpy(5), interleaved=True, inverse=-1),
            TypeError,
            "inverse must be True or False, got -1",
        ),
        (
            lambda: apply_rope(X, *at_numpy(5), interleaved=True, position_axis=1),
            ValueError,
            r"position_axis must be -2 for \[..., T, head_dim\] or -3 for .* got 1",
        ),
        (
            lambda: apply_rope(X[0], *at_numpy(5), interleaved=True, position_axis=-3),
            ValueError,
            r"x must have shape \[..., T, H, head_dim\], got \[5, 8\]",
        ),
        (
            lambda: apply_rope(X[0, 0], *at_numpy(5), interleaved=True),
            ValueError,
            r"x must have shape \[..., T, head_dim\], got \[8\]",
        ),
        (
            lambda: apply_rope(X[..., :7], *at_numpy(5), interleaved=False),
            ValueError,
            r"x must have an even head_dim as its last axis, got \[2, 5, 7\]",
        ),
        (
            lambda: apply_rope(X[..., :6], *at_numpy(5), interleaved=False),
            ValueError,
            r"cos must have at most head_dim/2 = 3 columns for x, got 4",
        ),
        (
            lambda: apply_rope([[1.0, 2.0]], *at_numpy(1), interleaved=False),
            TypeError,
            "x must be an array or a tensor, got list",
        ),
        (
            lambda: apply_rope(X.astype(int), *at_numpy(5), interleaved=False),
            TypeError,
            "x must be of a floating dtype of 16 to 64 bits, got int64",
        ),
        (
            lambda: apply_rope(X.astype(float), *at_numpy(5), interleaved=False),
            TypeError,
            "cos must be float64 for x of float64, got float32",
        ),
        (
            lambda: apply_rope(
                torch.ones(5, 8, dtype=torch.bfloat16),
                *rope_tables(torch.arange(5), F, dtype=torch.bfloat16),
                interleaved=False,
            ),
            TypeError,
            "cos must be float32 for x of bfloat16, got bfloat16: tables are never narrowed",
        ),
        (
            lambda: apply_rope(X, at_numpy(5)[0], at_numpy(4)[1], interleaved=False),
            ValueError,
            r"cos and sin must have one shape, got \[5, 4\] and \[4, 4\]",
        ),
        (
            lambda: apply_rope(X, *(t[0] for t in at_numpy(5)), interleaved=False),
            ValueError,
            r"cos must have shape \[T, r/2\] or \[\*batch, T, r/2\], got \[4\]",
        ),
        (
            lambda: apply_rope(X, *(t[:, :0] for t in at_numpy(5)), interleaved=False),
            ValueError,
            r"cos must have shape \[T, r/2\] or \[\*batch, T, r/2\], got \[5, 0\]",
        ),
        (
            lambda: apply_rope(X, *at_numpy(6), interleaved=False),
            ValueError,
            "cos must have T = 5 as x has on axis -2, got 6",
        ),
        (
            lambda: apply_rope(X, *at_numpy(1), interleaved=False),
            ValueError,
            "cos must have T = 5 as x has on axis -2, got 1",
        ),
        (
            lambda: apply_rope(X, *(np.stack([t] * 3) for t in at_numpy(5)), interleaved=False),
            ValueError,
            r"cos must have batch axes that are 1 or the first axes of x, \[2\], got \[3\]",
        ),
        (
            lambda: apply_rope(
                np.ones((3, 2, 5, 8), np.float32),
                *(np.stack([t] * 2) for t in at_numpy(5)),
                interleaved=False,
            ),
            ValueError,
            r"cos must have batch axes that are 1 or the first axes of x, \[3, 2\], got \[2\]",
        ),
        (
            lambda: apply_rope(X, *(t[None, None] for t in at_numpy(5)), interleaved=False),
            ValueError,
            r"cos must have batch axes .* of x, \[2\], got \[1, 1\]",
        ),
        (
            lambda: apply_rope(X, *at_numpy(5), interleaved=False, positions=[0.0] * 5),
            TypeError,
            "positions must be integers, got float",
        ),
        (
            lambda: apply_rope(X, *at_numpy(5), interleaved=False, positions=np.ones(5, bool)),
            TypeError,
            "positions must be integers that fit in int64, got bool",
        ),
        (
            lambda: apply_rope(X, *at_numpy(5), interleaved=False, positions=3),
            ValueError,
            r"positions must have shape \[T\] or \[\*batch, T\], got \[\]",
        ),
        (
            lambda: apply_rope(X, *at_numpy(9), interleaved=False, positions=[1, 2]),
            ValueError,
            "positions must have T = 5 as x has on axis -2, got 2",
        ),
        (
            lambda: apply_rope(
                X, *(t[None] for t in at_numpy(9)), interleaved=False, positions=range(5)
            ),
            ValueError,
            r"cos must have shape \[rows, r/2\] if positions are given, got \[1, 9, 4\]",
        ),
        (
            lambda: apply_rope(torch.ones(5, 8), *at_numpy(5), interleaved=False),
            TypeError,
            "x and cos must both be NumPy's, or both torch's",
        ),
        (
            lambda: apply_rope(torch.ones(5, 8, device="meta"), *at(range(5)), interleaved=False),
            ValueError,
            "x and cos must be on one device, got meta and cpu",
        ),
        (
            lambda: apply_rope_qk(X, X.astype(np.float16), *at_numpy(5), interleaved=False),
            TypeError,
            "q and k must have one dtype, got float32 and float16",
        ),
        (
            lambda: apply_rope_qk(X, X[:, :4], *at_numpy(5), interleaved=False),
            ValueError,
            "cos must have T = 5|cos must have T = 4 as k has",
        ),
        (lambda: rope_tables([1.5], F), TypeError, "positions must be integers, got float"),
        (lambda: rope_tables([1], F.omega), TypeError, "frequencies must be Frequencies, got nd"),
    ],
)
def test_bad_input_gets_one_clear_sentence(call, error, sentence):
    """Catches shapes that broadcast by luck, narrowed tables, and errors from the inside."""
    with pytest.raises(error, match=sentence):
        call()


@pytest.mark.parametrize("wrong", ("rows", "width", "batch", "dtype", "device", "pairing"))
def test_the_short_way_refuses_what_the_long_one_does(wrong):
    """Catches a check that plain tensors in decoding pass by."""
    q, k, (cos, sin) = draw(2, 4, 1, 8), draw(2, 2, 1, 8), at([[7], [9]])
    right = apply_rope_qk(q, k, cos, sin, interleaved=True)
    assert torch.equal(right[0][0], rope(q[0], at([7])))
    shared = apply_rope_qk(q, k, cos[:1], sin[:1], interleaved=True)
    assert torch.equal(shared[1], rope(k, at([7])))
    if wrong == "rows":
        cos, sin = at([[7, 8], [9, 10]])
    elif wrong == "width":
        cos, sin = at([[7], [9]], 10)
    elif wrong == "batch":
        cos, sin = at([[7], [9], [11]])
    elif wrong == "dtype":
        cos, sin = cos.double(), sin.double()
    elif wrong == "device":
        cos = cos.to("meta")
    how = {"interleaved": "yes" if wrong == "pairing" else True}
    with pytest.raises((TypeError, ValueError), match="must"):
        apply_rope_qk(q, k, cos, sin, **how)


@pytest.mark.parametrize("shape", ((0, 3, 8), (2, 0, 8), (2, 3, 0, 8)))
def test_nothing_is_rotated_to_nothing(shape):
    """Catches a division by a size of 0."""
    for interleaved in (False, True):
        x = torch.ones(shape)
        assert rope(x, at(range(shape[-2])), interleaved=interleaved).shape == shape
        assert rope(x, at(range(shape[-2])), interleaved=interleaved, out=x) is x
        y = apply_rope(x.numpy(), *at_numpy(shape[-2]), interleaved=interleaved)
        assert y.shape == shape
