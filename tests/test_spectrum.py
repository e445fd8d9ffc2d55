"""Frequencies and wavelengths against mpmath, the value's contract, and its errors."""

import copy
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import mpmath
import numpy as np
import oracle
import pytest
import torch

from posenc import Frequencies, frequencies, wavelengths

BASES = (10000.0, 500000.0, 1e6, 2.0, 1.0, 0.5)


@pytest.mark.equation("eq-frequencies")
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("dim", (2, 4, 64, 128, 512))
def test_every_frequency_is_the_correctly_rounded_power(dim, base):
    """Catches an exponent of 2i/(d-2) or i/d, and any float32 on the way."""
    right = [float(w) for w in oracle.paper_omega(dim, base)]
    assert frequencies(dim, base).omega.tolist() == right


@pytest.mark.equation("eq-endpoint-spacing")
@pytest.mark.parametrize("dim", (2, 4, 6, 64, 512))
def test_endpoint_spacing_ends_at_one_over_the_base(dim):
    """Catches the paper's exponent under the other name, and 0/0 for a single pair."""
    omega = frequencies(dim, spacing="endpoint").omega
    assert omega.tolist() == [float(w) for w in oracle.endpoint_omega(dim)]
    assert omega[-1] == (1e-4 if dim > 2 else 1.0)


@pytest.mark.equation("eq-endpoint-spacing")
def test_endpoint_spacing_is_that_of_the_authors_code():
    """Catches a spacing that agrees with mpmath's formula but not with timescales as coded."""
    pairs = 256
    increment = np.log(1e4) / (pairs - 1)
    timescales = np.exp(np.arange(pairs) * -increment)
    np.testing.assert_allclose(frequencies(512, spacing="endpoint").omega, timescales, rtol=1e-13)


@pytest.mark.equation("eq-turns")
@pytest.mark.parametrize("spacing", ("paper", "endpoint"))
@pytest.mark.parametrize("base", (*BASES, 1e-300, 1e300))
def test_turns_are_the_nearest_128_bit_fraction(base, spacing):
    """Catches turns computed from float64 frequencies: off by 2**70 units, not by half a one."""
    make = oracle.paper_omega if spacing == "paper" else oracle.endpoint_omega
    with mpmath.workdps(500):
        exact = [mpmath.mpf(base) ** e for e in _exponents(64, spacing)]
    value = frequencies(64, base, spacing=spacing)
    assert len(make(64, base)) == len(value)
    for omega, (high, low) in zip(exact, value.turns.tolist(), strict=True):
        assert oracle.turn_error(omega, high, low) <= 0.5000001


def _exponents(dim, spacing):
    pairs = dim // 2
    step = mpmath.mpf(2) / dim if spacing == "paper" else mpmath.mpf(1) / (pairs - 1)
    return [-i * step for i in range(pairs)]


@pytest.mark.equation("eq-turns")
@pytest.mark.parametrize("omega", (0.0, -1.0, 0.1, 2 * np.pi, 1e-300, 5e-324, 1e22, 1.7e308))
def test_a_users_own_frequency_is_taken_as_exact(omega):
    """Catches a reduction of large frequencies, or of tiny ones, with too few digits of pi."""
    high, low = Frequencies([omega]).turns[0].tolist()
    assert oracle.turn_error(mpmath.mpf(omega), high, low) <= 0.5000001


@pytest.mark.equation("eq-wavelength")
def test_a_wavelength_is_two_pi_over_the_frequency():
    """Catches periods in radians, and a base raised to the wrong exponent."""
    right = [
        float(2 * mpmath.pi * mpmath.mpf(10000) ** (mpmath.mpf(2 * i) / 128)) for i in range(64)
    ]
    np.testing.assert_allclose(wavelengths(frequencies(128)), right, rtol=1e-15)


@pytest.mark.equation("eq-ratio")
def test_neighbouring_wavelengths_keep_one_ratio():
    """Catches linear spacing, and the other spacing's ratio of 10000**(1/255)."""
    spans = wavelengths(frequencies(512))
    ratios = [after / before for before, after in pairwise(spans)]
    np.testing.assert_allclose(ratios, 10000 ** (2 / 512), rtol=1e-14)
    assert round(np.log(2) / np.log(ratios[0]), 2) == 19.27  # pairs per octave


@pytest.mark.equation("eq-longest")
@pytest.mark.parametrize(
    ("dim", "longest"), [(4, 628.32), (64, 47117.24), (128, 54410.14), (512, 60611.48)]
)
def test_the_longest_wavelength_stays_below_the_one_the_paper_names(dim, longest):
    """Catches the sentence 2 pi to 10000 2 pi taken for the formula; only the code reaches it."""
    assert round(float(wavelengths(frequencies(dim))[-1]), 2) == longest
    assert longest < 2 * np.pi * 10000
    coded = wavelengths(frequencies(dim, spacing="endpoint"))[-1]
    assert round(float(coded), 2) == 62831.85


def test_a_frequency_of_zero_has_an_infinite_wavelength_without_a_warning():
    """Catches a division by zero: warnings are errors here."""
    assert wavelengths(Frequencies([1.0, 0.0, -2.0])).tolist() == [2 * np.pi, np.inf, np.pi]
    assert wavelengths(Frequencies([5e-324])).tolist() == [np.inf]  # no overflow warning


