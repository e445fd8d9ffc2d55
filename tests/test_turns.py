"""Phases: exact at every int64 position, in NumPy and torch, by either way."""

import random
import subprocess
import sys

import mpmath
import numpy as np
import oracle
import pytest
import torch

from posenc import Frequencies, frequencies, phases

EDGES = [
    0,
    1,
    -1,
    2**24 + 1,
    2**53 - 1,
    2**53,
    2**53 + 1,
    2**62,
    2**63 - 1,
    -(2**62) - 12345,
    -(2**63),
]
OWN = [1.0, 0.1, 0.3333333333333333, -2.5, 0.0, 7e-5, 123.456, 1e-17]
COMPILE_NOISE = (  # torch's own warnings while it traces
    "ignore:.*should not be instantiated:DeprecationWarning",
    "ignore:.*torch.jit.script_method:DeprecationWarning",
)


def random_positions(seed):
    """Two positions of each sign in every octave, and the edges."""
    draw = random.Random(seed)
    octaves = [draw.randrange(2**k, 2 ** (k + 1)) for k in range(63) for _ in range(2)]
    return EDGES + [p * draw.choice((1, -1)) for p in octaves]


@pytest.mark.equation("eq-turns")
@pytest.mark.parametrize("kind", ("default", "own"))
@pytest.mark.parametrize("library", ("numpy", "torch"))
def test_phases_are_exact_in_every_octave(kind, library):
    """Catches angles formed in floating point, lost carries, and a wrong sign below zero."""
    if kind == "default":
        value, omega = frequencies(32), oracle.paper_omega(32)
    else:
        value, omega = Frequencies(OWN), [mpmath.mpf(w) for w in OWN]
    positions = random_positions(seed=7)
    right = oracle.cos_sin(positions, omega)
    index = np.array(positions) if library == "numpy" else torch.tensor(positions)
    wide = np.float64 if library == "numpy" else torch.float64
    for found, exact in zip(phases(index, value, dtype=wide), right, strict=True):
        assert np.abs(np.asarray(found) - exact).max() <= 2.3e-16
    for found, exact in zip(phases(index, value), right, strict=True):
        assert np.asarray(found).dtype == np.float32
        assert (np.asarray(found) == exact.astype(np.float32)).all()


@pytest.mark.equation("eq-turns")
def test_phases_of_the_whole_width_are_exact_at_the_edges():
    """Catches a table whose slow or fast pairs are wrong where int64 ends."""
    right = oracle.cos_sin(EDGES, oracle.paper_omega(512))
    found = phases(np.array(EDGES), frequencies(512), dtype=np.float64)
    assert max(np.abs(f - r).max() for f, r in zip(found, right, strict=True)) <= 2.3e-16


@pytest.mark.equation("eq-turns")
def test_wrap_around_is_the_range_reduction():
    """Catches a formula that is not p times the fraction modulo one turn, in Python's integers."""
    value = frequencies(16)
    for p in EDGES:
        for (high, low), cosine in zip(
            value.turns.tolist(), phases(p, value, dtype=np.float64)[0], strict=True
        ):
            fraction = p * ((high << 64) + low) % 2**128
            with mpmath.workdps(oracle.DIGITS):
                right = float(mpmath.cos(mpmath.ldexp(fraction, -127) * mpmath.pi))
            assert abs(right - cosine) <= 2.3e-16


@pytest.mark.equation("eq-odometer")
def test_a_bit_is_one_while_its_wave_is_negative():
    """Catches a sign, or a half step, in the bridge from binary digits to waves."""
    n, places = np.arange(1024), np.arange(10)
    hands = Frequencies(2 * np.pi / 2.0 ** (places + 2))
    sines = phases(2 * n + 1, hands)[1]  # 2n + 1 half steps of n + 1/2
    digits = np.array([[oracle.bit_of(int(k), int(b)) for b in places] for k in n])
    assert ((sines < 0) == digits).all()


def test_a_user_frequency_of_a_quarter_turn_lands_on_the_axes():
    """Catches quadrants swapped or negated: quarter turns must read 1, 0, -1, 0."""
    cos, sin = phases(range(8), Frequencies([np.pi / 2]), dtype=np.float64)
    assert cos[:, 0].round(9).tolist() == [1, 0, -1, 0] * 2
    assert sin[:, 0].round(9).tolist() == [0, 1, 0, -1] * 2


