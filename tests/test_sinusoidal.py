"""The encoding, its layouts and spacings, and the matrix that shifts it."""

import json
from pathlib import Path

import mpmath
import numpy as np
import oracle
import pytest
import torch

from posenc import frequencies, phases, shift, shift_matrix, sinusoidal_encoding

GOLDEN = json.loads(Path(__file__).with_name("golden.json").read_text())["sinusoidal"]
LAYOUTS = ("interleaved", "concatenated")
SPACINGS = ("paper", "endpoint")


def by_hand(positions, dim, layout="interleaved", spacing="paper", base=10000.0):
    """Element by element from the formula, in mpmath."""
    make = oracle.paper_omega if spacing == "paper" else oracle.endpoint_omega
    cos, sin = oracle.cos_sin(list(positions), make(dim, base))
    table = np.empty((len(cos), dim))
    if layout == "interleaved":
        table[:, 0::2], table[:, 1::2] = sin, cos[:, : dim // 2]
    else:
        table[:] = np.concatenate([sin, cos[:, : dim // 2]], axis=1)
    return table


def tensor2tensor(positions, dim, base=1e4):
    """The authors' code as published, step by step: timescales, two halves, a zero column."""
    pairs = dim // 2
    increment = np.log(base) / max(pairs - 1, 1)
    scaled = np.outer(positions, np.exp(np.arange(pairs) * -increment))
    signal = np.concatenate([np.sin(scaled), np.cos(scaled)], axis=1)
    return np.pad(signal, [[0, 0], [0, dim % 2]])


@pytest.mark.equation("eq-sinusoidal")
@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden["id"])
def test_golden_rows(golden):
    """Catches a doubled exponent, swapped halves and swapped columns, by numbers made elsewhere."""
    row = sinusoidal_encoding(
        golden["positions"],
        golden["dim"],
        layout=golden["layout"],
        spacing=golden["spacing"],
        dtype=np.float64,
    )
    np.testing.assert_allclose(row, golden["row"], rtol=0, atol=1e-9)


@pytest.mark.equation("eq-sinusoidal")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("spacing", SPACINGS)
@pytest.mark.parametrize("dim", (1, 2, 5, 6, 64))
def test_every_entry_follows_the_formula(dim, layout, spacing):
    """Catches sine and cosine swapped, a cosine with its own exponent, and layouts mixed up."""
    if dim % 2 and spacing == "endpoint":
        with pytest.raises(ValueError, match="dim must be even with spacing='endpoint', got"):
            sinusoidal_encoding(3, dim, spacing=spacing)
        return
    positions = [0, 1, 711, 2596, 10**9, -(2**63), 2**63 - 1]
    right = by_hand(positions, dim, layout, spacing)
    options = {"layout": layout, "spacing": spacing}
    wide = sinusoidal_encoding(np.array(positions), dim, **options, dtype=np.float64)
    assert np.abs(wide - right).max() <= 2.3e-16
    assert (sinusoidal_encoding(positions, dim, **options) == right.astype(np.float32)).all()
    torch_table = sinusoidal_encoding(torch.tensor(positions), dim, **options)
    assert (torch_table.numpy() == right.astype(np.float32)).all()


@pytest.mark.equation("eq-sinusoidal")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dim", (6, 7))
@pytest.mark.parametrize("device", (None, "cpu"))
def test_a_range_writes_the_same_rows(layout, dim, device):
    """Catches the fast way writing another layout, or dropping the last sine of an odd dim."""
    span = range(10**6 + 3, 10**6 + 1003)
    right = by_hand(span, dim, layout).astype(np.float32)
    assert (np.asarray(sinusoidal_encoding(span, dim, layout=layout, device=device)) == right).all()


@pytest.mark.equation("eq-endpoint-spacing")
@pytest.mark.parametrize("dim", (2, 4, 64, 512))
def test_the_authors_code_is_the_concatenated_endpoint_encoding(dim):
    """Catches a spacing or layout that merely resembles tensor2tensor's."""
    ours = sinusoidal_encoding(
        range(200), dim, layout="concatenated", spacing="endpoint", dtype=np.float64
    )
    np.testing.assert_allclose(ours, tensor2tensor(range(200), dim), rtol=0, atol=1e-12)


def test_the_papers_formula_and_its_code_differ():
    """Catches a spacing argument that changes nothing: they part by .143 within 100 positions."""
    rows = {s: sinusoidal_encoding(range(101), 512, spacing=s, dtype=np.float64) for s in SPACINGS}
    assert round(float(np.abs(rows["paper"] - rows["endpoint"]).max()), 3) == 0.143


@pytest.mark.equation("eq-norm")
@pytest.mark.parametrize("position", (0, 1, 511, 10**9, 2**63 - 1))
def test_every_row_has_the_norm_of_half_the_channels(position):
    """Catches a cosine with a frequency of its own: sin^2 + cos^2 = 1 only within a pair."""
    row = sinusoidal_encoding(position, 512, dtype=np.float64)
    assert abs(float(row @ row) - 256) < 1e-12


@pytest.mark.equation("eq-norm")
def test_uniqueness_far_beyond_the_longest_wavelength():
    """Catches a code that repeats: the nearest row to position 0 is its neighbour's, at 3.714."""
    table = sinusoidal_encoding(range(300000), 512)
    distances = np.sqrt(np.maximum(512 - 2 * (table[1:] @ table[0].astype(np.float32)), 0))
    assert int(distances.argmin()) + 1 == 1
    assert round(float(distances[0]), 3) == 3.714


@pytest.mark.equation("eq-coarse-fine")
@pytest.mark.parametrize("start", (0, 2**40 + 7))
def test_at_most_one_entry_in_ten_million_is_off_by_one_ulp(start):
    """Catches a product of phases that loses digits: 33.5 million entries, rounded singly."""
    table = sinusoidal_encoding(range(start, start + 65536), 512, device="cpu")
    wrong = 0
    for rows in range(0, 65536, 8192):
        index = torch.arange(start + rows, start + rows + 8192)
        right = sinusoidal_encoding(index, 512)
        apart = oracle.ulps_apart(table[rows : rows + 8192].numpy(), right.numpy())
        assert apart.max() <= 1
        wrong += int(apart.sum())
    assert wrong <= 3


def test_the_table_is_built_from_exact_angles_not_float32_ones():
    """Catches int(p) through float32, and angles in float32: both fail at 2**24 + 1."""
    found = sinusoidal_encoding([2**24 + 1], 512)
    assert (found == by_hand([2**24 + 1], 512).astype(np.float32)).all()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_out_is_filled_by_either_way(layout):
    """Catches an out that is ignored by one of the two ways."""
    right = by_hand(range(100), 7, layout).astype(np.float32)
    for positions in (range(100), list(range(100))):
        for out in (np.empty((100, 7), np.float32), torch.empty(100, 7), torch.empty(7, 100).T):
            assert sinusoidal_encoding(positions, 7, layout=layout, out=out) is out
            assert (np.asarray(out) == right).all()


# ---- the shift -------------------------------------------------------------------------------


@pytest.mark.equation("eq-shift-matrix")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("spacing", SPACINGS)
@pytest.mark.parametrize("offset", (1, 17, -5, 10**9))
def test_the_shift_matrix_carries_every_row(layout, spacing, offset):
    """Catches the sign of M_k, its transpose, and a matrix for another layout or spacing."""
    here, there = [0, 1, 999, -7, 10**12], [p + offset for p in (0, 1, 999, -7, 10**12)]
    options = {"layout": layout, "spacing": spacing}
    matrix = shift_matrix(offset, 64, **options)
    rows = by_hand(here, 64, **options)
    assert np.abs(rows @ matrix.T - by_hand(there, 64, **options)).max() < 1e-15


@pytest.mark.equation("eq-addition")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("spacing", SPACINGS)
def test_shifting_without_the_matrix_is_the_addition_formula(layout, spacing):
    """Catches a sign in either addition formula."""
    options = {"layout": layout, "spacing": spacing}
    rows, offset = by_hand(range(50), 64, **options), 23
    moved = shift(rows, offset, **options)
    assert np.abs(moved - by_hand(range(23, 73), 64, **options)).max() < 1e-15
    assert np.abs(moved - rows @ shift_matrix(offset, 64, **options).T).max() < 1e-15


@pytest.mark.equation("eq-block")
def test_the_matrix_is_made_of_two_by_two_blocks():
    """Catches anything outside the blocks, and a block [[c, -s], [s, c]]."""
    matrix, omega = shift_matrix(3, 8), oracle.paper_omega(8)
    right = np.zeros((8, 8))
    for i, w in enumerate(omega):
        c, s = float(mpmath.cos(3 * w)), float(mpmath.sin(3 * w))
        right[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[c, s], [-s, c]]
    assert np.abs(matrix - right).max() < 2.3e-16


@pytest.mark.equation("eq-orthogonal")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_matrix_is_orthogonal_with_determinant_one(layout):
    """Catches blocks that scale or reflect."""
    matrix = shift_matrix(12345, 64, layout=layout)
    assert np.abs(matrix.T @ matrix - np.eye(64)).max() < 1e-15
    assert abs(np.linalg.det(matrix) - 1) < 1e-12


@pytest.mark.equation("eq-composition")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("pair", ((5, 12), (-3, 3), (10**15, 7)))
def test_shifts_compose_by_adding_their_offsets(layout, pair):
    """Catches matrices that are no group: M_5 M_12 must be M_17."""
    j, k = pair
    product = shift_matrix(j, 64, layout=layout) @ shift_matrix(k, 64, layout=layout)
    assert np.abs(product - shift_matrix(j + k, 64, layout=layout)).max() < 1e-15


@pytest.mark.equation("eq-inverse")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_shifting_back_is_the_transpose(layout):
    """Catches a sign lost for negative offsets."""
    back = shift_matrix(-17, 64, layout=layout)
    assert np.abs(back - shift_matrix(17, 64, layout=layout).T).max() <= 2.3e-16


def matrix_exponential(matrix):
    """The exp of a small matrix by its power series, after halving: slow and obvious."""
    halvings = 20
    term = total = np.eye(len(matrix))
    for n in range(1, 20):
        term = term @ (matrix / 2**halvings) / n
        total = total + term
    for _ in range(halvings):
        total = total @ total
    return total


@pytest.mark.equation("eq-generator")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_matrix_is_the_exponential_of_its_generator(layout):
    """Catches a generator that is not antisymmetric, or turns the other way."""
    omega, generator = frequencies(8).omega, np.zeros((8, 8))
    for i, w in enumerate(omega):
        s, c = (2 * i, 2 * i + 1) if layout == "interleaved" else (i, 4 + i)
        generator[s, c], generator[c, s] = w, -w
    assert np.array_equal(generator, -generator.T)
    found = matrix_exponential(7 * generator)
    assert np.abs(found - shift_matrix(7, 8, layout=layout)).max() < 1e-9


@pytest.mark.equation("eq-eigenvalues")
def test_the_eigenvalues_are_the_turned_hands():
    """Catches frequencies that are not those of the encoding: e^(+-i omega k), on the circle."""
    found = np.linalg.eigvals(shift_matrix(3, 8))
    angles = [float(3 * w) for w in oracle.paper_omega(8)]
    right = np.exp(1j * np.array([*angles, *(-a for a in angles)]))
    distance = np.abs(found[:, None] - right[None, :])
    assert distance.min(axis=0).max() < 1e-12
    assert distance.min(axis=1).max() < 1e-12


@pytest.mark.equation("eq-coarse-fine")
def test_a_coarse_phasor_times_a_fine_one_is_the_row():
    """Catches a conjugate on the wrong factor: the product must read sin, cos in this order."""
    value, start, j = frequencies(16), 2**40 + 7, 5
    cos, sin = phases([start, j, start + j], value, dtype=np.float64)
    product = (sin[0] + 1j * cos[0]) * (cos[1] - 1j * sin[1])  # i e^(-iwp) e^(-iwj)
    assert np.abs(product - (sin[2] + 1j * cos[2])).max() < 5e-16
    row = np.ascontiguousarray(product).view(np.float64)
    assert np.abs(row - sinusoidal_encoding(start + j, 16, dtype=np.float64)).max() < 5e-16


@pytest.mark.parametrize("dtype", ("bfloat16", "float16", "float32", "float64"))
def test_shifted_tensors_keep_dtype_and_gradient(dtype):
    """Catches half precision arithmetic, a lost gradient, and a promoted result."""
    rows = torch.as_tensor(by_hand(range(40), 8)).to(getattr(torch, dtype)).requires_grad_()
    moved = shift(rows, 9)
    exact = rows.detach().double().numpy() @ shift_matrix(9, 8).T
    assert moved.dtype == rows.dtype
    half_ulp = {"bfloat16": 2**-9, "float16": 2**-12, "float32": 2**-23, "float64": 2**-51}[dtype]
    bound = half_ulp * 1.001  # below 1, plus what double rounding may add
    assert np.abs(moved.detach().double().numpy() - exact).max() <= bound
    moved.sum().backward()
    right = shift_matrix(9, 8).sum(axis=0)
    assert np.abs(rows.grad[0].double().numpy() - right).max() < 0.02


def test_shift_keeps_numpy_dtypes_and_leading_axes():
    """Catches a flattened batch and a float64 result for float32 rows."""
    rows = sinusoidal_encoding(np.arange(12).reshape(3, 4), 8)
    moved = shift(rows, 2)
    assert moved.dtype == np.float32
    assert np.abs(moved - sinusoidal_encoding(np.arange(12).reshape(3, 4) + 2, 8)).max() < 3e-7


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda: sinusoidal_encoding(1, 0), ValueError, "dim must be at least 1, got 0"),
        (lambda: sinusoidal_encoding(1, 4.0), TypeError, "dim must be an integer, got float"),
        (lambda: sinusoidal_encoding(1, 4, base=0), ValueError, "base must be positive"),
        (
            lambda: sinusoidal_encoding(1, 4, layout="sin_cos"),
            ValueError,
            "layout must be 'interleaved' or 'concatenated', got 'sin_cos'",
        ),
        (
            lambda: sinusoidal_encoding(1, 4, spacing=None),
            ValueError,
            "spacing must be 'paper' or 'endpoint', got None",
        ),
        (lambda: sinusoidal_encoding(1.5, 4), TypeError, "positions must be integers, got float"),
        (
            lambda: sinusoidal_encoding(range(2), 4, out=np.empty((2, 5), np.float32)),
            ValueError,
            r"out must have shape \[2, 4\], got \[2, 5\]",
        ),
        (
            lambda: sinusoidal_encoding(range(2), 4, out=np.empty((2, 4), np.int32)),
            TypeError,
            "dtype must be float16, float32 or float64, got int32",
        ),
        (lambda: shift_matrix(1, 5), ValueError, "dim must be even, got 5"),
        (lambda: shift_matrix(1.0, 4), TypeError, "offset must be an integer, got float"),
        (lambda: shift_matrix(2**63, 4), ValueError, "offset must fit in int64"),
        (lambda: shift_matrix(1, 4, layout=0), ValueError, "layout must be"),
        (lambda: shift(np.zeros(5), 1), ValueError, "dim must be even, got 5"),
        (lambda: shift(np.zeros(4, int), 1), TypeError, "dtype must be float16, .* got int64"),
        (lambda: shift([0.0, 1.0], 1), TypeError, r"encoding must be rows \[..., d\], got list"),
        (lambda: shift(np.float64(1), 1), TypeError, "encoding must be rows"),
        (lambda: shift(np.zeros(4), 1.0), TypeError, "offset must be an integer, got float"),
        (lambda: shift(torch.zeros(4), True), TypeError, "offset must be an integer, got bool"),
    ],
)
def test_bad_input_gets_one_clear_sentence(make, error, sentence):
    """Catches errors from the inside, and words of other libraries taken for ours."""
    with pytest.raises(error, match=sentence):
        make()


