"""Slow and obvious right answers, made without posenc: mpmath numbers of 80 digits."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

DIGITS = 80


def paper_omega(dim: int, base: float = 10000.0) -> list[Any]:
    """omega_i = base**(-2i/d), each power on its own."""
    with mpmath.workdps(DIGITS):
        return [mpmath.mpf(base) ** (-mpmath.mpf(2 * i) / dim) for i in range((dim + 1) // 2)]


def endpoint_omega(dim: int, base: float = 10000.0) -> list[Any]:
    """omega_i = base**(-i/(d/2 - 1)), each power on its own."""
    with mpmath.workdps(DIGITS):
        steps = max(1, dim // 2 - 1)
        return [mpmath.mpf(base) ** (-mpmath.mpf(i) / steps) for i in range(dim // 2)]


def cos_sin(positions: Sequence[int], omega: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Cosines and sines [T, d/2], correctly rounded to float64."""
    with mpmath.workdps(DIGITS + 340 if max(abs(w) for w in omega) > 1e30 else DIGITS):
        pairs = [[mpmath.cos_sin(p * w) for w in omega] for p in positions]
    cos = np.array([[float(c) for c, _ in row] for row in pairs])
    return cos, np.array([[float(s) for _, s in row] for row in pairs])


def turn_error(omega: Any, high: int, low: int) -> Any:
    """Distance, in units of 2**-128 turns, between omega / 2 pi and its stored fraction."""
    with mpmath.workdps(DIGITS + 340):
        exact = mpmath.frac(omega / (2 * mpmath.pi)) * mpmath.mpf(2) ** 128
        distance = abs(exact - ((high << 64) + low))
        return min(distance, mpmath.mpf(2) ** 128 - distance)


def ulps_apart(found: np.ndarray, right: np.ndarray) -> np.ndarray:
    """How many float32 steps lie between two float32 arrays of the same signs."""
    ordered = [np.where(x < 0, -(x & 0x7FFFFFFF), x) for x in _bits(found, right)]
    return np.abs(ordered[0].astype(np.int64) - ordered[1])


def _bits(*arrays: np.ndarray) -> list[np.ndarray]:
    return [
        np.ascontiguousarray(a, dtype=np.float32).view(np.int32).astype(np.int64) for a in arrays
    ]


def bit_of(number: int, place: int) -> bool:
    """Whether the binary digit of weight 2**place is 1, by division."""
    return Fraction(number, 2**place).__floor__() % 2 == 1
