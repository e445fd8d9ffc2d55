"""Phases: cosines and sines of position times frequency, exact at every int64 position.

Positions in any order go through `posenc._exact`, a `range` through `posenc._contiguous`.
"""

from __future__ import annotations

from typing import Any

from posenc._backend import Backend, backend, cast, check_apart, check_out, empty
from posenc._contiguous import rotating_rows, takes_fast_way
from posenc._door import integer_positions
from posenc._exact import exact_blocks
from posenc._frequencies import Frequencies


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
    Equation ``eq-turns`` of the book, with ``eq-fixed-point`` for its error (the sign of a sine
    alone is ``eq-odometer``); for a `range`, also ``eq-coarse-fine``. With tensors it works under
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
        for rows, cos, sin in exact_blocks(index.reshape(-1), frequencies, target)
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


def _joined(blocks: tuple[Any, ...], shape: tuple[int, ...], target: Backend) -> Any:
    table = blocks[0] if len(blocks) == 1 else target.xp.concat(blocks)
    return table.reshape(shape)
