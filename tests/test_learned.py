"""Rows of published families, and resized tables against torch's interpolation."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import interpolate

from posenc.learned import positions_from_mask, resize, row_offset

GOLDEN = json.loads(Path(__file__).with_name("golden.json").read_text())


@pytest.mark.equation("eq-learned")
@pytest.mark.parametrize("golden", GOLDEN["learned_rows"], ids=lambda golden: golden["id"])
def test_golden_rows_of_masks(golden):
    """Catches tables read from row 0, padding counted, and positions not shifted by padding."""
    for mask in (np.array(golden["mask"]), torch.tensor(golden["mask"], dtype=torch.bool)):
        rows = positions_from_mask(mask) + row_offset(golden["family"])
        assert rows.tolist() == golden["rows"]
        assert str(rows.dtype).removeprefix("torch.") == "int64"


@pytest.mark.equation("eq-learned")
def test_roberta_starts_behind_its_padding_index():
    """Catches 514 rows taken for 514 tokens: 512, and with padding index 3 only 510."""
    ids = np.array([0, 5, 6, 2, 1, 1])
    assert (positions_from_mask(ids != 1) + row_offset("roberta")).tolist() == [2, 3, 4, 5, 1, 1]
    assert 514 - row_offset("roberta") == 512
    assert 514 - row_offset("roberta", padding_idx=3) == 510
    assert row_offset("xlm-roberta", padding_idx=0) == 1


@pytest.mark.equation("eq-learned")
def test_every_family_has_its_offset():
    """Catches a family that is dropped, or read from another row."""
    zero = ("albert", "bert", "distilbert", "electra", "gpt2")
    two = ("bart", "biogpt", "mbart", "opt", "plbart")
    after_padding = ("camembert", "longformer", "roberta", "xlm-roberta")
    assert {row_offset(family) for family in zero} == {0}
    assert {row_offset(family) for family in (*two, *after_padding)} == {2}
    assert {row_offset(family, padding_idx=5) for family in after_padding} == {6}


def test_masks_have_batches_and_holes():
    """Catches a running sum over the batch, and padding between tokens that counts."""
    mask = np.array([[0, 0, 1, 1], [1, 0, 1, 0], [0, 0, 0, 0], [3, 1, 1, 1]])
    right = [[-1, -1, 0, 1], [0, -1, 1, -1], [-1] * 4, [0, 1, 2, 3]]
    assert positions_from_mask(mask).tolist() == right
    assert positions_from_mask(torch.tensor(mask, dtype=torch.uint8)).tolist() == right


def test_masks_are_of_bool_or_of_any_integer_dtype():
    """Catches a dtype name that does not know swapped bytes."""
    for dtype in ("bool", "int8", "uint8", ">i4", "uint64"):
        assert positions_from_mask(np.array([0, 1, 1], dtype=dtype)).tolist() == [-1, 0, 1]
    for dtype in (torch.bool, torch.int8, torch.int64):
        assert positions_from_mask(torch.tensor([0, 1, 1]).to(dtype)).tolist() == [-1, 0, 1]


def drawn(rows, dim=5, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, dim))


def by_hand(table, size):
    """New row j at the old (j + 1/2) T/T' - 1/2, in exact fractions."""
    rows = []
    for j in range(size):
        at = (j + Fraction(1, 2)) * len(table) / size - Fraction(1, 2)
        at = min(max(at, Fraction(0)), Fraction(len(table) - 1))
        low = at.__floor__()
        share = float(at - low)
        rows.append((1 - share) * table[low] + share * table[min(low + 1, len(table) - 1)])
    return np.array(rows)


