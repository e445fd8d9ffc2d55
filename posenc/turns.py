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

from posenc._door import (
    Backend,
    backend,
    check_out,
    integer_positions,
    is_compiling,
    wrapped,
)
from posenc._frequencies import Frequencies
from posenc._results import cast, empty, joined

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
        in the last place, at every int64 position); float64 entries err by at most 2.3e-16
        (4.5e-16 on a CUDA device).

    Raises
    ------
    TypeError
        If positions are not integers (floating dtypes cannot tell 256 from 257, or 2**24 from
        2**24 + 1), or NumPy and torch are mixed.
    ValueError
        If a position lies outside int64, or ``out`` has another shape, dtype or device.

    Notes
    -----
    Equation ``eq-turns`` of the book (the sign of a sine alone is ``eq-odometer``); for a
    `range`, also ``eq-coarse-fine``. Works under ``torch.compile(fullgraph=True)``,
    ``torch.export``, ``torch.vmap`` and on the meta device.
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
    if takes_fast_way(positions, target):
        cos, sin = outs or (empty(shape, target), empty(shape, target))
        for rows, phasor in rotating_rows(positions, frequencies, target):
            phasor = phasor if factor == 1 else factor * phasor
            cos[rows], sin[rows] = phasor.imag, phasor.real
        return cos, sin
    blocks = [
        (cast(factor * cos, target), cast(factor * sin, target))
        for cos, sin in _direct_blocks(index.reshape(-1), frequencies, target)
    ]
    cos, sin = (joined(part, shape, target) for part in zip(*blocks, strict=True))
    if not outs:
        return cos, sin
    outs[0][...], outs[1][...] = cos, sin
    return outs


def takes_fast_way(positions: Any, target: Backend) -> bool:
    """Whether contiguous positions go through a coarse and a fine table (float64 never does)."""
    return (
        isinstance(positions, range)
        and len(positions) >= _FEW
        and str(target.dtype).removeprefix("torch.") != "float64"
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
    xp, device = target.xp, _arithmetic_device(target)
    limit = max(1, _FINE_BLOCK // len(frequencies))
    fine_rows = min(1 << max(4, (len(positions).bit_length() + 1) // 2), limit)
    fine_at = wrapped(positions.step) * np.arange(fine_rows, dtype=np.int64)
    coarse_at = integer_positions(positions[::fine_rows])
    fine = _phasor(fine_at, frequencies, xp, device, conjugate=True)  # cos - i sin
    coarse = _phasor(coarse_at, frequencies, xp, device, conjugate=False)  # sin + i cos
    scratch = xp.empty_like(fine)
    for start, row in zip(range(0, len(positions), fine_rows), coarse, strict=True):
        count = min(fine_rows, len(positions) - start)
        phasor = scratch[:count]
        xp.multiply(row, fine[:count], out=phasor)
        yield slice(start, start + count), phasor


def _phasor(
    positions: Any, frequencies: Frequencies, xp: Any, device: Any, *, conjugate: bool
) -> Any:
    blocks = []
    for cos, sin in _direct_blocks(positions, frequencies, Backend(xp, None, device)):
        blocks.append(cos - 1j * sin if conjugate else sin + 1j * cos)
    return blocks[0] if len(blocks) == 1 else xp.concat(blocks)


def _direct_blocks(
    index: Any, frequencies: Frequencies, target: Backend
) -> Iterator[tuple[Any, Any]]:
    """Float64 cosines and sines [rows, d/2] of int64 positions [T], by cache-sized blocks."""
    xp, device = target.xp, _arithmetic_device(target)
    limbs: Any = frequencies._limbs
    if device is not None:
        import torch

        index = torch.as_tensor(index, device=device)
        limbs = torch.as_tensor(limbs.copy(), device=device)
        if is_compiling() or index.is_meta:
            yield _cos_sin(index[:, None], limbs, xp)
            return
    step = max(1, _BLOCK // len(frequencies))
    for start in range(0, max(1, len(index)), step):
        yield _cos_sin(index[start : start + step, None], limbs, xp)


def _cos_sin(p: Any, limbs: Any, xp: Any) -> tuple[Any, Any]:
    """Float64 cos and sin of int64 p [T, 1] times the turns in limbs [4, d/2]."""
    high, low, low_1, low_0 = limbs
    # p * (high, low) mod 2**128, p signed: schoolbook product of the low limb, 32 bits at a time
    p_1, p_0 = _upper(p), p & _LOW_32
    middle = p_1 * low_0 + _upper(p_0 * low_0)
    middle_0 = p_0 * low_1 + (middle & _LOW_32)
    carry = p_1 * low_1 + _upper(middle) + _upper(middle_0)  # floor(unsigned p * low / 2**64)
    turn = p * high + carry - xp.where(p < 0, low, 0 * low)
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


def _arithmetic_device(target: Backend) -> Any:
    """The target's device, or the CPU for one without float64."""
    return "cpu" if target.device is not None and target.device.type == "mps" else target.device