def test_frequencies_are_a_value():
    """Catches hidden state: a value can be compared, hashed, copied, pickled, never changed."""
    value, same = frequencies(8), frequencies(8)
    assert value == same
    assert hash(value) == hash(same)
    assert value != frequencies(8, 500.0)
    scaled = Frequencies([1.0], attention_factor=2.0)
    assert pickle.loads(pickle.dumps(scaled)).attention_factor == 2.0
    assert not value._limbs.flags.writeable
    assert value != Frequencies.exact(oracle.paper_omega(8), attention_factor=2.0)
    assert value != "frequencies"
    for copied in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert copied == value
        assert copied.omega.tolist() == value.omega.tolist()
        for array in (copied.omega, copied.turns):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0
    with pytest.raises(AttributeError, match="omega cannot be set"):
        value.omega = np.ones(4)
    with pytest.raises(AttributeError, match="omega cannot be deleted"):
        del value.omega
    assert len(value) == 4
    assert "4 pairs, 1 ... 0.001" in repr(value)
    assert "attention_factor=2.0" in repr(Frequencies([1.0], attention_factor=2.0))


def test_a_users_array_is_copied():
    """Catches a table that changes when its maker's array does."""
    omega = np.array([1.0, 0.5])
    value = Frequencies(omega)
    omega[0] = 7.0
    assert value.omega.tolist() == [1.0, 0.5]
    assert omega.flags.writeable


def test_the_callers_mpmath_precision_changes_nothing():
    """Catches arithmetic in mpmath's global context, which callers and threads share."""
    right, own = frequencies(512), Frequencies([0.1])
    with mpmath.workdps(5):
        assert Frequencies([0.1]) == own
        assert Frequencies([0.1]).omega.tolist() == [0.1]
        assert frequencies(512) == right
        assert mpmath.mp.dps == 5


def test_threads_do_not_disturb_one_another():
    """Catches a precision that one thread sets and another computes with."""
    right, before = frequencies(64), sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(lambda _: frequencies(64) == right, range(60)))
    finally:
        sys.setswitchinterval(before)


def test_torch_frequencies_are_taken_and_learned_ones_refused():
    """Catches torch's own error for bfloat16, and a gradient lost without a word."""
    assert Frequencies(torch.tensor([1.0, 0.5], dtype=torch.bfloat16)) == Frequencies([1.0, 0.5])
    with pytest.raises(TypeError, match="omega must not require grad"):
        Frequencies(torch.ones(2, requires_grad=True))


def test_rounding_a_frequency_to_float64_changes_the_value():
    """Catches turns made from .omega: the exact power and its float64 are two frequencies."""
    assert Frequencies(frequencies(64).omega) != frequencies(64)


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda: frequencies(7), ValueError, "dim must be even, got 7"),
        (lambda: frequencies(0), ValueError, "dim must be at least 1, got 0"),
        (lambda: frequencies(-2), ValueError, "dim must be at least 1, got -2"),
        (lambda: frequencies(4.0), TypeError, "dim must be an integer, got float"),
        (lambda: frequencies(True), TypeError, "dim must be an integer, got bool"),
        (lambda: frequencies("4"), TypeError, "dim must be an integer, got str"),
        (lambda: frequencies(4, 0), ValueError, "base must be positive and finite, got 0"),
        (lambda: frequencies(4, -1.0), ValueError, "base must be positive and finite, got -1.0"),
        (lambda: frequencies(4, np.nan), ValueError, "base must be positive and finite, got nan"),
        (lambda: frequencies(4, 10**400), ValueError, "base must be positive and finite"),
        (lambda: frequencies(4, "10000"), TypeError, "base must be a real number, got str"),
        (lambda: frequencies(4, True), TypeError, "base must be a real number, got bool"),
        (lambda: frequencies(4, 1j), TypeError, "base must be a real number, got complex"),
        (lambda: frequencies(4, bytearray(b"10")), TypeError, "base must be a real number"),
        (lambda: frequencies(4, torch.tensor(True)), TypeError, "base must be a real number"),
        (lambda: frequencies(torch.tensor(True)), TypeError, "dim must be an integer, got Tensor"),
        (lambda: frequencies(torch.tensor([4])), TypeError, "dim must be an integer, got Tensor"),
        (lambda: frequencies(8, 5e-324, spacing="endpoint"), ValueError, "omega must be finite"),
        (lambda: frequencies(4, None), TypeError, "base must be a real number, got NoneType"),
        (
            lambda: frequencies(4, spacing="t2t"),
            ValueError,
            "spacing must be 'paper' or 'endpoint'",
        ),
        (lambda: Frequencies([]), (TypeError, ValueError), "omega must"),
        (lambda: Frequencies([[1.0]]), ValueError, r"omega must have shape \[d/2\]"),
        (lambda: Frequencies(1.0), ValueError, r"omega must have shape \[d/2\]"),
        (lambda: Frequencies([1.0, np.inf]), ValueError, "omega must be finite, got inf"),
        (
            lambda: Frequencies([1j]),
            TypeError,
            "omega must hold real numbers, got dtype complex128",
        ),
        (lambda: Frequencies([True]), TypeError, "omega must hold real numbers, got dtype bool"),
        (lambda: Frequencies(["a"]), TypeError, "omega must hold real numbers"),
        (
            lambda: Frequencies([1.0], attention_factor=0.0),
            ValueError,
            "attention_factor must be positive and finite, got 0.0",
        ),
        (lambda: wavelengths([1.0]), TypeError, "frequencies must be Frequencies, got list"),
    ],
)
def test_bad_input_gets_one_clear_sentence(make, error, sentence):
    """Catches errors from the inside, clamps, and silent zeros."""
    with pytest.raises(error, match=sentence):
        make()
