"""The value that every rule makes and every table takes: frequencies, exact in turns."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import numpy as np
from mpmath import libmp
from numpy.typing import ArrayLike, NDArray

from posenc._door import is_tensor, outside_graphs, positive_float

TURN_BITS = 128
"""Bits of the binary fraction that holds a frequency in turns per token."""

GUARD_BITS = 128
"""Bits computed beyond those, so that the last one is rounded right."""

LOCK = threading.Lock()
"""Held while mpmath looks up or extends its stored constants, which threads share."""

_LIMB = (1 << 64) - 1
_TURN = (1 << TURN_BITS) - 1


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
        If ``omega`` does not hold real numbers, or requires grad.
    ValueError
        If ``omega`` is not one-dimensional, is empty, holds an infinite or NaN value or one that
        is no float64, or if ``attention_factor`` is not positive and finite.

    Notes
    -----
    Two values are equal when their turns and attention factors are. ``Frequencies(f.omega)``
    need not equal ``f``: rounding to float64 moves a frequency by up to one part in 2**53, which
    position 10**9 turns into an angle of 1e-7.
    Equations ``eq-turns`` and ``eq-fixed-point`` of the book. Elsewhere: ``inv_freq``
    (transformers), ``theta`` (torchtune), ``freqs`` (rotary-embedding-torch).

    Examples
    --------
    >>> from posenc import Frequencies
    >>> Frequencies([1.0, 0.01]).omega
    array([1.  , 0.01])
    """

    __slots__ = ("_limbs", "_words", "attention_factor", "omega", "turns")

    omega: NDArray[np.float64]
    turns: NDArray[np.uint64]
    attention_factor: float
    _limbs: NDArray[np.int64]
    _words: tuple[tuple[int, ...], ...]  # the same, for torch to trace: constants, not an input

    def __init__(self, omega: ArrayLike, *, attention_factor: float = 1.0) -> None:
        raw = [libmp.from_float(value) for value in _float64s(omega)]
        outside_graphs(self._fill, *_fixed_point(raw), attention_factor)

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

        Raises
        ------
        TypeError
            If a value is not an ``mpmath.mpf``.
        ValueError
            If there is no value, or one is not finite.
        """
        raw = []
        for value in omega:
            if not hasattr(value, "_mpf_"):
                raise TypeError(f"omega must hold mpmath numbers, got {type(value).__name__}")
            if value._mpf_ in (libmp.finf, libmp.fninf, libmp.fnan):
                raise ValueError(f"omega must be finite, got {value}")
            raw.append(value._mpf_)
        return cls.fixed(*_fixed_point(raw), attention_factor=attention_factor)

    @classmethod
    def fixed(
        cls, numbers: Sequence[int], bits: int, *, attention_factor: float = 1.0
    ) -> Frequencies:
        """Frequencies ``numbers / 2**bits``, in radians per token."""
        frequencies = object.__new__(cls)
        outside_graphs(frequencies._fill, numbers, bits, attention_factor)
        return frequencies

    def _fill(self, numbers: Sequence[int], bits: int, attention_factor: float) -> None:
        factor = positive_float("attention_factor", attention_factor)
        if not numbers:
            raise ValueError("omega must hold at least one frequency, got none")
        try:
            omega = np.array([number / (1 << bits) for number in numbers])  # rounded correctly
        except OverflowError:
            raise ValueError("omega must be finite in float64, got a larger number") from None
        fractions = _fractions_of_a_turn(numbers, bits)
        turns = np.array([(u >> 64, u & _LIMB) for u in fractions], dtype=np.uint64)
        self._restore(omega, turns, factor)

    def _restore(
        self, omega: NDArray[np.float64], turns: NDArray[np.uint64], attention_factor: float
    ) -> None:
        high, low = turns[:, 0], turns[:, 1]
        limbs = np.stack([high, low, low >> np.uint64(32), low & np.uint64(0xFFFFFFFF)])
        for name, value in (("omega", omega), ("turns", turns), ("_limbs", limbs.view(np.int64))):
            value.setflags(write=False)
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_words", tuple(map(tuple, self._limbs.tolist())))
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


def _float64s(omega: ArrayLike) -> list[float]:
    """A user's own frequencies as Python floats, none of them changed by the conversion."""
    if is_tensor(omega):
        if omega.requires_grad:  # type: ignore[union-attr]
            raise TypeError("omega must not require grad: these frequencies are constants")
        omega = omega.tolist()  # type: ignore[union-attr]
    try:
        values = np.asarray(omega)
    except ValueError:
        raise ValueError("omega must have shape [d/2], got a ragged list") from None
    if values.dtype.kind not in "fiu":
        raise TypeError(f"omega must hold real numbers, got dtype {values.dtype}")
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"omega must have shape [d/2] with d >= 2, got {list(values.shape)}")
    narrow = values.astype(np.float64)
    if not np.isfinite(narrow).all():
        raise ValueError(f"omega must be finite, got {narrow[~np.isfinite(narrow)][0]}")
    if not (narrow.astype(values.dtype) == values).all():
        raise ValueError(f"omega must hold float64 values, got {values.dtype} that are none")
    return [float(value) for value in narrow]


def _fixed_point(raw: Sequence[Any]) -> tuple[list[int], int]:
    """Mpmath's (sign, mantissa, exponent, bits) as integers over one power of two, exactly."""
    places = max([0, *(-exponent for _, _, exponent, _ in raw)])
    signed = ((-1 if sign else 1) * int(man) << exponent + places for sign, man, exponent, _ in raw)
    return list(signed), places


def _fractions_of_a_turn(numbers: Sequence[int], bits: int) -> list[int]:
    """``numbers / 2**bits / 2 pi`` to the nearest 2**-128 turns, whole turns dropped."""
    largest = max(number.bit_length() for number in numbers) - bits
    places = TURN_BITS + GUARD_BITS + max(0, largest)
    with LOCK:
        pi = int(libmp.pi_fixed(places))
    per_radian = (1 << 2 * places) // (2 * pi)  # 2**places / 2 pi
    surplus = bits + places - TURN_BITS
    half = 1 << surplus - 1
    return [(number * per_radian + half >> surplus) & _TURN for number in numbers]
