"""How fast each clock hand turns: frequencies, and the wavelengths they imply."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal

import numpy as np
from mpmath import libmp
from numpy.typing import NDArray

from posenc._door import choice, even_number, is_compiling, positive_float
from posenc._frequencies import GUARD_BITS, LOCK, TURN_BITS, Frequencies

Spacing = Literal["paper", "endpoint"]


def powers(
    count: int, base: float | Fraction, exponent: Fraction, *, spare: int = 0
) -> tuple[list[int], int]:
    """``base ** (-i * exponent)`` for i < count, as integers over one power of two.

    Parameters
    ----------
    count : int
        Number of powers.
    base : float or Fraction
        Positive and finite; taken as exact.
    exponent : Fraction
        Step of the exponent from one pair to the next.
    spare : int, default 0
        Bits more than `Frequencies` need, for arithmetic that follows.

    Returns
    -------
    numbers : list of int
        The powers times ``2**bits``.
    bits : int

    Notes
    -----
    The powers are a running product of integers over ``2**bits``: rounding grows by one unit in
    the last place a step, and powers far from 1, on either side, get as many bits more.
    """
    above, below = base.as_integer_ratio()
    octaves = math.ceil(abs(math.log2(above) - math.log2(below)) * count * exponent)
    bits = TURN_BITS + 2 * GUARD_BITS + octaves + spare
    precision = bits + octaves
    step = libmp.from_rational(-exponent.numerator, exponent.denominator, precision)
    with LOCK:
        power = libmp.mpf_pow(libmp.from_rational(above, below, precision), step, precision)
    ratio, number = int(libmp.to_fixed(power, bits)), 1 << bits
    numbers = []
    for _ in range(count):
        numbers.append(number)
        number = number * ratio >> bits
    return numbers, bits


def frequencies(dim: int, base: float = 10000.0, *, spacing: Spacing = "paper") -> Frequencies:
    """Frequencies of the d/2 pairs of a sinusoidal or rotary encoding.

    Parameters
    ----------
    dim : int
        Channels d, even: two for each pair.
    base : float, default 10000.0
        Base b of the geometric sequence (``rope_theta``), positive and finite.
    spacing : {"paper", "endpoint"}
        ``"paper"``: omega_i = b**(-2i/d), i < d/2, as printed by Vaswani et al. (2017, section
        3.5). ``"endpoint"``: omega_i = b**(-i/(d/2 - 1)), so that the last frequency is 1/b, as
        in the same authors' tensor2tensor code and in fairseq; diffusers has both, by its
        ``downscale_freq_shift``.

    Returns
    -------
    Frequencies
        d/2 frequencies in radians per token, the first of them 1.

    Raises
    ------
    TypeError
        If ``dim`` is not an integer or ``base`` not a real number.
    ValueError
        If ``dim`` is odd or not positive, ``base`` not positive and finite, or ``spacing`` not
        one of the two.
    RuntimeError
        Inside ``torch.compile(fullgraph=True)`` or ``torch.export``: make frequencies before.

    Notes
    -----
    Equations ``eq-frequencies`` and ``eq-endpoint-spacing`` of the book.
    Elsewhere: ``inv_freq`` (transformers), ``div_term`` (the torch tutorial), ``inv_timescales``
    (tensor2tensor).

    Examples
    --------
    >>> from posenc import frequencies
    >>> frequencies(4).omega
    array([1.  , 0.01])
    >>> frequencies(4, spacing="endpoint").omega
    array([1.e+00, 1.e-04])
    """
    return spectrum(even_number("dim", dim), base, spacing)


def spectrum(dim: int, base: float, spacing: Spacing) -> Frequencies:
    """Frequencies of ceil(d/2) sines: `frequencies`, and with paper spacing for odd d too."""
    if is_compiling():
        raise RuntimeError(
            "frequencies cannot be computed while torch traces: make them before, as a value, and "
            "hand them to posenc.phases, or use posenc.modules.SinusoidalEncoding"
        )
    base = positive_float("base", base)
    choice("spacing", spacing, ("paper", "endpoint"))
    if spacing == "paper":
        return Frequencies.fixed(*powers((dim + 1) // 2, base, Fraction(2, dim)))
    if dim % 2:
        raise ValueError(f"dim must be even with spacing='endpoint', got {dim}")
    return Frequencies.fixed(*powers(dim // 2, base, Fraction(1, max(1, dim // 2 - 1))))


def wavelengths(frequencies: Frequencies) -> NDArray[np.float64]:
    """Tokens that each pair needs for one full turn.

    Parameters
    ----------
    frequencies : Frequencies
        The d/2 frequencies.

    Returns
    -------
    ndarray of float64, shape [d/2]
        ``2 pi / |omega|`` in tokens per turn; inf for a zero frequency.

    Raises
    ------
    TypeError
        If ``frequencies`` is not a `Frequencies` value.

    Notes
    -----
    Equations ``eq-wavelength``, ``eq-ratio`` and ``eq-longest`` of the book. Source: Vaswani et
    al. (2017), section 3.5, whose longest wavelength holds for ``spacing="endpoint"`` only.

    Examples
    --------
    >>> from posenc import frequencies, wavelengths
    >>> wavelengths(frequencies(4)).round(2)
    array([  6.28, 628.32])
    """
    if not isinstance(frequencies, Frequencies):
        raise TypeError(f"frequencies must be Frequencies, got {type(frequencies).__name__}")
    speed = np.abs(frequencies.omega)
    with np.errstate(over="ignore"):  # beyond float64's largest number, the wavelength is inf
        return np.divide(2 * np.pi, speed, out=np.full_like(speed, np.inf), where=speed > 0)