def disagreements(found, right):
    """Entries that differ; none may by more than one unit in the last place."""
    apart = oracle.ulps_apart(np.asarray(found), np.asarray(right))
    assert apart.max(initial=0) <= 1
    return int((apart > 0).sum())


@pytest.mark.equation("eq-coarse-fine")
@pytest.mark.parametrize("start", (0, 2**40 + 7, -(2**63), 2**63 - 20001))
@pytest.mark.parametrize("library", ("numpy", "torch"))
def test_a_range_equals_its_positions_one_by_one(start, library):
    """Catches a coarse or fine table off by one row, at any offset; 5 M entries each."""
    span = range(start, start + 20001)
    value = frequencies(256)
    device = None if library == "numpy" else "cpu"
    wrong = 0
    for found, right in zip(
        phases(span, value, device=device), phases(np.array(span), value), strict=True
    ):
        wrong += disagreements(found, right)
    assert wrong <= 1


@pytest.mark.equation("eq-coarse-fine")
@pytest.mark.parametrize("start", (0, 2**40 + 7, -(2**63)))
def test_the_product_of_phases_keeps_its_stated_bound(start):
    """Catches a chain of products that errs by 1e-15 or more before the rounding to float32."""
    from posenc._backend import backend
    from posenc._contiguous import rotating_rows

    span, value = range(start, start + 5000), frequencies(512)
    cos, sin = phases(np.array(span), value, dtype=np.float64)
    for rows, phasor in rotating_rows(span, value, backend(span, None, None, ())):
        assert np.abs(phasor - (sin[rows] + 1j * cos[rows])).max() < 1e-15


@pytest.mark.equation("eq-coarse-fine")
@pytest.mark.parametrize(
    "span",
    [
        range(0),
        range(5),
        range(63),
        range(64),
        range(65),
        range(1000, 0, -1),
        range(7, 10**6, 977),
        range(-(2**63), 2**63, 2**55),
        range(2**63 - 1, -(2**63), -(2**56) + 1),
        range(-(2**63), 2**63, 2**63),
    ],
    ids=str,
)
def test_ranges_of_any_step_and_length(span):
    """Catches steps ignored, wrapped, or overflowing, and lengths at the tables' seams."""
    value = frequencies(10)
    index = np.array(list(span), dtype=np.int64)
    for found, right in zip(phases(span, value), phases(index, value), strict=True):
        assert found.shape == (len(span), 5)
        assert disagreements(found, right) == 0


def test_numpy_and_torch_make_the_same_bits():
    """Catches two formulas: at most one entry in 10**7 may differ, by either way."""
    value, span = frequencies(512), range(2**31, 2**31 + 8192)
    wrong = 0
    for make in (lambda s: s, np.array):
        ours = phases(make(span), value)
        theirs = phases(
            torch.as_tensor(make(span)) if make is np.array else span,
            value,
            device=None if make is np.array else "cpu",
        )
        wrong += sum(disagreements(t.numpy(), o) for t, o in zip(theirs, ours, strict=True))
    assert wrong <= 1  # of 8.4 million


@pytest.mark.parametrize(
    ("positions", "shape"),
    [(5, ()), (np.int32(5), ()), ([], (0,)), ([3, 4], (2,)), ([[1, 2, 3], [4, 5, 6]], (2, 3))],
)
def test_positions_keep_their_shape(positions, shape):
    """Catches flattened batches, scalars that grew an axis, and empty lists read as floats."""
    for table in phases(positions, frequencies(8)):
        assert table.shape == (*shape, 4)
        assert type(table) is np.ndarray


@pytest.mark.parametrize("name", ("int8", "int16", "int32", "uint8", "uint16", "uint32"))
def test_every_integer_dtype_counts_alike(name):
    """Catches arithmetic in the narrow dtype: 100 * 100 is not 16 in int8's world."""
    value = frequencies(8)
    right = phases(100, value)[0]
    assert (phases(np.array([100], name), value)[0] == right).all()
    assert (
        phases(torch.tensor([100], dtype=getattr(torch, name)), value)[0].numpy() == right
    ).all()