@pytest.mark.equation("eq-resize")
@pytest.mark.parametrize("old", (1, 2, 7, 38))
@pytest.mark.parametrize("new", (1, 2, 7, 59, 60, 61, 300))
def test_resizing_is_linear_interpolation(old, new):
    """Catches another alignment, an extrapolated border, and a length off by one."""
    table = drawn(old)
    found = resize(table, new)
    assert found.shape == (new, 5)
    np.testing.assert_allclose(found, by_hand(table, new), rtol=0, atol=1e-15)
    theirs = interpolate(torch.tensor(table).T[None], size=new, mode="linear")[0].T
    np.testing.assert_allclose(found, theirs, rtol=0, atol=2e-14)
    narrow = resize(torch.tensor(table).float(), new)
    theirs = interpolate(torch.tensor(table).float().T[None], size=new, mode="linear")[0].T
    assert (narrow - theirs).abs().max() <= 1e-5
    assert narrow.dtype == torch.float32


@pytest.mark.equation("eq-resize")
@pytest.mark.parametrize("prefix", (0, 1, 5))
@pytest.mark.parametrize(
    ("grid", "size"),
    [((14, 14), (16, 16)), ((14, 14), (7, 37)), ((6, 10), (60, 38)), ((1, 3), (5, 1))],
)
def test_pictures_are_resized_by_size_and_their_prefix_stays(grid, size, prefix):
    """Catches rows and columns swapped, non-square grids, and a class token that is mixed in."""
    table = drawn(prefix + grid[0] * grid[1])
    found = resize(table, size, grid=grid, prefix=prefix)
    assert found.shape == (prefix + size[0] * size[1], 5)
    assert (found[:prefix] == table[:prefix]).all()
    picture = torch.tensor(table[prefix:]).reshape(1, *grid, 5).permute(0, 3, 1, 2)
    theirs = interpolate(picture, size=size, mode="bilinear")[0].permute(1, 2, 0).reshape(-1, 5)
    np.testing.assert_allclose(found[prefix:], theirs, rtol=0, atol=1e-13)
    if grid[0] == grid[1]:
        assert (resize(table, size, prefix=prefix) == found).all()
    batch = np.stack([table, 2 * table])
    assert (resize(batch, size, grid=grid, prefix=prefix) == np.stack([found, 2 * found])).all()


def test_the_size_is_hit_where_a_factor_misses_it():
    """DINO's trap: 11 * (60 / 11) is 59.99... Catches a size made of a factor."""
    assert interpolate(torch.zeros(1, 1, 11), scale_factor=60 / 11, mode="linear").shape[-1] == 59
    missed = [(a, b) for a in range(1, 80) for b in range(1, 80) if int(a * (b / a)) != b]
    assert (11, 60) in missed
    for old, new in missed:
        assert resize(np.zeros((old, 1)), new).shape == (new, 1)
        assert resize(np.zeros((1 + old, 1)), (1, new), grid=(1, old), prefix=1).shape[0] == 1 + new


@pytest.mark.parametrize("name", ("float16", "bfloat16", "float32", "float64"))
def test_a_table_of_the_same_size_comes_back_and_dtypes_stay(name):
    """Catches rounding of rows that do not move, and 16-bit arithmetic."""
    table = torch.tensor(drawn(12)).to(getattr(torch, name))
    assert torch.equal(resize(table, 12), table)
    assert torch.equal(resize(table, (3, 4), grid=(3, 4)), table)
    wide = torch.promote_types(table.dtype, torch.float32)
    assert torch.equal(resize(table, 30), resize(table.to(wide), 30).to(table.dtype))
    if name != "bfloat16":
        assert resize(table.numpy(), 30).dtype == name
        np.testing.assert_array_equal(resize(table.numpy(), 30), resize(table, 30).numpy())


def test_rows_that_do_not_move_are_not_touched():
    """Catches an axis of the same size interpolated: 0 * inf is nan."""
    table = np.array([[1.0, 2.0], [np.inf, -np.inf], [3.0, 4.0]])
    np.testing.assert_array_equal(resize(table, 3), table)
    np.testing.assert_array_equal(resize(table, (3, 1), grid=(3, 1)), table)


@pytest.mark.parametrize("name", ("f4", "f8"))
def test_swapped_bytes_are_the_same_numbers(name):
    """Catches a big-endian table refused, or float64 taken for float32."""
    table = drawn(3).astype(name)
    found = resize(table.astype(">" + name), 7)
    assert found.dtype.name == table.dtype.name
    np.testing.assert_array_equal(found, resize(table, 7))


