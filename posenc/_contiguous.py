"""Contiguous positions: one complex product joins a coarse phase and a fine one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from posenc._backend import Backend, arithmetic_device, dtype_name, empty
from posenc._door import integer_positions, is_compiling, wrapped
from posenc._exact import exact_blocks
from posenc._frequencies import Frequencies

_FEW = 64
"""Contiguous positions below which two tables cost more than they save."""

_INNER = 16
"""Fine steps are themselves products, of so many inner steps and the outer ones."""

_FINE_BLOCK = 1 << 17
"""Most entries of one coarse block: a complex128 scratch of 2 MiB."""


def takes_fast_way(positions: Any, target: Backend) -> bool:
    """Whether contiguous positions go through a coarse and a fine table (float64 never does)."""
    return (
        isinstance(positions, range)
        and len(positions) >= _FEW
        and dtype_name(target.dtype) != "float64"
        and not is_compiling()
    )


def rotating_rows(
    positions: range, frequencies: Frequencies, target: Backend
) -> Iterator[tuple[slice, Any]]:
    """Rows of sin + i cos for contiguous positions, as complex128 in a reused scratch.

    Parameters
    ----------
    positions : range
        T positions with any step.
    frequencies : Frequencies
    target : Backend
        Chooses NumPy or torch, and the device.

    Yields
    ------
    rows : slice
        Which of the T rows these are.
    phasor : complex128, shape [rows, d/2]
        ``sin + 1j * cos``; overwritten by the next step.

    Notes
    -----
    Equation ``eq-coarse-fine`` of the book, used twice: a row is a coarse phase times a fine step,
    and a fine step is an outer times an inner one. All three are exact to float64 rounding, so
    the product errs by less than 1e-15 at any offset.
    """
    limit = 1 << max(1, _FINE_BLOCK // len(frequencies)).bit_length() - 1
    fine_rows = min(1 << max(4, (len(positions).bit_length() + 1) // 2), limit)
    fine = _steps(positions.step, fine_rows, frequencies, target)  # cos - i sin
    coarse_at = integer_positions(positions[::fine_rows])
    coarse = _phasor(coarse_at, frequencies, target, conjugate=False)  # sin + i cos
    multiply = _library(target).multiply
    scratch = target.xp.empty_like(fine)
    whole = len(positions) - len(positions) % fine_rows
    for start, row in zip(range(0, whole, fine_rows), coarse, strict=False):
        multiply(row, fine, out=scratch)
        yield slice(start, start + fine_rows), scratch
    if whole < len(positions):
        rest = slice(0, len(positions) - whole)
        multiply(coarse[-1], fine[rest], out=scratch[rest])
        yield slice(whole, len(positions)), scratch[rest]


def _steps(step: int, rows: int, frequencies: Frequencies, target: Backend) -> Any:
    """The steps 0, 1 ... as cos - i sin, complex128 [rows, d/2]; rows is a power of two."""
    inner_rows = min(_INNER, rows)
    inner_at = wrapped(step) * np.arange(inner_rows, dtype=np.int64)
    outer_at = wrapped(step * inner_rows) * np.arange(rows // inner_rows, dtype=np.int64)
    inner = _phasor(inner_at, frequencies, target, conjugate=True)
    outer = _phasor(outer_at, frequencies, target, conjugate=True)
    return (outer[:, None] * inner).reshape(rows, len(frequencies))


def _library(target: Backend) -> Any:
    """NumPy or torch itself: their ``multiply`` knows ``out`` and needs no promotion here."""
    if target.device is None:
        return np
    import torch

    return torch


def _phasor(positions: Any, frequencies: Frequencies, target: Backend, *, conjugate: bool) -> Any:
    """Complex128 [T, d/2]: cos - i sin if conjugate, else sin + i cos."""
    wide = Backend(target.xp, target.xp.complex128, arithmetic_device(target))
    table = empty((len(positions), len(frequencies)), wide)
    for rows, cos, sin in exact_blocks(positions, frequencies, wide):
        real, imaginary = (cos, -sin) if conjugate else (sin, cos)
        table[rows].real[...], table[rows].imag[...] = real, imaginary
    return table
