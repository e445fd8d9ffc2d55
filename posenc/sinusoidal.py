"""The sinusoidal encoding writes phases down; the shift matrix turns them."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from posenc._backend import backend, cast, check_out, dtype_name, empty
from posenc._contiguous import rotating_rows, takes_fast_way
from posenc._door import choice, integer_positions, is_tensor, offset_number, whole_number
from posenc._frequencies import Frequencies
from posenc.spectrum import Spacing, frequencies, spectrum
from posenc.turns import phases

Layout = Literal["interleaved", "concatenated"]


def sinusoidal_encoding(
    positions: Any,
    dim: int,
    *,
    base: float = 10000.0,
    layout: Layout = "interleaved",
    spacing: Spacing = "paper",
    dtype: Any = None,
    device: Any = None,
    out: Any = None,
) -> Any:
    """Sines and cosines of every position: one row for each.

    Parameters
    ----------
    positions : int, range, (nested) list of int, ndarray or tensor of an integer dtype
        Positions in tokens, as in `posenc.phases`: any int64; a `range` takes the fast way.
    dim : int
        Channels d. An odd d (paper spacing only) has one sine more than cosines.
    base : float, default 10000.0
        Base of the frequencies.
    layout : {"interleaved", "concatenated"}
        ``"interleaved"``: sin, cos, sin, cos ... (Vaswani et al., 2017). ``"concatenated"``: all
        sines, then all cosines (tensor2tensor, fairseq, Marian).
    spacing : {"paper", "endpoint"}
        As in `posenc.frequencies`.
    dtype, device : optional
        As in `posenc.phases`; float32 by default.
    out : array or tensor, shape ``[*positions.shape, d]``, optional
        Filled and returned.

    Returns
    -------
    ndarray or tensor, shape ``[*positions.shape, d]``
        Rounded as `posenc.phases` rounds. With even d, each row has norm sqrt(d/2).

    Raises
    ------
    TypeError
        If positions are not integers, or NumPy and torch are mixed.
    ValueError
        If ``dim`` is not positive, or odd with endpoint spacing; if ``layout`` or ``spacing`` is
        none of the words above; if ``out`` has another shape, dtype or device.
    RuntimeError
        Inside ``torch.compile(fullgraph=True)`` or ``torch.export``, where frequencies cannot be
        computed: use `posenc.modules.SinusoidalEncoding`, or `posenc.phases`.

    Notes
    -----
    Equations ``eq-sinusoidal`` and ``eq-norm`` of the book. Source: Vaswani et al. (2017),
    section 3.5. Elsewhere: ``get_timing_signal_1d`` (tensor2tensor: concatenated, endpoint),
    ``SinusoidalPositionalEmbedding`` (fairseq: the same, rows offset by the padding index),
    ``get_timestep_embedding`` (diffusers: real-valued times).

    Examples
    --------
    >>> from posenc import sinusoidal_encoding
    >>> sinusoidal_encoding(range(2), 4).round(4)
    array([[0.    , 1.    , 0.    , 1.    ],
           [0.8415, 0.5403, 0.01  , 1.    ]], dtype=float32)
    """
    dim = whole_number("dim", dim, at_least=1)
    choice("layout", layout, ("interleaved", "concatenated"))
    omega = spectrum(dim, base, spacing)
    return encode(positions, omega, dim, layout, dtype=dtype, device=device, out=out)


def encode(
    positions: Any,
    omega: Frequencies,
    dim: int,
    layout: Layout,
    *,
    dtype: Any = None,
    device: Any = None,
    out: Any = None,
) -> Any:
    """`sinusoidal_encoding` with its frequencies made before."""
    outs = () if out is None else (out,)
    target = backend(positions, dtype, device, outs)
    shape = (*integer_positions(positions).shape, dim)
    if out is not None:
        check_out("out", out, shape, target)
    if not takes_fast_way(positions, target):
        cos, sin = phases(positions, omega, dtype=target.dtype, device=target.device)
        rows = _laid_out(sin, cos, dim, layout, target.xp)
        if out is None:
            return rows
        out[...] = rows
        return out
    table = empty(shape, target) if out is None else out
    sines = (dim + 1) // 2
    for rows, phasor in rotating_rows(positions, omega, target):  # sin + i cos: a row's own order
        if layout == "interleaved":
            row = phasor.view(target.xp.float64)
            table[rows] = row[:, :dim] if dim % 2 else row
        else:
            table[rows, :sines] = phasor.real
            table[rows, sines:] = phasor.imag[:, : dim - sines]
    return table


def _laid_out(sin: Any, cos: Any, dim: int, layout: Layout, xp: Any) -> Any:
    if layout == "interleaved":
        pairs = xp.stack([sin, cos], axis=-1)  # [..., d/2, 2]
        return pairs.reshape(*sin.shape[:-1], 2 * sin.shape[-1])[..., :dim]
    return xp.concat([sin, cos[..., : dim // 2]], axis=-1)


def shift_matrix(
    offset: int,
    dim: int,
    *,
    base: float = 10000.0,
    layout: Layout = "interleaved",
    spacing: Spacing = "paper",
) -> NDArray[np.float64]:
    """Matrix that carries the encoding of any position to that of the position plus an offset.

    Parameters
    ----------
    offset : int
        Tokens k to shift by; any int64, negative too.
    dim : int
        Channels d, even.
    base, layout, spacing
        As in `sinusoidal_encoding`.

    Returns
    -------
    ndarray of float64, shape [d, d]
        ``PE(p + offset) = M @ PE(p)`` for every p. Orthogonal, with one 2 x 2 block
        ``[[cos, sin], [-sin, cos]]`` for each pair.

    Raises
    ------
    TypeError
        If ``offset`` or ``dim`` is not an integer.
    ValueError
        If ``dim`` is odd (the last sine has no cosine to turn with) or ``offset`` outside int64.

    Notes
    -----
    Equations ``eq-shift-matrix``, ``eq-block``, ``eq-orthogonal``, ``eq-composition``,
    ``eq-inverse``, ``eq-generator`` and ``eq-eigenvalues`` of the book. In this column order it
    is the transpose of RoPE's rotation. Source: Vaswani et al. (2017), section 3.5, who state
    that it exists.

    Examples
    --------
    >>> from posenc import shift_matrix
    >>> shift_matrix(1, 2).round(4)
    array([[ 0.5403,  0.8415],
           [-0.8415,  0.5403]])
    """
    choice("layout", layout, ("interleaved", "concatenated"))
    omega = frequencies(dim, base, spacing=spacing)
    cos, sin = phases(offset_number("offset", offset), omega, dtype=np.float64)
    sines, cosines = _channels(omega, layout)
    matrix = np.zeros((2 * len(omega), 2 * len(omega)))
    matrix[sines, sines] = matrix[cosines, cosines] = cos
    matrix[sines, cosines], matrix[cosines, sines] = sin, -sin
    return matrix


def shift(
    encoding: Any,
    offset: int,
    *,
    base: float = 10000.0,
    layout: Layout = "interleaved",
    spacing: Spacing = "paper",
) -> Any:
    """Shift encodings by an offset without a matrix, in O(d) operations a row.

    Parameters
    ----------
    encoding : ndarray or tensor of a floating dtype, shape [..., d]
        Rows of `sinusoidal_encoding` with even d; gradients pass through.
    offset : int
        Tokens to shift by; any int64, negative too.
    base, layout, spacing
        As in `sinusoidal_encoding`, and as the rows were made.

    Returns
    -------
    ndarray or tensor, shape [..., d]
        ``encoding @ shift_matrix(offset, d).T`` in the input's dtype, computed in float32 or
        float64 and rounded once.

    Raises
    ------
    TypeError
        If ``encoding`` is not a floating array or tensor, or ``offset`` not an integer.
    ValueError
        If d is odd.

    Notes
    -----
    Equations ``eq-addition`` and ``eq-shift-matrix`` of the book.

    Examples
    --------
    >>> from posenc import shift, sinusoidal_encoding
    >>> shift(sinusoidal_encoding(2, 4), 3).round(4)  # the row of position 5
    array([-0.9589,  0.2837,  0.05  ,  0.9988], dtype=float32)
    """
    choice("layout", layout, ("interleaved", "concatenated"))
    if not (is_tensor(encoding) or isinstance(encoding, np.ndarray)) or not encoding.shape:
        raise TypeError(f"encoding must be rows [..., d], got {type(encoding).__name__}")
    wide = "float64" if dtype_name(encoding.dtype) == "float64" else "float32"
    target = backend(np.zeros(0) if not is_tensor(encoding) else encoding, None, None, (encoding,))
    omega = frequencies(encoding.shape[-1], base, spacing=spacing)
    device = target.device
    work = getattr(target.xp, wide)
    cos, sin = phases(offset_number("offset", offset), omega, dtype=work, device=device)
    sines, cosines = _channels(omega, layout)
    s, c = (cast(encoding[..., part], target._replace(dtype=work)) for part in (sines, cosines))
    moved = _laid_out(s * cos + c * sin, c * cos - s * sin, 2 * len(omega), layout, target.xp)
    return cast(moved, target)


def _channels(omega: Frequencies, layout: Layout) -> tuple[Any, Any]:
    """Channels of the sines and of the cosines, as slices or index arrays."""
    pairs = np.arange(len(omega))
    if layout == "interleaved":
        return 2 * pairs, 2 * pairs + 1
    return pairs, len(omega) + pairs