def test_gradients_pass_and_other_devices_keep_theirs():
    """Catches a table that is detached or moved."""
    table = torch.zeros(3, 2, requires_grad=True)
    resize(table, 6).sum().backward()
    assert torch.equal(table.grad, torch.full((3, 2), 2.0))
    assert resize(torch.zeros(5, 2, device="meta"), (3, 3), prefix=1).is_meta


T = np.ones((10, 2))


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: row_offset("llama"), ValueError, "family must be 'albert' or .* got 'llama'"),
        (lambda: row_offset(None), ValueError, "family must be .* got None"),
        (
            lambda: row_offset("opt", padding_idx=1),
            ValueError,
            "padding_idx must be left out: positions of 'opt' do not use it",
        ),
        (lambda: row_offset("roberta", padding_idx=1.0), TypeError, "padding_idx must be an int"),
        (lambda: row_offset("roberta", padding_idx=-1), ValueError, "padding_idx must be at least"),
        (
            lambda: positions_from_mask(torch.zeros(3)),
            TypeError,
            "mask must be bool or integers, not 0 at tokens, got torch.float32",
        ),
        (
            lambda: positions_from_mask([1]),
            TypeError,
            "mask must be an array or a tensor, got list",
        ),
        (lambda: positions_from_mask(np.array(True)), ValueError, "mask must have shape"),
        *(
            (
                lambda mask=mask: positions_from_mask(mask),
                TypeError,
                f"mask must be bool or integers, not 0 at tokens, got {dtype}",
            )
            for mask, dtype in (
                (np.array([1j]), "complex128"),
                (torch.tensor([1j]), "torch.complex64"),
                (np.array(["a", ""]), "<U1"),
                (np.array([1, None]), "object"),
                (np.array([1], dtype="m8[s]"), "timedelta64"),
            )
        ),
        (
            lambda: positions_from_mask(np.ma.ones(3, dtype=bool)),
            TypeError,
            "mask must not be masked: fill the gaps",
        ),
        (lambda: resize(np.ma.ones((3, 2)), 3), TypeError, "table must not be masked"),
        (
            lambda: resize(T.astype(np.longdouble), 3),
            TypeError,
            "table must be an array or tensor of bfloat16, .* or float64, got (float128|longd)",
        ),
        (lambda: resize(T.astype(int), 3), TypeError, "table must be .* or float64, got int64"),
        (lambda: resize([[1.0]], 3), TypeError, "table must be an array or tensor .* got list"),
        (lambda: resize(T[0], 3), ValueError, r"table must have shape \[..., T, d\], got \[2\]"),
        (lambda: resize(T, 0), ValueError, "size must be at least 1, got 0"),
        (lambda: resize(T, 1.5), TypeError, "size must be an integer, got float"),
        (lambda: resize(T, (3, 2.0), grid=(5, 2)), TypeError, "size must be an integer, got float"),
        (lambda: resize(T, (3, 2, 1)), ValueError, r"size must be a number or a pair \(H, W\)"),
        (lambda: resize(T, 3, prefix=10), ValueError, "prefix must leave a row, got 10 of 10"),
        (lambda: resize(T, 3, prefix=-1), ValueError, "prefix must be at least 0, got -1"),
        (
            lambda: resize(T, (3, 3)),
            ValueError,
            "grid must be given: 10 rows behind a prefix of 0 make no square",
        ),
        (
            lambda: resize(T, (3, 3), grid=(5, 2), prefix=1),
            ValueError,
            r"grid must hold the 9 rows behind a prefix of 1, got \(5, 2\)",
        ),
        (lambda: resize(T, (3, 3), grid=10), TypeError, "grid must be a pair .* got int"),
        (lambda: resize(T, 9, grid=(5, 2)), ValueError, "size must be a pair .* got 9"),
    ],
)
def test_bad_input_gets_one_clear_sentence(call, error, sentence):
    """Catches class tokens taken for patches, factors, and errors from the inside."""
    with pytest.raises(error, match=sentence):
        call()
