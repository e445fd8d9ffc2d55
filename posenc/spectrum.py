"""How fast each clock hand turns: frequencies, and the wavelengths they imply."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, Literal, NoReturn

import mpmath
import numpy as np
from mpmath import libmp
from numpy.typing import ArrayLike, NDArray

from posenc._door import choice, positive_float, whole_number

Spacing = Literal["paper", "endpoint"]

TURN_BITS = 128
"""Bits of the binary fraction that holds a frequency in turns per token."""

_GUARD_BITS = 128
_LIMB = (1 << 64) - 1


class Frequencies:
    """Frequencies of the pairs of an encoding: an immutable value.

    Parameters
    ----------
    omega : array_like of float, shape [d/2]
        Frequencies in radians per token. The float64 values are taken as exact; negative and zero
        frequencies are allowed.
    attention_factor : float, default 1.0
        Factor that `rope_tables` applies to cosines and sines; the logits get its square.

    Attributes
    ----------
    omega : ndarray of float64, shape [d/2]
        Radians per token, correctly rounded from the exact frequencies. Read-only.
    turns : ndarray of uint64, shape [d/2, 2]
        High and low 64 bits of ``omega / 2 pi mod 1`` as a 128-bit binary fraction of a turn,
        rounded to nearest. This is what `posenc.phases` multiplies by the position. Read-only.
    attention_factor : float
        As given.

    Raises
    ------
    TypeError
        If ``omega`` does not hold real numbers.
    ValueError
        If ``omega`` is not one-dimensional, is empty or holds an infinite or NaN value, or if
        ``attention_factor`` is not positive and finite.

    Notes
    -----
    Two values are equal when their turns and attention factors are. ``Frequencies(f.omega)``
    need not equal ``f``: rounding to float64 moves a frequency by up to one part in 2**53, which
    position 10**9 turns into an angle of 1e-7.
    Equation ``eq-turns`` of the book. Elsewhere: ``inv_freq`` (transformers), ``theta``
    (torchtune), ``freqs`` (rotary-embedding-torch).

    Examples
    --------
    >>> from posenc import Frequencies
    >>> Frequencies([1.0, 0.01]).omega
    array([1.  , 0.01])
    """

    __slots__ = ("_limbs", "attention_factor", "omega", "turns")

    omega: NDArray[np.float64]
    turns: NDArray[np.uint64]
    attention_factor: float
    _limbs: NDArray[np.int64]

    def __init__(self, omega: ArrayLike, *, attention_factor: float = 1.0) -> None:
        values = np.asarray(omega)
        if values.dtype.kind not in "fiu":
            raise TypeError(f"omega must hold real numbers, got dtype {values.dtype}")
        if values.ndim != 1 or values.size == 0:
            raise ValueError(f"omega must have shape [d/2] with d >= 2, got {list(values.shape)}")
        values = values.astype(np.float64)
        if not np.isfinite(values).all():
            raise ValueError(f"omega must be finite, got {values[~np.isfinite(values)][0]}")
        self._fill([mpmath.mpf(float(value)) for value in values], attention_factor)

    @classmethod
    def exact(cls, omega: Iterable[Any], *, attention_factor: float = 1.0) -> Frequencies:
        """Frequencies from mpmath numbers, whose every digit counts.

        Parameters
        ----------
        omega : iterable of mpmath.mpf, length d/2
            Radians per token, to at least 40 digits after the point.
        attention_factor : float, default 1.0
            As in the class.

        Returns
        -------
        Frequencies
        """
        frequencies = object.__new__(cls)
        frequencies._fill(list(omega), attention_factor)
        return frequencies

    def _fill(self, omega: Sequence[Any], attention_factor: float) -> None:
        fractions = [_fraction_of_a_turn(value) for value in omega]
        turns = np.array([(u >> 64, u & _LIMB) for u in fractions], dtype=np.uint64)
        self._restore(
            np.array([float(value) for value in omega], dtype=np.float64),
            turns,
            positive_float("attention_factor", attention_factor),
        )

    def _restore(
        self, omega: NDArray[np.float64], turns: NDArray[np.uint64], attention_factor: float
    ) -> None:
        high, low = turns[:, 0], turns[:, 1]
        limbs = np.stack([high, low, low >> np.uint64(32), low & np.uint64(0xFFFFFFFF)])
        for name, value in (("omega", omega), ("turns", turns), ("_limbs", limbs.view(np.int64))):
            value.setflags(write=False)
            object.__setattr__(self, name, value)
        object.__setattr__(self, "attention_factor", attention_factor)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"Frequencies are immutable; {name} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"Frequencies are immutable; {name} cannot be deleted")

    def __len__(self) -> int:
        return len(self.omega)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Frequencies):
            return NotImplemented
        return (
            self.attention_factor == other.attention_factor
            and self.turns.tobytes() == other.turns.tobytes()
        )

    def __hash__(self) -> int:
        return hash((self.turns.tobytes(), self.attention_factor))

    def __repr__(self) -> str:
        shown = f"{self.omega[0]:.4g}"
        if len(self) > 1:
            shown += f" ... {self.omega[-1]:.4g}"
        factor = (
            "" if self.attention_factor == 1.0 else f", attention_factor={self.attention_factor}"
        )
        return f"<Frequencies: {len(self)} pairs, {shown} radians per token{factor}>"

    def __copy__(self) -> Frequencies:
        return self

    def __deepcopy__(self, memo: object) -> Frequencies:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _revive, (self.omega.copy(), self.turns.copy(), self.attention_factor)


def _revive(
    omega: NDArray[np.float64], turns: NDArray[np.uint64], attention_factor: float
) -> Frequencies:
    frequencies = object.__new__(Frequencies)
    frequencies._restore(omega, turns, attention_factor)
    return frequencies


def _fraction_of_a_turn(omega: Any) -> int:
    """Nearest multiple of 2**-128 turns to ``omega / 2 pi``, whole turns dropped."""
    precision = TURN_BITS + _GUARD_BITS + max(0, mpmath.mag(omega) if omega else 0)
    turns = libmp.mpf_div(omega._mpf_, libmp.mpf_shift(libmp.mpf_pi(precision), 1), precision)
    return int(libmp.to_int(libmp.mpf_shift(turns, TURN_BITS), libmp.round_nearest)) % (
        1 << TURN_BITS
    )


def geometric(count: int, base: float, exponent: Fraction) -> Frequencies:
    """``base ** (-i * exponent)`` for i < count, each with 128 bits after the point.

    Parameters
    ----------
    count : int
        Number of frequencies.
    base : float
        Positive and finite; taken as exact.
    exponent : Fraction
        Step of the exponent from one pair to the next.

    Returns
    -------
    Frequencies

    Notes
    -----
    The powers are a running product: rounding grows by one unit in the last of at least 256 bits
    a step. Bases below 1 give growing frequencies and get as many bits more.
    """
    growth = max(0, math.ceil(-math.log2(base) * count * exponent))
    with mpmath.workprec(TURN_BITS + 2 * _GUARD_BITS + growth):
        step = mpmath.mpf(exponent.numerator) / exponent.denominator
        ratio = mpmath.power(mpmath.mpf(base), -step)
        omega = [mpmath.mpf(1)]
        for _ in range(count - 1):
            omega.append(omega[-1] * ratio)
    return Frequencies.exact(omega)


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
        in the same authors' tensor2tensor code, in fairseq and in diffusion models.

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
    dim = whole_number("dim", dim, at_least=1)
    if dim % 2:
        raise ValueError(f"dim must be even, got {dim}")
    return spectrum(dim, base, spacing)


def spectrum(dim: int, base: float, spacing: Spacing) -> Frequencies:
    """Frequencies of ceil(d/2) sines: `frequencies`, and with paper spacing for odd d too."""
    base = positive_float("base", base)
    choice("spacing", spacing, ("paper", "endpoint"))
    if spacing == "paper":
        return geometric((dim + 1) // 2, base, Fraction(2, dim))
    if dim % 2:
        raise ValueError(f"dim must be even with spacing='endpoint', got {dim}")
    return geometric(dim // 2, base, Fraction(1, max(1, dim // 2 - 1)))


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
    return np.divide(2 * np.pi, speed, out=np.full_like(speed, np.inf), where=speed > 0)