def test_narrow_dtypes_are_rounded_last():
    """Catches angles or tables formed in half precision: positions 256 and 257 must differ."""
    value = frequencies(64)
    cos, sin = phases(torch.tensor([256, 257]), value, dtype=torch.bfloat16)
    wide = phases(torch.tensor([256, 257]), value, dtype=torch.float64)
    assert cos.dtype == sin.dtype == torch.bfloat16
    assert not torch.equal(cos[0], cos[1])
    for narrow, exact in zip((cos, sin), wide, strict=True):
        assert (narrow.double() - exact).abs().max() <= 2**-8 / 2
    assert phases(range(100), value, dtype=np.float16)[0].dtype == np.float16
    half = phases(range(100), value, dtype=torch.float16)[0]
    assert half.dtype == torch.float16  # a torch dtype names torch


def test_no_call_leaves_a_trace_for_the_next():
    """Catches a cache: a narrow call must not poison a wide one of the same shape."""
    value = frequencies(64)
    before = phases(torch.arange(300), value)[0]
    phases(torch.arange(300), value, dtype=torch.bfloat16)
    assert torch.equal(phases(torch.arange(300), value)[0], before)


@pytest.mark.parametrize("positions", (range(200), list(range(200))), ids=("range", "list"))
def test_out_is_filled_and_returned(positions):
    """Catches an out that is ignored, or silently replaced by a fresh table."""
    value = frequencies(8)
    right = phases(np.arange(200), value)
    for pair in (
        (np.empty((200, 4), np.float32), np.empty((200, 4), np.float32)),
        (torch.empty(200, 4), torch.empty(200, 4)),
        (torch.empty(4, 200).T, torch.empty(200, 8)[:, ::2]),  # strides do not matter
    ):
        result = phases(positions, value, out=pair)
        for given, returned, exact in zip(pair, result, right, strict=True):
            assert returned is given
            assert (np.asarray(given) == exact).all()


@pytest.mark.filterwarnings(*COMPILE_NOISE)
def test_compiled_exported_mapped_and_meta_phases_are_the_same():
    """Catches graph breaks, and steps that only eager tensors survive."""
    value = frequencies(16)
    index = torch.tensor([[5, -3, 2**62], [2**53 + 1, 0, -(2**63)]])
    right = phases(index, value)

    table = Table(value)
    compiled = torch.compile(table, fullgraph=True)
    exported = torch.export.export(
        table, (index,), dynamic_shapes=({1: torch.export.Dim("T")},)
    ).module()
    mapped = torch.vmap(table)
    longer = torch.arange(1000).reshape(2, 500)
    for run in (compiled, exported, mapped):
        for positions in (index, longer):
            for found, exact in zip(run(positions), phases(positions, value), strict=True):
                assert torch.equal(found, exact)
    for found, exact in zip(table(index.to("meta")), right, strict=True):
        assert found.is_meta
        assert found.shape == exact.shape
        assert found.dtype == exact.dtype


class Table(torch.nn.Module):
    """Phases as a module, for export."""

    def __init__(self, value):
        super().__init__()
        self.value = value

    def forward(self, positions):
        return phases(positions, self.value)


@pytest.mark.filterwarnings(*COMPILE_NOISE)
@pytest.mark.parametrize("strict", (False, True))
def test_an_exported_program_survives_saving_and_loading(strict, tmp_path):
    """Catches frequencies that the tracer held as a placeholder: the loaded rows were zeros."""
    table, index = Table(frequencies(16)), torch.tensor([3, -5, 2**62])
    torch.export.save(torch.export.export(table, (index,), strict=strict), tmp_path / "t.pt2")
    loaded = torch.export.load(tmp_path / "t.pt2").module()
    for found, exact in zip(loaded(index), table(index), strict=True):
        assert type(found) is torch.Tensor
        assert torch.equal(found, exact)


@pytest.mark.filterwarnings(*COMPILE_NOISE)
def test_a_range_under_compile_takes_the_direct_way():
    """Catches the loop over coarse rows inside a graph."""
    value = frequencies(16)
    compiled = torch.compile(
        lambda x: x * phases(range(100), value, device="cpu")[0], fullgraph=True
    )
    right = phases(range(100), value, device="cpu")[0]
    assert torch.equal(compiled(torch.ones(100, 8)), right)


def test_the_device_argument_moves_tensors():
    """Catches a device that is read for Python integers only."""
    cos, _ = phases(torch.arange(3), frequencies(8), device="meta")
    assert cos.is_meta


