"""What every rule is made of: checked parameters, and numbers with more digits than a turn has."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from mpmath import MPContext

from posenc._door import even_number, is_compiling, positive_float
from posenc._frequencies import GUARD_BITS, LOCK, TURN_BITS, Frequencies
from posenc.spectrum import powers

SPARE = 1100
"""Bits for a rule that divides by a float64 number, however small."""

MP = MPContext()
"""Arithmetic at a precision that no caller and no thread shares or changes."""

MP.prec = TURN_BITS + 2 * GUARD_BITS + SPARE


def spectrum(dim: object, base: object, *, name: str = "dim", at_least: int = 2) -> list[Any]:
    """Check the width and the base; return the unscaled frequencies base**(-2i/dim) in mpmath."""
    if is_compiling():
        raise RuntimeError(
            "frequencies cannot be computed while torch traces: make them before, as a value, and "
            "hand them to posenc.rope_tables"
        )
    width = even_number(name, dim, at_least=at_least)
    number = positive_float("base", base)
    if number <= 1:
        raise ValueError(f"base must be greater than 1, got {base}")
    return geometric(width // 2, number, Fraction(2, width))


def geometric(count: int, base: float | Fraction, exponent: Fraction) -> list[Any]:
    """``base ** (-i * exponent)`` for i < count, in mpmath."""
    numbers, bits = powers(count, base, exponent, spare=SPARE)
    return [MP.ldexp(MP.mpf(number), -bits) for number in numbers]


def stretch(value: object, name: str = "factor") -> float:
    """Take a factor s >= 1 by which a text is longer than those of the training."""
    factor = positive_float(name, value)
    if factor < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")
    return factor


def band(few: str, low: object, many: str, high: object) -> tuple[float, float]:
    """Take two numbers of turns between which a rule blends, the lower one first."""
    lower, upper = positive_float(few, low), positive_float(many, high)
    if lower > upper:
        raise ValueError(f"{few} must be at most {many}, got {low} and {high}")
    return lower, upper


def log(number: Any) -> Any:
    """Natural logarithm."""
    with LOCK:
        return MP.ln(number)


def turns(length: int, omega: Any) -> Any:
    """Turns that a hand completes within a length: length over wavelength."""
    with LOCK:
        return length * omega / (2 * MP.pi)


def slowed_by_turns(omega: Iterable[Any], length: int, few: float, many: float) -> list[Any]:
    """Share of the factor that each pair takes: 0 from ``many`` turns on, 1 below ``few``."""
    shares = []
    for r in (turns(length, w) for w in omega):
        shares.append(0 if r >= many else 1 if r < few else (many - r) / (MP.mpf(many) - few))
    return shares


def blended(
    omega: Iterable[Any],
    slowed: Iterable[Any],
    factor: float,
    *,
    attention_factor: float = 1.0,
) -> Frequencies:
    """``omega h(omega)``, where h falls from 1 to 1/factor as a pair's share of it rises to 1."""
    most = 1 - 1 / MP.mpf(factor)
    scaled = [w * (1 - share * most) for w, share in zip(omega, slowed, strict=True)]
    return Frequencies.exact(scaled, attention_factor=attention_factor)
