"""Rotary position embedding: pairs of channels of queries and keys turn by the phases."""

from __future__ import annotations

from typing import Any, Literal

from posenc import _rotation
from posenc._frequencies import Frequencies
from posenc.kernels import quick, reads_by_number, rotate
from posenc.turns import tables

PositionAxis = Literal[-2, -3]

_USUAL: PositionAxis = -2
"""By identity: any other object goes the long way, where it is checked."""


def rope_tables(
    positions: Any,
    frequencies: Frequencies,
    *,
    dtype: Any = None,
    device: Any = None,
    out: tuple[Any, Any] | None = None,
) -> tuple[Any, Any]:
    """Cosines and sines by which `apply_rope` turns: phases times the attention factor.

    Parameters
    ----------
    positions : int, range, (nested) list of int, ndarray or tensor of an integer dtype
        Positions in tokens, as in `posenc.phases`: any int64; a `range` takes the fast way.
    frequencies : Frequencies
        The r/2 frequencies in radians per token, and the attention factor.
    dtype, device : optional
        As in `posenc.phases`. The default float32 is what `apply_rope` takes for float32,
        bfloat16 and float16; for float64 it takes float64.
    out : tuple of two arrays or tensors, shape ``[*positions.shape, r/2]``, optional
        Filled with the cosines and the sines, and returned.

    Returns
    -------
    cos, sin : ndarray or tensor, shape ``[*positions.shape, r/2]``
        One column for each pair: half as wide as the tables of transformers, which hold each
        number twice. The factor is multiplied in float64, before the one rounding.

    Raises
    ------
    TypeError
        If positions are not integers, or NumPy and torch are mixed.
    ValueError
        If a position lies outside int64, or ``out`` has another shape, dtype or device.

    Notes
    -----
    The cosines and sines of equations ``eq-rope`` and ``eq-rope-rotation`` of the book.
    With the attention factor A, queries and keys become A times as long, and their scores A**2
    times as large. Source: Su et al. (2021), section 3.2; the factor: Peng et al. (2023), section
    3.4. Elsewhere: ``cos_cached``, ``sin_cached`` (transformers), ``cos_cache`` (ONNX),
    ``freqs_cis`` (Llama), which form angles in floating point.

    Examples
    --------
    >>> from posenc import frequencies, rope_tables
    >>> cos, sin = rope_tables(range(3, 5), frequencies(4))
    >>> cos.round(4)
    array([[-0.99  ,  0.9996],
           [-0.6536,  0.9992]], dtype=float32)
    """
    return tables(positions, frequencies, True, dtype, device, out)


def apply_rope(
    x: Any,
    cos: Any,
    sin: Any,
    *,
    interleaved: bool,
    positions: Any = None,
    position_axis: PositionAxis = -2,
    out: Any = None,
    inverse: bool = False,
) -> Any:
    """Turn the pairs of queries or keys by the angles whose cosines and sines are given.

    Parameters
    ----------
    x : ndarray or tensor of a floating dtype, shape [..., T, head_dim]
        With ``position_axis=-3``: [..., T, H, head_dim]. Any strides. The first r channels turn,
        the rest pass; head_dim is even.
    cos, sin : ndarray or tensor, shape [T, r/2] or ``[*batch, T, r/2]``
        Tables of `rope_tables`: float32 for float16, bfloat16 and float32, float64 for float64.
        Their batch axes are the first axes of x, or 1; all axes between these and the positions
        share a row. Nothing else broadcasts.
    interleaved : bool
        True: pairs (2i, 2i + 1). False: pairs (i, i + r/2). A checkpoint says which.
    positions : list of int, ndarray or tensor of an integer dtype, [T] or ``[*batch, T]``, optional
        Rows of ``cos`` and ``sin``, which then have shape [rows, r/2].
    position_axis : {-2, -3}
        Axis of x along which positions run.
    out : array or tensor like x, optional
        Filled and returned: x itself, or memory that shares no element with any input.
    inverse : bool, default False
        Turn by minus the angles: the transpose, and the inverse if the attention factor is 1.

    Returns
    -------
    ndarray or tensor, shape of x
        In the dtype of x, computed in float32 (float64) and rounded once.

    Raises
    ------
    TypeError
        If the pairing is not said; if dtypes do not fit; if NumPy and torch are mixed.
    ValueError
        If shapes or devices do not fit, a position is no row of the tables, or ``out`` overlaps
        an input in part, or is given while gradients are recorded. Nothing is written then.

    Notes
    -----
    Equations ``eq-rope``, ``eq-rope-rotation``, ``eq-rope-generator``, ``eq-rope-relative``,
    ``eq-half``, ``eq-partial-rotary`` and ``eq-rope-backward`` of the book. With a, b a pair and
    c, s its cosine and sine: ``a c - b s`` and ``b c + a s``. The gradient is the rotation by
    minus the angles, and only tables are saved for it; tables that require grad get theirs.
    Under ``torch.compile`` a position outside raises a RuntimeError; where no error can depend
    on values (vmap, CUDA graphs), its row becomes NaN.
    Source: Su et al. (2021), equation 34. Elsewhere: ``apply_rotary_pos_emb`` (transformers,
    pairs (i, i + r/2) in Llama and NeoX, (2i, 2i + 1) in GPT-J), ``RotaryEmbedding`` (ONNX),
    ``apply_rotary_emb`` (flash-attention), ``is_neox_style = not interleaved`` (vLLM).

    Examples
    --------
    >>> import numpy as np
    >>> from posenc import apply_rope, frequencies, rope_tables
    >>> cos, sin = rope_tables([1], frequencies(4), dtype=np.float64)
    >>> x = np.array([[1.0, 2.0, 3.0, 4.0]])
    >>> apply_rope(x, cos, sin, interleaved=True).round(4)
    array([[-1.1426,  1.9221,  2.9599,  4.0298]])
    >>> apply_rope(x, cos, sin, interleaved=False).round(4)
    array([[-1.9841,  1.9599,  2.4624,  4.0198]])
    """
    if out is None and positions is None and position_axis is _USUAL and inverse is False:
        found = quick((x,), cos, sin, interleaved)
        if found is not None:
            return found[0]
    outs = None if out is None else (out,)
    named = {"x": x}
    return _rotated(named, cos, sin, interleaved, positions, position_axis, outs, inverse)[0]


