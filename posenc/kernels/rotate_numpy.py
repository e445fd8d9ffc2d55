"""Rotations of NumPy arrays: real arithmetic in float32 or float64, one rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def rotate(
    xs: Sequence[Any],
    tables: Sequence[tuple[Any, Any]],
    outs: Sequence[Any],
    *,
    interleaved: bool,
    inverse: bool,
) -> list[Any]:
    """Rotate arrays; arguments as in `posenc.kernels.rotate`."""
    results = []
    for x, (cos, sin), out in zip(xs, tables, outs, strict=True):
        result = np.empty_like(x) if out is None else out
        width = 2 * cos.shape[-1]
        first, second = halves(width, interleaved)
        a = x[..., first].astype(cos.dtype, copy=False)
        b = x[..., second].astype(cos.dtype, copy=False)
        s = -sin if inverse else sin
        turned = a * cos - b * s, b * cos + a * s  # both made before either is written
        result[..., first], result[..., second] = turned
        if result is not x:
            result[..., width:] = x[..., width:]
        results.append(result)
    return results


def halves(width: int, interleaved: bool) -> tuple[slice, slice]:
    """Channels that come first in their pair, and those that come second."""
    if interleaved:
        return slice(0, width, 2), slice(1, width, 2)
    return slice(0, width // 2), slice(width // 2, width)