def test_the_base_reaches_the_shift():
    """Catches a shift by the default frequencies, whatever base the rows have."""
    rows = by_hand([3, 20], 8, base=500.0)
    assert np.abs(shift_matrix(17, 8, base=500.0) @ rows[0] - rows[1]).max() < 1e-15
    assert np.abs(shift(rows[0], 17, base=500.0) - rows[1]).max() < 1e-15


def test_byte_order_does_not_narrow_a_shift():
    """Catches big-endian float64 shifted in float32."""
    rows = by_hand(range(5), 8)
    assert np.abs(shift(rows.astype(">f8"), 9) - shift(rows, 9)).max() == 0


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")
def test_tracing_the_frequencies_is_refused_with_the_way_out():
    """Catches an error from inside the tracer, which cannot follow mpmath."""
    compiled = torch.compile(lambda p: sinusoidal_encoding(p, 8), fullgraph=True)
    with pytest.raises(Exception, match="frequencies cannot be computed while torch traces"):
        compiled(torch.arange(5))


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")
def test_without_fullgraph_the_graph_breaks_and_the_table_is_right():
    """Catches a crash of the tracer where it should step aside."""
    table = torch.compile(lambda p: 2 * sinusoidal_encoding(p, 8))
    moved = torch.compile(lambda x: shift(x, 3) + 0)
    for length in (5, 9):
        index = torch.arange(length)
        right = sinusoidal_encoding(index, 8)
        assert torch.equal(table(index), 2 * right)
        assert torch.equal(moved(right), shift(right, 3))
