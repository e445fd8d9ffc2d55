"""Phases: cosines and sines of position times frequency, exact at every int64 position.

An angle is held in turns, as a 128-bit binary fraction. In wrap-around arithmetic the product of
an integer position and that fraction loses its whole turns by itself: overflow is the range
reduction. Contiguous positions are cheaper still: one complex product joins a coarse phase and a
fine one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from posenc._backend import (
    Backend,
    arithmetic_device,
    backend,
    cast,
    check_apart,
    check_out,
    dtype_name,
    empty,
)
from posenc._door import integer_positions, is_compiling, wrapped
from posenc._frequencies import Frequencies

_LOW_32 = (1 << 32) - 1
_BLOCK = 1 << 15
"""Phases computed at once: their int64 and float64 intermediates stay in a core's cache."""

_FEW = 64
"""Contiguous positions below which two tables cost more than they save."""

_FINE_BLOCK = 1 << 16
"""Most entries of one coarse block: a complex128 scratch of 1 MiB."""


def phases(
    positions: Any,
    frequencies: Frequencies,
    *,
    dtype: Any = None,
    device: Any = None,
    out: tuple[Any, Any] | None = None,
) -> tuple[Any, Any]:
    """Cosines and sines of ``positions * omega``.

    Parameters
    ----------
    positions : int, range, (nested) list of int, ndarray or tensor of an integer dtype
        Positions in tokens: any int64, negative ones too. A `range` takes the fast way for
        contiguous positions. NumPy in, NumPy out; torch in, torch out, on the input's device.
        Python integers count as NumPy unless ``device``, ``out`` or ``dtype`` names torch.
    frequencies : Frequencies
        The d/2 frequencies in radians per token. Their attention factor is not applied:
        these are pure cosines and sines.
    dtype : floating dtype of NumPy or torch, optional
        Default float32. Rounding to it is the last step.
    device : torch device, optional
        Where the result shall lie. A device without float64 gets what the CPU computed.
    out : tuple of two arrays or tensors, shape ``[*positions.shape, d/2]``, optional
        Filled with the cosines and the sines, and returned.

    Returns
    -------
    cos, sin : ndarray or tensor, shape ``[*positions.shape, d/2]``
        float32 entries are the correctly rounded values (at most one in 10**7 is off by one unit
        in the last place, at every int64 position, for frequencies of at least 1e-25 radians per
        token; slower hands are held to 2**-128 of a turn); float64 entries err by at most 2.3e-16
        (4.5e-16 on a CUDA device).

    Raises
    ------
    TypeError
        If positions are not integers (floating dtypes cannot tell 256 from 257, or 2**24 from
        2**24 + 1), or NumPy and torch are mixed.
    ValueError
        If a position lies outside int64, or ``out`` has another shape, dtype or device, or not a
        place of its own for each entry.

    Notes
    -----
    Equation ``eq-turns`` of the book (the sign of a sine alone is ``eq-odometer``); for a
    `range`, also ``eq-coarse-fine``. With tensors it works under
    ``torch.compile(fullgraph=True)``, ``torch.export``, ``torch.vmap`` and on the meta device.
    Elsewhere: ``cos_cached, sin_cached`` (transformers), ``freqs_cis`` (Llama), which form angles
    in floating point.

    Examples
    --------
    >>> from posenc import frequencies, phases
    >>> cos, sin = phases(10**9, frequencies(4))
    >>> cos
    array([ 0.83788717, -0.9072704 ], dtype=float32)
    """
    return tables(positions, frequencies, False, dtype, device, out)


def tables(
    positions: Any, frequencies: Frequencies, scaled: bool, dtype: Any, device: Any, out: Any
) -> tuple[Any, Any]:
    """`phases`; if scaled, times the attention factor, multiplied before the last rounding."""
    if not isinstance(frequencies, Frequencies):
        raise TypeError(f"frequencies must be Frequencies, got {type(frequencies).__name__}")
    if out is not None and (not isinstance(out, (tuple, list)) or len(out) != 2):
        raise TypeError(f"out must be a pair (cos, sin), got {type(out).__name__}")
    outs = () if out is None else tuple(out)
    factor = frequencies.attention_factor if scaled else 1.0
    target = backend(positions, dtype, device, outs)
    index = integer_positions(positions)
    shape = (*index.shape, len(frequencies))
    for name, table in zip(("cos of out", "sin of out"), outs, strict=False):
        check_out(name, table, shape, target)
    if outs:
        check_apart("cos and sin of out", *outs)
    if takes_fast_way(positions, target):
        cos, sin = outs or (empty(shape, target), empty(shape, target))
        for rows, phasor in rotating_rows(positions, frequencies, target):
            phasor = phasor if factor == 1 else factor * phasor
            cos[rows], sin[rows] = phasor.imag, phasor.real
        return cos, sin
    blocks = (
        (rows, cast(factor * cos, target), cast(factor * sin, target))
        for rows, cos, sin in _direct_blocks(index.reshape(-1), frequencies, target)
    )
    if outs and index.ndim == 1:
        for rows, cos, sin in blocks:
            outs[0][rows], outs[1][rows] = cos, sin
        return outs
    parts = [(cos, sin) for _, cos, sin in blocks]
    cos, sin = (_joined(part, shape, target) for part in zip(*parts, strict=True))
    if not outs:
        return cos, sin
    outs[0][...], outs[1][...] = cos, sin
    return outs


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
    Equation ``eq-coarse-fine`` of the book. Both tables are exact to float64 rounding, so the
    product errs by less than 5e-16 at any offset.
    """
    limit = max(1, _FINE_BLOCK // len(frequencies))
    fine_rows = min(1 << max(4, (len(positions).bit_length() + 1) // 2), limit)
    fine_at = wrapped(positions.step) * np.arange(fine_rows, dtype=np.int64)
    fine = _phasor(fine_at, frequencies, target, conjugate=True)  # cos - i sin
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
    for rows, cos, sin in _direct_blocks(positions, frequencies, wide):
        real, imaginary = (cos, -sin) if conjugate else (sin, cos)
        table[rows].real[...], table[rows].imag[...] = real, imaginary
    return table


def _direct_blocks(
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


def _joined(blocks: tuple[Any, ...], shape: tuple[int, ...], target: Backend) -> Any:
    table = blocks[0] if len(blocks) == 1 else target.xp.concat(blocks)
    return table.reshape(shape)