def test_a_device_without_float64_gets_what_the_cpu_computed():
    """Catches float64 arithmetic asked of MPS; the device is a stand-in, for none is here."""
    import array_api_compat.torch as xp

    from posenc._backend import Backend, arithmetic_device

    assert arithmetic_device(Backend(xp, torch.float32, torch.device("mps"))) == "cpu"
    assert arithmetic_device(Backend(xp, torch.float32, torch.device("cuda"))).type == "cuda"
    assert arithmetic_device(Backend(np, np.float32, None)) is None


@pytest.mark.parametrize("positions", (range(70), [0] * 3), ids=("range", "list"))
def test_very_wide_encodings_work(positions):
    """Catches a block of no rows: 70000 pairs exceed what one block holds."""
    value = Frequencies(np.linspace(0, 1, 70000))
    cos, sin = phases(positions, value)
    assert cos.shape == sin.shape == (len(positions), 70000)
    assert cos[-1, -1] == np.float32(np.cos(positions[-1]))


def test_a_subclass_of_tensor_is_a_tensor():
    """Catches a test for the exact type."""

    class Named(torch.Tensor):
        pass

    cos, _ = phases(torch.arange(3).as_subclass(Named), frequencies(8))
    assert torch.equal(
        torch.as_tensor(cos).as_subclass(torch.Tensor),
        phases([0, 1, 2], frequencies(8), device="cpu")[0],
    )


def test_byte_order_does_not_change_the_way():
    """Catches big-endian float64 taken for a narrow dtype."""
    value = frequencies(8)
    found = phases(range(1000), value, dtype=">f8")[0]
    assert (found == phases(range(1000), value, dtype=np.float64)[0]).all()


def shared(kind):
    """Pairs of outputs that share an element, and outputs that share one with themselves."""
    if kind == "one array twice":
        return (np.empty((70, 1), np.float32),) * 2
    if kind == "one tensor twice":
        return (torch.empty(70, 1),) * 2
    if kind == "overlapping rows":
        whole = torch.empty(71, 1)
        return whole[:-1], whole[1:]
    if kind == "expanded":
        return torch.empty(1, 1).expand(70, 1), torch.empty(70, 1)
    return np.broadcast_to(
        np.empty((1, 1), np.float32), (70, 1)
    ).copy(), np.lib.stride_tricks.as_strided(np.empty(70, np.float32), (70, 1), (0, 4))


@pytest.mark.parametrize(
    "kind", ("one array twice", "one tensor twice", "overlapping rows", "expanded", "strided")
)
@pytest.mark.parametrize("positions", (range(70), list(range(70))), ids=("range", "list"))
def test_outputs_that_share_memory_are_refused(kind, positions):
    """Catches cosines overwritten by sines without a word."""
    with pytest.raises(ValueError, match=r"must (not share memory|have a place of its own)"):
        phases(positions, Frequencies([1.0]), out=shared(kind))


def test_outputs_may_be_columns_of_one_table():
    """Catches a refusal by extent: alternate columns share no element."""
    value = frequencies(8)
    for table in (np.empty((70, 8), np.float32), torch.empty(70, 8)):
        phases(range(70), value, out=(table[:, 0::2], table[:, 1::2]))
        right = np.stack(phases(range(70), value), axis=-1).reshape(70, 8)
        assert (np.asarray(table) == right).all()


def raised_by_floats(dtype):
    return torch.arange(3, dtype=getattr(torch, dtype))


