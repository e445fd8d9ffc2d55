"""What the chapter on precision derives, held to exact rational arithmetic and to mpmath."""

import ast
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import torch
from reading import BOOK, Page

from posenc import frequencies, phases

EDGES = (0, 1, -1, 3415, 10**9, 2**53 + 1, 2**62, 2**63 - 1, -(2**63))


def chapter(*names):
    """Return functions that the chapter's own cells define, so that a change there is seen."""
    found = {"np": np, "math": math, "torch": torch}
    for cell in Page(BOOK / "6-machines" / "precision.ipynb").code:
        for node in ast.parse(cell.source).body:
            if isinstance(node, ast.FunctionDef) and node.name in names:
                exec(ast.unparse(node), found)
    return [found[name] for name in names]


def rounded(x, bits):
    """Return the rational x with so many significant bits, ties to even."""
    if x == 0:
        return Fraction(0)
    power = math.floor(math.log2(abs(x)))
    while 2 ** Fraction(power) > abs(x):
        power -= 1
    while 2 ** Fraction(power + 1) <= abs(x):
        power += 1
    unit = Fraction(2) ** (power - bits + 1)
    return round(x / unit) * unit


def omega(dim, base=10000):
    """Return the frequencies as rationals, right to 60 digits."""
    with mpmath.workdps(70):
        exact = [mpmath.power(base, -mpmath.mpf(2 * i) / dim) for i in range(dim // 2)]
        return [Fraction(int(mpmath.nint(w * mpmath.mpf(2) ** 220)), 2**220) for w in exact]


@pytest.fixture(scope="module")
def turns():
    """Return 2**128 * omega / 2 pi of 16 channels, to the nearest integer, and mpmath's omega."""
    with mpmath.workdps(80):
        w = [mpmath.power(10000, -mpmath.mpf(i) / 8) for i in range(8)]
        return [int(mpmath.nint(2**128 * x / (2 * mpmath.pi))) for x in w], w


@pytest.mark.equation("eq-distinct-bf16")
@pytest.mark.parametrize("bits", (2, 4, 8, 11))
def test_as_many_integers_stay_distinct_as_the_count_says(bits):
    """Catches an octave with the wrong number of members, and the last one forgotten."""
    (distinct,) = chapter("distinct")
    for k in range(bits + 1, 14):
        left = {rounded(Fraction(p), bits) for p in range(2**k)}
        assert len(left) == distinct(bits, k)
    assert len({rounded(Fraction(p), bits) for p in range(2**bits)}) == 2**bits


@pytest.mark.equation("eq-distinct-bf16")
@pytest.mark.parametrize(
    ("dtype", "bits", "most"),
    ((torch.float8_e4m3fn, 4, 8), (torch.bfloat16, 8, 16), (torch.float16, 11, 15)),
)
def test_torchs_formats_have_the_bits_that_the_chapter_gives_them(dtype, bits, most):
    """Catches a format with other significant bits (golden value T3: 769 and 4097)."""
    (distinct,) = chapter("distinct")
    for k in range(bits + 1, most + 1):
        left = torch.arange(2**k).to(dtype).double()
        assert len(left.unique()) == distinct(bits, k)
        sample = range(0, 2**k, 61)
        assert left[::61].tolist() == [float(rounded(Fraction(p), bits)) for p in sample]
    assert distinct(8, 12) == 769
    assert distinct(11, 13) == 4097


@pytest.mark.equation("eq-ulp-angle")
@pytest.mark.parametrize("bits", (8, 11, 24))
def test_an_angle_of_few_bits_errs_as_the_equation_says(bits):
    """Catches a typical error or a bound that is off by a factor of 2, in exact arithmetic."""
    step = max(1, 2**bits // 251)
    shares = []
    for w in omega(64)[1:]:
        narrow = rounded(w, bits)
        for p in range(2 ** (bits - 3), 2**bits + 1, step):
            p_held = rounded(Fraction(p), bits)
            assert p_held == p
            error = abs(rounded(p * narrow, bits) - p * w)
            shares.append(float(error / (p * w) * 2 ** (bits - 1)))
    assert max(shares) <= 1 + 2.0**-bits
    typical = 4 * math.sqrt(sum(x * x for x in shares) / len(shares))
    assert 0.9 < typical < 1.5
    assert max(shares) > 0.8


@pytest.mark.equation("eq-ulp-angle")
def test_torchs_float32_angles_are_those_of_24_bits():
    """Catches a product that is not rounded to nearest: what the equation assumes of torch."""
    exact = omega(64)
    narrow = torch.tensor([float(w) for w in exact]).float()
    assert narrow.tolist() == [float(rounded(w, 24)) for w in exact]
    for p in (7, 4095, 131071, 2**24 - 1):
        angle = (torch.tensor([p]).float() * narrow).tolist()
        assert angle == [float(rounded(p * rounded(w, 24), 24)) for w in exact]


@pytest.mark.equation("eq-fixed-point")
@pytest.mark.parametrize("dim", (16, 128))
def test_the_phase_errs_by_no_more_than_the_bound_and_reaches_it_nearly(dim):
    """Catches a frequency rounded elsewhere, a bound too small, and one ten times too large."""
    f = frequencies(dim)
    with mpmath.workdps(120):
        reached = mpmath.mpf(0)
        for (high, low), i in zip(f.turns.tolist(), range(dim // 2), strict=True):
            u = mpmath.power(10000, -mpmath.mpf(2 * i) / dim) / (2 * mpmath.pi)
            U = (high << 64) + low
            for p in EDGES:
                phase = p * U % 2**128
                gap = mpmath.mpf(phase) / 2**128 - p * u
                error = abs(gap - mpmath.nint(gap))
                assert error <= abs(p) * mpmath.mpf(2) ** -129
                if p:
                    reached = max(reached, error * mpmath.mpf(2) ** 129 / abs(p))
        assert reached > 0.5


@pytest.mark.equation("eq-fixed-point")
def test_the_chapters_nine_lines_are_right_everywhere(turns):
    """Catches a quarter turn to the wrong side, a lost sign, and overflow at the ends."""
    (cos_sin,) = chapter("cos_sin")
    U, w = turns
    for p in (*EDGES, *range(-40, 40), 2**62 + 12345):
        cos, sin = phases([p], frequencies(16))
        for i in range(8):
            own = cos_sin(p, U[i])
            with mpmath.workdps(80):
                exact = (mpmath.cos(p * w[i]), mpmath.sin(p * w[i]))
                assert max(abs(a - b) for a, b in zip(own, exact, strict=True)) < 4e-16
            assert tuple(np.float32(own)) == (cos[0, i], sin[0, i])


@pytest.mark.equation("eq-fixed-point")
def test_the_chapters_product_of_words_is_the_integers_own(turns):
    """Catches a lost carry, and a negative position taken for a large one."""
    (words,) = chapter("words")
    rng = np.random.default_rng(7)
    hard = [*EDGES, 2**32 - 1, 2**32, -(2**32), -(2**62) - 12345]
    p = np.array([*hard, *rng.integers(-(2**63), 2**63, size=400)], dtype=np.int64)
    full = 2**128 - 1
    U = [*turns[0], full, full - (2**32 - 1), 2**64 - 1, 2**64, 0x1_FFFF_FFFF]
    high, low = (np.array([u >> s & (2**64 - 1) for u in U], dtype=np.uint64) for s in (64, 0))
    top, rest = words(p[:, None], high, low)
    for row, n in enumerate(p.tolist()):
        found = [(int(a) << 64) + int(b) for a, b in zip(top[row], rest[row], strict=True)]
        assert found == [n * u % 2**128 for u in U]