def apply_rope_qk(
    q: Any,
    k: Any,
    cos: Any,
    sin: Any,
    *,
    interleaved: bool,
    positions: Any = None,
    position_axis: PositionAxis = -2,
    out: tuple[Any, Any] | None = None,
    inverse: bool = False,
) -> tuple[Any, Any]:
    """Turn queries and keys by one pair of tables, which are checked and formed once.

    Parameters
    ----------
    q, k : ndarray or tensor of a floating dtype, shape [..., T, head_dim]
        Of one dtype; they may differ in their numbers of heads.
    cos, sin, interleaved, positions, position_axis, inverse
        As in `apply_rope`.
    out : tuple of two arrays or tensors like q and k, optional
        Filled and returned; each is its own input or memory that shares nothing with any other.

    Returns
    -------
    q, k : ndarray or tensor, shapes of q and k
        As `apply_rope` returns them.

    Raises
    ------
    TypeError
        As `apply_rope` does, and if q and k differ in dtype, or ``out`` is no pair.
    ValueError
        As `apply_rope` does.

    Notes
    -----
    Equations ``eq-rope-ask``, ``eq-rope-score`` and ``eq-rope-decay`` of the book, for the products
    of what is returned; otherwise as in `apply_rope`.

    Examples
    --------
    >>> import torch
    >>> from posenc import apply_rope_qk, frequencies, rope_tables
    >>> q, k = torch.randn(2, 8, 5, 64), torch.randn(2, 2, 5, 64)  # 8 heads share 2 key heads
    >>> cos, sin = rope_tables(torch.arange(5), frequencies(64))
    >>> [x.shape[1] for x in apply_rope_qk(q, k, cos, sin, interleaved=False)]
    [8, 2]
    """
    if out is not None and (not isinstance(out, (tuple, list)) or len(out) != 2):
        raise TypeError(f"out must be a pair (q, k), got {type(out).__name__}")
    if out is None and positions is None and position_axis is _USUAL and inverse is False:
        found = quick((q, k), cos, sin, interleaved)
        if found is not None:
            return found[0], found[1]
    named = {"q": q, "k": k}
    q, k = _rotated(named, cos, sin, interleaved, positions, position_axis, out, inverse)
    return q, k


def _rotated(
    named: dict[str, Any],
    cos: Any,
    sin: Any,
    interleaved: bool,
    positions: Any,
    axis: int,
    outs: Any,
    inverse: bool,
) -> list[Any]:
    """Check everything, match tables and tensors, and hand them to the kernels."""
    _rotation.check_words(interleaved, inverse, axis)
    _rotation.check_inputs(named, cos, sin, positions, axis)
    xs, says, index = list(named.values()), "cos", None
    if outs is not None:
        _rotation.check_outs(named, outs, (cos, sin))
    if positions is not None:
        by_number = reads_by_number(xs, cos, sin)
        cos, sin, index = _rotation.gathered(cos, sin, positions, by_number)
        says = "positions"
    shaped: list[tuple[Any, ...]] = []
    for name, x in named.items():
        if index is None:
            table = tuple(_rotation.matched(t, name, x, axis, says) for t in (cos, sin))
        else:
            table = cos, sin, _rotation.matched(index[..., None], name, x, axis, says)
        same = [known for known in shaped if known[-1].shape == table[-1].shape]
        shaped.append(same[0] if same else table)
    targets = [None] * len(xs) if outs is None else list(outs)
    moved = [None if out is None else _heads_first(out, axis) for out in targets]
    inputs = [
        there if out is x else _heads_first(x, axis)
        for x, out, there in zip(xs, targets, moved, strict=True)
    ]
    results = rotate(inputs, shaped, moved, interleaved=interleaved, inverse=inverse)
    if outs is not None:
        return list(outs)
    return [_heads_first(result, axis) for result in results]


def _heads_first(x: Any, axis: int) -> Any:
    """Positions moved to the last axis but one, or back: a view."""
    return x if axis == -2 else x.swapaxes(-2, -3)
