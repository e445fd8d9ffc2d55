"""Exact phases, one position at a time: overflow is the range reduction.

An angle is held in turns, as a 128-bit binary fraction. In wrap-around arithmetic the product of
an integer position and that fraction loses its whole turns by itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from posenc._backend import Backend, arithmetic_device
from posenc._door import is_compiling
from posenc._frequencies import Frequencies

_LOW_32 = (1 << 32) - 1
_BLOCK = 1 << 15
"""Phases computed at once: their int64 and float64 intermediates stay in a core's cache."""


def exact_blocks(
    index: Any, frequencies: Frequencies, target: Backend
) -> Iterator[tuple[slice, Any, Any]]:
    """Rows, and their float64 cosines and sines [rows, d/2], of int64 positions [T]."""
    xp, device = target.xp, arithmetic_device(target)
    limbs: Any = frequencies._limbs
    if device is not None:
        import torch

        index = torch.as_tensor(index, device=device)
        if is_compiling():
            yield slice(None), *_cos_sin(index[:, None], _traced(frequencies, device), xp)
            return
        limbs = torch.as_tensor(limbs.copy(), device=device)
    step = len(index) if _is_meta(index) else max(1, _BLOCK // len(frequencies))
    for start in range(0, max(1, len(index)), max(1, step)):
        rows = slice(start, start + step)
        yield rows, *_cos_sin(index[rows, None], limbs, xp)


def _traced(frequencies: Frequencies, device: Any) -> Any:
    """Limbs that a traced graph holds as constants: they outlive saving and loading it."""
    import torch

    return torch.tensor(frequencies._words, dtype=torch.int64, device=device)


def _is_meta(index: Any) -> bool:
    return bool(getattr(index, "is_meta", False))


def _cos_sin(p: Any, limbs: Any, xp: Any) -> tuple[Any, Any]:
    """Float64 cos and sin of int64 p [T, 1] times the turns in limbs [4, d/2]."""
    high, low, low_1, low_0 = limbs
    # p * (high, low) mod 2**128, p signed: schoolbook product of the low limb, 32 bits at a time
    p_1, p_0 = _upper(p), p & _LOW_32
    middle = p_1 * low_0 + _upper(p_0 * low_0)
    middle_0 = p_0 * low_1 + (middle & _LOW_32)
    carry = p_1 * low_1 + _upper(middle) + _upper(middle_0)  # floor(unsigned p * low / 2**64)
    turn = p * high + carry - ((p >> 63) & low)  # a negative p stands for p - 2**64
    rest = p * low
    # nearest quarter turn, and what is left: in [-1/8, 1/8) of a turn
    quarter = (turn + (1 << 61)) >> 62
    left = turn - (quarter << 62)
    rest_53 = (rest >> 11) & ((1 << 53) - 1)  # the fraction's next 53 bits, unsigned
    f64 = xp.float64
    angle = xp.astype(left, f64) * 2.0**-64 + xp.astype(rest_53, f64) * 2.0**-117
    angle = angle * (2 * math.pi)
    cos, sin = xp.cos(angle), xp.sin(angle)
    odd = (quarter & 1) == 1
    sign_cos = xp.astype(1 - ((quarter + 1) & 2), f64)  # + - - + for quarters 0 1 2 3
    sign_sin = xp.astype(1 - (quarter & 2), f64)  # + + - -
    return sign_cos * xp.where(odd, sin, cos), sign_sin * xp.where(odd, cos, sin)


def _upper(x: Any) -> Any:
    """Shift an unsigned 64-bit integer, held in int64, right by 32 bits."""
    return (x >> 32) & _LOW_32
