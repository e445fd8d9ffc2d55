"""Positions in a cache of keys: of what comes next, and of what stays when rows are evicted."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from posenc._backend import common_place
from posenc._door import INT64, has_values, is_tensor, whole_number
from posenc._integers import count, integers, tokens, traced


def decode(
    lengths: Any = None, *, mask: Any = None, new_tokens: int = 1, device: Any = None
) -> Any:
    """Positions of the next tokens behind a cache.

    Parameters
    ----------
    lengths : int, list of int, ndarray or tensor of an integer dtype, shape ``[*batch]``
        Tokens seen so far, in each row: padding is none, and tokens that were evicted count if
        keys keep their true positions (see `evict`).
    mask : ndarray or tensor of bool or of an integer dtype, shape ``[*batch, T]``
        Instead of lengths: not 0 where the cache holds a token.
    new_tokens : int, default 1
        Tokens decoded at once, as in speculative decoding or a chunk of a prompt.
    device : torch device, optional
        Where positions made from Python integers shall lie.

    Returns
    -------
    ndarray or tensor of int64, shape ``[*batch, new_tokens]``
        n, n + 1 ... after n tokens.

    Raises
    ------
    TypeError
        If lengths are not integers, the mask is floating, or not one of the two is given.
    ValueError
        If a length is negative, the mask has no axis, or ``new_tokens`` is less than 1.

    Notes
    -----
    Equation ``eq-cache`` of the book; with a mask, the next after ``eq-positions-mask``.
    Elsewhere: ``cache_position`` (transformers), ``start_pos`` (Llama), ``seqlen_offsets``
    (flash-attention).

    Examples
    --------
    >>> import numpy as np
    >>> from posenc import positions
    >>> positions.decode(10)
    array([10])
    >>> positions.decode(mask=np.array([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]]), new_tokens=2)
    array([[3, 4],
           [5, 6]])
    """
    new = whole_number("new_tokens", new_tokens, at_least=1)
    if (lengths is None) == (mask is None):
        raise TypeError("decode takes lengths or mask, one of the two")
    if mask is not None:
        seen = tokens(mask).sum(-1)
        xp, place = common_place(mask=seen)
    else:
        seen, xp, place = integers("lengths", lengths, device)
        if _asks(seen) and bool((seen < 0).any()):
            raise ValueError(f"lengths must not be negative, got {int(seen.min())}")
        if _asks(seen) and bool((seen > INT64[-1] - (new - 1)).any()):
            raise ValueError(
                f"lengths must leave room for {new} positions in int64, got {int(seen.max())}"
            )
    return seen[..., None] + count(new, xp, place)


class Eviction(NamedTuple):
    """What `evict` keeps of a cache, and the two readings of where it stands."""

    kept: Any
    """Rows of the cache that stay, int64 [K]: ``keys[..., kept, :]``."""
    true: Any
    """First reading: the positions that the kept keys have had, int64 ``[*batch, K]``. Nothing is
    rotated again; the next token has the position that it would have had."""
    close: Any
    """Second reading, of StreamingLLM: 0 ... K - 1, int64 [K]. The next token has position K, and
    no distance exceeds the cache."""
    shift: Any
    """``close - true``, int64 ``[*batch, K]``: rotated by it, keys pass from the first reading to
    the second: ``apply_rope(keys, *phases(shift, frequencies), ...)``. `posenc.phases`, without
    the attention factor, which the keys bear already."""


def evict(positions: Any, *, sinks: int, window: int, device: Any = None) -> Eviction:
    """Keep the first and the last rows of a cache: attention sinks and a sliding window.

    Parameters
    ----------
    positions : int, range, list of int, ndarray or tensor of an integer dtype, ``[*batch, T]``
        Positions by which the cached keys were rotated. An int T stands for 0 ... T - 1.
    sinks : int
        Rows kept in front, from 0.
    window : int
        Rows kept at the end, from 1.
    device : torch device, optional
        Where results made from Python integers shall lie.

    Returns
    -------
    Eviction
        Named tuple of int64: ``kept`` [K], ``true`` ``[*batch, K]``, ``close`` [K] and ``shift``
        ``[*batch, K]``, with K = min(T, sinks + window).

    Raises
    ------
    TypeError
        If positions or sizes are not integers.
    ValueError
        If ``sinks`` is negative, ``window`` less than 1, or positions have no axis.

    Notes
    -----
    Equation ``eq-eviction`` of the book; what ``shift`` does to a key is ``eq-re-rotation``. An
    offset that counts cached rows while keys keep their true positions belongs to neither
    reading. Source: Xiao et al. (2023), section 3.2. Elsewhere: ``SinkCache`` (transformers),
    ``llama_kv_cache_seq_add`` (llama.cpp).

    Examples
    --------
    >>> from posenc import positions
    >>> gone = positions.evict(10, sinks=2, window=3)
    >>> gone.kept, gone.close, gone.shift
    (array([0, 1, 7, 8, 9]), array([0, 1, 2, 3, 4]), array([ 0,  0, -5, -5, -5]))
    """
    front = whole_number("sinks", sinks, at_least=0)
    back = whole_number("window", window, at_least=1)
    if isinstance(positions, (int, np.integer)) and not isinstance(positions, bool):
        positions = range(whole_number("positions", positions, at_least=0))
    at, xp, place = integers("positions", positions, device)
    if not at.ndim:
        raise ValueError("positions must have shape [*batch, T], got []")
    length = at.shape[-1]
    rows = count(length, xp, place)
    kept = rows if length <= front + back else xp.concat([rows[:front], rows[length - back :]])
    true, close = at[..., kept], rows[: kept.shape[0]]
    shift = close - true
    if _asks(at) and bool(((true < 0) & (shift < 0)).any()):
        raise ValueError(f"positions must leave room for a shift in int64, got {int(true.min())}")
    return Eviction(kept, true, close, shift)


def _asks(values: Any) -> bool:
    """Whether an error may depend on these values."""
    return not is_tensor(values) or (not traced() and has_values(values))
