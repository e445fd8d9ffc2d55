"""Tensors that look like any other, and are not: odd strides, no values, no grad, no rows."""

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from posenc import apply_rope, apply_rope_qk, convert_qk_weight, frequencies, rope_tables
from posenc.modules import RotaryEmbedding

F = frequencies(8)
PAIRINGS = pytest.mark.parametrize("interleaved", (False, True))


class Subclass(torch.Tensor):
    """A tensor that is not plain."""


def draw(*shape, dtype=torch.float32):
    return torch.as_tensor(np.random.default_rng(0).normal(size=shape)).to(dtype)


def at(positions, width=8):
    return rope_tables(torch.as_tensor(positions, dtype=torch.int64), frequencies(width))


@PAIRINGS
@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16))
@pytest.mark.parametrize("length", (1, 0))
def test_the_stride_of_an_axis_of_one_entry_says_nothing(interleaved, dtype, length):
    """Kind H. A token cut from an odd fused row: contiguous, and no view as complex numbers."""
    fused = draw(2, length, 25, dtype=dtype)
    x = fused[..., :24].unflatten(-1, (3, 8)).transpose(1, 2)[:1, 1:2]  # strides (25, 8, 25, 1)
    assert x.is_contiguous()
    assert x.stride(0) % 2 or not length
    cos, sin = at(range(5, 5 + length))
    y = apply_rope(x, cos, sin, interleaved=interleaved)
    assert torch.equal(y, apply_rope(x.clone(), cos, sin, interleaved=interleaved))
    wide = x.double()
    first, second = (wide[..., ::2], wide[..., 1::2]) if interleaved else wide.chunk(2, -1)
    turned = first * cos - second * sin, second * cos + first * sin
    exact = torch.stack(turned, -1).flatten(-2) if interleaved else torch.cat(turned, -1)
    assert torch.allclose(y.double(), exact, rtol=0, atol=1e-6 if dtype.itemsize == 4 else 0.02)


@PAIRINGS
@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16))
def test_memory_whose_sign_is_only_noted_gets_the_right_sign(interleaved, dtype):
    """Kind H. A lazily negated ``out`` knows no view as complex numbers."""
    x, table = draw(2, 3, 5, 8, dtype=dtype), at(range(5))
    out = torch._neg_view(torch.zeros_like(x))
    assert apply_rope(x, *table, interleaved=interleaved, out=out) is out
    assert torch.equal(out, apply_rope(x, *table, interleaved=interleaved))


@PAIRINGS
@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16))
@pytest.mark.parametrize("layout", ("plain", "transposed", "many"))
def test_the_default_device_changes_nothing(interleaved, dtype, layout):
    """Kind G. Models are built under ``torch.device("meta")``: tensors stay where they are."""
    x = draw(700 if layout == "many" else 2, 3, 5, 72, dtype=dtype)
    x = x.mT.contiguous().mT if layout == "transposed" else x
    table, positions = at(range(5), 72), torch.arange(5)
    module = RotaryEmbedding(frequencies(72), interleaved=interleaved)
    learning = x.clone().requires_grad_()
    right = apply_rope(x, *table, interleaved=interleaved)
    with torch.device("meta"):
        turned = apply_rope(x, *table, interleaved=interleaved)
        of_module, _ = module(x, x, positions)
        kept = apply_rope(learning, *table, interleaved=interleaved)
        kept.backward(x)
    for y in (turned, of_module, kept.detach()):
        assert torch.equal(y, right)
    back = apply_rope(x, *table, interleaved=interleaved, inverse=True)
    assert torch.equal(learning.grad, back)


@PAIRINGS
def test_tables_made_in_inference_mode_serve_training_too(interleaved):
    """Kind G. Autograd saves the tables, and refuses those that inference mode made."""
    with torch.inference_mode():
        table = at(range(5))
    assert table[0].is_inference()
    back = apply_rope(draw(2, 5, 8), *at(range(5)), interleaved=interleaved, inverse=True)
    for kind in (torch.Tensor, Subclass):  # by the function of autograd, and by the formula
        x = draw(2, 5, 8).as_subclass(kind).requires_grad_()
        apply_rope(x, *table, interleaved=interleaved).backward(x.detach())
        assert torch.allclose(x.grad.as_subclass(torch.Tensor), back, rtol=0, atol=1e-6)


def test_fake_tensors_have_shapes_and_no_addresses():
    """Kind G. Shapes are asked for: values of positions and places of ``out`` are not."""
    with FakeTensorMode():
        x, out, rows = torch.empty(2, 5, 8), torch.empty(2, 5, 8), torch.arange(5)
        cos, sin = torch.empty(9, 4), torch.empty(9, 4)
        table = torch.empty(5, 4), torch.empty(5, 4)
        assert apply_rope(x, cos, sin, interleaved=True, positions=rows).shape == x.shape
        assert apply_rope(x, *table, interleaved=True, out=out) is out
        assert apply_rope(x, *table, interleaved=True, out=x) is x