TWO = np.empty((2, 1), np.float32)


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda f: phases(1.0, f), TypeError, "got float: floating dtypes merge neighbours"),
        (lambda f: phases([1.0], f), TypeError, "positions must be integers, got float"),
        (lambda f: phases([1, True], f), TypeError, "positions must be integers.*, got bool"),
        (lambda f: phases(True, f), TypeError, "positions must be integers.*, got bool"),
        (lambda f: phases("12", f), TypeError, "positions must be integers, got str"),
        (lambda f: phases(None, f), TypeError, "positions must be integers, got NoneType"),
        (lambda f: phases(["1"], f), TypeError, "positions must be an integer, got str"),
        (lambda f: phases([[1], [2, 3]], f), ValueError, "rectangular list of integers"),
        (lambda f: phases(2**63, f), ValueError, "positions must fit in int64, got 9223372036"),
        (lambda f: phases([-(2**63) - 1], f), ValueError, "positions must fit in int64"),
        (lambda f: phases(range(2**63 - 5, 2**63 + 5), f), ValueError, "must fit in int64"),
        (lambda f: phases(range(2**63 + 5, 0, -(2**62)), f), ValueError, "must fit in int64"),
        (lambda f: phases(range(-(2**63), 2**63), f), ValueError, "few enough for a table"),
        (lambda f: phases([torch.tensor(True)], f), TypeError, "must be an integer, got Tensor"),
        (lambda f: phases(np.ma.array([1, 2], mask=[0, 1]), f), TypeError, "must not be masked"),
        (
            lambda f: phases([0, 1], f, out=(np.empty((2, 1), np.float32), np.empty((3, 1)))),
            ValueError,
            "sin of out must have shape",
        ),
        (lambda f: phases(np.array([1.0]), f), TypeError, "257 are one number in bfloat16"),
        (lambda f: phases(np.array([True]), f), TypeError, "got bool"),
        (lambda f: phases(np.array([1], np.uint64), f), TypeError, "got uint64"),
        (lambda f: phases(np.array([2**70]), f), TypeError, "got object"),
        (lambda f: phases(raised_by_floats("float32"), f), TypeError, "got float32"),
        (lambda f: phases(raised_by_floats("bfloat16"), f), TypeError, "got bfloat16"),
        (lambda f: phases(torch.tensor([True]), f), TypeError, "got bool"),
        (lambda f: phases(torch.tensor([1], dtype=torch.uint64), f), TypeError, "got uint64"),
        (lambda f: phases(1, [1.0]), TypeError, "frequencies must be Frequencies, got list"),
        (lambda f: phases(1, f, dtype=np.int32), TypeError, "dtype must be float16, .* got int32"),
        (lambda f: phases(1, f, dtype="nonsense"), TypeError, "dtype must be a floating dtype"),
        (lambda f: phases(1, f, dtype=torch.int32), TypeError, "dtype must be bfloat16, .* int32"),
        (lambda f: phases(np.arange(2), f, dtype=torch.float32), TypeError, "NumPy array"),
        (lambda f: phases(np.arange(2), f, device="cpu"), TypeError, "NumPy array"),
        (lambda f: phases(torch.arange(2), f, dtype=np.float32), TypeError, "torch tensor"),
        (lambda f: phases(torch.arange(2), f, out=(TWO, TWO)), TypeError, "torch tensor"),
        (lambda f: phases([0, 1], f, device="cpu", out=(TWO, TWO)), TypeError, "all be torch's"),
        (lambda f: phases([0, 1], f, out=TWO), TypeError, r"out must be a pair \(cos, sin\)"),
        (lambda f: phases([0, 1], f, out=(TWO, [0])), TypeError, "out must be an array"),
        (lambda f: phases([0], f, out=(TWO, TWO)), ValueError, r"shape \[1, 1\], got \[2, 1\]"),
        (
            lambda f: phases([0, 1], f, dtype=np.float64, out=(TWO, TWO)),
            ValueError,
            "cos of out must have dtype float64, got float32",
        ),
        (
            lambda f: phases([0], f, out=(torch.ones(1, 1, requires_grad=True),) * 2),
            ValueError,
            "must not require grad",
        ),
        (
            lambda f: phases(torch.arange(1), f, out=(torch.empty(1, 1, device="meta"),) * 2),
            ValueError,
            "must be on device cpu, got meta",
        ),
    ],
)
def test_bad_input_gets_one_clear_sentence(make, error, sentence):
    """Catches floats taken for positions, silent wraps, and errors from the inside."""
    with pytest.raises(error, match=sentence):
        make(Frequencies([1.0]))


def test_a_read_only_out_is_refused():
    """Catches NumPy's own error from inside a half-filled pair."""
    frozen = np.empty((1, 1), np.float32)
    frozen.setflags(write=False)
    with pytest.raises(ValueError, match="cos of out must be writeable"):
        phases([0], Frequencies([1.0]), out=(frozen, frozen))


def test_importing_the_package_loads_nothing_heavy():
    """Catches an import of torch, triton or matplotlib where NumPy alone is asked for."""
    script = (
        "import sys, posenc; posenc.sinusoidal_encoding(range(100), 8);"
        "print(sorted({'torch', 'triton', 'matplotlib', 'posenc.lab'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
