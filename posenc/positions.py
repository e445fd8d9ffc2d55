"""Which integer is this token's position: padding, packing, shards, decoding, eviction.

Every function returns int64 positions for `posenc.phases` or `posenc.rope_tables`. NumPy in, NumPy
out; torch in, torch out; Python integers count as NumPy unless ``device`` is given.
"""

from __future__ import annotations

from typing import Any

from posenc._cache import Eviction, decode, evict
from posenc._door import has_values, is_compiling, is_tensor, whole_number
from posenc._integers import count, integers, tokens, transformed

__all__ = ["Eviction", "decode", "evict", "from_attention_mask", "packed", "zigzag"]


def from_attention_mask(mask: Any) -> Any:
    """Positions of a padded batch: each row counts its own tokens.

    Parameters
    ----------
    mask : ndarray or tensor of bool or of an integer dtype, shape [..., T]
        Not 0 where there is a token.

    Returns
    -------
    ndarray or tensor of int64, shape [..., T]
        0, 1, 2 ... at the tokens. Padding in front gets 0, other padding the position of the
        token before it: it is masked, and only must be a row of the tables.

    Raises
    ------
    TypeError
        If the mask is floating (in additive masks 0 means a token), or no array or tensor.
    ValueError
        If it has no axis.

    Notes
    -----
    Equation ``eq-positions-mask`` of the book. Elsewhere: ``position_ids`` of transformers'
    ``generate``, ``cumsum(mask) - 1``. For learned tables, whose padding has a row of its own:
    `posenc.learned.positions_from_mask`.

    Examples
    --------
    >>> import numpy as np
    >>> from posenc import positions
    >>> positions.from_attention_mask(np.array([0, 0, 1, 1, 1]))
    array([0, 0, 0, 1, 2])
    """
    return (tokens(mask).cumsum(-1) - 1).clip(0, None)


def packed(cu_seqlens: Any, *, device: Any = None) -> Any:
    """Positions of documents that stand one behind another: each starts at 0.

    Parameters
    ----------
    cu_seqlens : list of int, ndarray or tensor of an integer dtype, shape [n + 1]
        Cumulative lengths of n documents: 0 first, the number T of all tokens last.
    device : torch device, optional
        Where positions made from Python integers shall lie.

    Returns
    -------
    ndarray or tensor of int64, shape [T]
        0, 1, 2 ... within each document. Attention needs a document mask besides: positions alone
        let a document look into the one before.

    Raises
    ------
    TypeError
        If lengths are not integers.
    ValueError
        If they have another shape, do not start at 0, or fall.

    Notes
    -----
    Equation ``eq-positions-packed`` of the book. Elsewhere: ``cu_seqlens_q`` (flash-attention),
    ``position_ids`` of transformers' ``DataCollatorWithFlattening``.

    Examples
    --------
    >>> from posenc import positions
    >>> positions.packed([0, 3, 5])
    array([0, 1, 2, 0, 1])
    """
    ends, xp, place = integers("cu_seqlens", cu_seqlens, device)
    if ends.ndim != 1 or not ends.shape[0]:
        raise ValueError(f"cu_seqlens must have shape [n + 1], got {list(ends.shape)}")
    if is_tensor(ends) and not is_compiling() and (transformed() or not has_values(ends)):
        raise ValueError("cu_seqlens must have values: they say how long the result is")
    if int(ends[0]) or bool((ends[1:] < ends[:-1]).any()):
        raise ValueError(f"cu_seqlens must start at 0 and never fall, got {ends.tolist()}")
    at = count(int(ends[-1]), xp, place)
    return at - ends[xp.searchsorted(ends, at, side="right") - 1]


def zigzag(seq_len: int, world_size: int, rank: int, *, device: Any = None) -> Any:
    """Positions of one rank's shard in context parallelism, for causal attention.

    Parameters
    ----------
    seq_len : int
        Tokens T of the whole sequence (of one document, where several are packed).
    world_size, rank : int
        Ranks W that share the sequence, and which of them this is, from 0.
    device : torch device, optional
        Makes the result a tensor there.

    Returns
    -------
    ndarray or tensor of int64, shape [T / W]
        The sequence is cut into 2W chunks; a rank has chunk ``rank`` and chunk
        ``2W - 1 - rank``, so that all have as much to attend to. Positions are the tokens' own.

    Raises
    ------
    TypeError
        If a number is not an integer.
    ValueError
        If ``seq_len`` does not divide into 2W chunks, or there is no such rank.

    Notes
    -----
    Elsewhere: ``get_batch_on_this_cp_rank`` (Megatron), zigzag ring attention.

    Examples
    --------
    >>> from posenc import positions
    >>> positions.zigzag(8, 2, 0), positions.zigzag(8, 2, 1)
    (array([0, 1, 6, 7]), array([2, 3, 4, 5]))
    """
    length = whole_number("seq_len", seq_len, at_least=0)
    ranks = whole_number("world_size", world_size, at_least=1)
    own = whole_number("rank", rank, at_least=0)
    if own >= ranks:
        raise ValueError(f"rank must be less than world_size = {ranks}, got {own}")
    if length % (2 * ranks):
        raise ValueError(
            f"seq_len must be a multiple of 2 * world_size = {2 * ranks}, got {length}"
        )
    _, xp, place = integers("seq_len", length, device)
    chunks = count(length, xp, place).reshape(2 * ranks, -1)
    return xp.concat([chunks[own], chunks[2 * ranks - 1 - own]])