@pytest.mark.parametrize("transform", (torch.func.vmap, torch.func.functionalize))
def test_out_is_refused_where_memory_has_no_address(transform):
    """Kind H. Catches a sentence of torch's own about a data pointer."""
    table = at(range(5))
    with pytest.raises(ValueError, match="out must be left out under the transforms"):
        transform(lambda x: apply_rope(x, *table, interleaved=True, out=x))(draw(2, 5, 8))


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::PendingDeprecationWarning")
@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda t: t.to_sparse(), "a dense tensor, got torch.sparse_coo"),
        (lambda t: t.to_sparse_csr(), "a dense tensor, got torch.sparse_csr"),
        (lambda t: t.to_mkldnn(), "a dense tensor, got torch._mkldnn"),
        (lambda t: torch.nested.nested_tensor([t, t]), "a dense tensor, got a nested tensor"),
    ],
)
def test_tensors_without_rows_are_named(change, what):
    """Catches errors from inside torch, one for each layout."""
    x, (cos, sin) = draw(5, 8), at(range(5))
    for call, name in (
        (lambda: apply_rope(change(x), cos, sin, interleaved=True), "x"),
        (lambda: apply_rope(x, change(cos), sin, interleaved=False), "cos"),
        (lambda: apply_rope_qk(x, change(x), cos, sin, interleaved=True), "k"),
        (lambda: apply_rope(x, cos, sin, interleaved=True, out=change(x)), "out"),
        (lambda: convert_qk_weight(change(x.mT), 2, to_interleaved=True), "weight"),
    ):
        with pytest.raises(TypeError, match=f"^{name} must be {what}"):
            call()
    sparse = torch.arange(5).to_sparse()
    with pytest.raises(TypeError, match="positions must be a dense tensor"):
        apply_rope(x, cos, sin, interleaved=True, positions=sparse)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("kind", (np.matrix, np.ma.masked_array), ids=("matrix", "masked"))
def test_arrays_with_another_product_or_with_gaps_are_refused(kind):
    """Kind H. ``a * c`` of matrices is their matrix product: numbers, and wrong ones."""
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    cos, sin = rope_tables(np.arange(2), frequencies(4))
    for how in (
        {"x": kind(x), "cos": cos, "sin": sin},
        {"x": x, "cos": kind(cos), "sin": kind(sin)},
        {"x": x, "cos": cos, "sin": sin, "out": kind(x)},
    ):
        with pytest.raises(TypeError, match=r"^(x|cos|out) must not be "):
            apply_rope(**how, interleaved=True)
    with pytest.raises(TypeError, match=r"^weight must not be "):
        convert_qk_weight(kind(x), 1, to_interleaved=True)


@pytest.mark.parametrize("axis", (-2.0, -3.0, True, torch.tensor(-3), np.array([-2, -3]), "-2"))
def test_the_position_axis_is_one_of_two_integers(axis):
    """Catches -2.0, which equals -2 and slices nothing, and comparisons of whole arrays."""
    for shape in ((5, 8), (5, 3, 8)):
        with pytest.raises(ValueError, match=r"^position_axis must be -2 .* or -3 .*, got "):
            apply_rope(draw(*shape), *at(range(5)), interleaved=True, position_axis=axis)
    with pytest.raises(ValueError, match=r"^position_axis must be"):
        RotaryEmbedding(F, interleaved=True, position_axis=axis)


def test_a_numpy_integer_is_an_axis():
    """Catches a door that takes Python's integers alone."""
    x, table = draw(5, 3, 8), at(range(5))
    y = apply_rope(x, *table, interleaved=True, position_axis=np.int64(-3))
    assert torch.equal(y, apply_rope(x, *table, interleaved=True, position_axis=-3))


@pytest.mark.parametrize(
    ("q", "k", "sentence"),
    [
        (None, None, "q must be a tensor, got NoneType"),
        ([1.0], [1.0], "q must be a tensor, got list"),
        (np.ones((1, 8)), np.ones((1, 8)), "q must be a tensor, got ndarray"),
        (torch.ones(1, 8), [1.0], "k must be a tensor, got list"),
    ],
)
def test_the_module_takes_tensors(q, k, sentence):
    """Catches an AttributeError about dtype, from inside."""
    with pytest.raises(TypeError, match=f"^{sentence}"):
        RotaryEmbedding(F, interleaved=True)(q, k, [0])


@pytest.mark.skipif(not hasattr(torch, "float4_e2m1fn_x2"), reason="this torch has no float4")
def test_weights_of_packed_float4_are_moved_by_rows():
    """Kind A. torch has no index for this dtype; the bytes of a row move together."""
    packed = torch.arange(32, dtype=torch.uint8).reshape(8, 4)
    moved = convert_qk_weight(packed.view(torch.float4_e2m1fn_x2), 2, to_interleaved=True)
    assert moved.dtype == torch.float4_e2m1fn_x2
    assert torch.equal(moved.view(torch.uint8), packed[[0, 2, 1, 3, 4, 6, 5, 7]])


@PAIRINGS
def test_keys_may_have_other_axes_than_queries(interleaved):
    """Kind H. Catches the queries' form of a table used for keys that have no heads."""
    table = at([[0, 1, 2], [7, 8, 9]])
    q, k = draw(2, 2, 3, 8).requires_grad_(), draw(2, 3, 8).requires_grad_()
    for a, b in ((q, k), (k, q)):
        for x, y in zip((a, b), apply_rope_qk(a, b, *table, interleaved=interleaved), strict=True):
            assert torch.equal(y, apply_rope(x, *table, interleaved=interleaved))


def test_both_results_need_a_place_of_their_own():
    """Kind H. Catches a second result written over the first."""
    q, k, room = draw(5, 8), draw(5, 8) + 1, torch.zeros(5, 8)
    for out in ((room, room), (k, k), (q, q)):
        with pytest.raises(ValueError, match=r"^out of [qk] must be .*that shares nothing with"):
            apply_rope_qk(q, k, *at(range(5)), interleaved=True, out=out)
    assert not room.any()
    assert torch.equal(q + 1, k)
