"""What a relative position indexes: T5's buckets, and Transformer-XL's shifted columns."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import numpy as np

from posenc._backend import common_place
from posenc._door import (
    flag,
    integer_positions,
    is_compiling,
    is_tensor,
    offset_number,
    unmasked,
    whole_number,
)


def t5_bucket(
    relative_position: Any, *, bidirectional: bool, num_buckets: int = 32, max_distance: int = 128
) -> Any:
    """Which row of T5's table of biases a distance looks up.

    Parameters
    ----------
    relative_position : int, (nested) list of int, ndarray or tensor of an integer dtype
        Key position minus query position, in tokens; any int64, any shape.
    bidirectional : bool
        True (encoders): half of the buckets for keys before the query and at it, half for keys
        after it. False (decoders): all for keys before; a key after its query, which the causal
        mask hides, gets bucket 0.
    num_buckets : int, default 32
        Rows of the table; even if bidirectional.
    max_distance : int, default 128
        From this distance on at the latest, all share the last bucket.

    Returns
    -------
    ndarray or tensor of int64, shape of ``relative_position``
        Buckets, 0 ... num_buckets - 1. Of the n for one direction, the first n // 2 hold one
        distance each; the others grow geometrically up to ``max_distance``. Found by comparing
        integers: no logarithm is rounded.

    Raises
    ------
    TypeError
        If ``relative_position`` or a size is not an integer, or ``bidirectional`` neither True
        nor False.
    ValueError
        If ``num_buckets`` is odd and bidirectional, or too small; if ``max_distance`` does not
        exceed the distances with a bucket of their own.
    RuntimeError
        Inside ``torch.compile(fullgraph=True)``: use `posenc.modules.T5Bias`.

    Notes
    -----
    Equation ``eq-t5-bucket`` of the book. Source: Raffel et al. (2020), section 2.1, and their
    ``_relative_position_bucket`` (mesh-tensorflow). Elsewhere: ``relative_attention_num_buckets``
    and ``relative_attention_max_distance`` (transformers).

    Examples
    --------
    >>> from posenc import t5_bucket
    >>> t5_bucket([-1000, -8, -1, 0, 1, 8, 1000], bidirectional=True)
    array([15,  8,  1,  0, 17, 24, 31])
    """
    edges = bucket_edges(bidirectional, num_buckets, max_distance)
    return bucket_of(
        integer_positions(relative_position, "relative_position"), edges, bidirectional
    )


def bucket_edges(bidirectional: bool, num_buckets: int, max_distance: int) -> tuple[int, ...]:
    """Smallest distance of each bucket of one direction but the first, which holds 0.

    Parameters
    ----------
    bidirectional, num_buckets, max_distance
        As in `t5_bucket`.

    Returns
    -------
    tuple of int
        ``1, 2, ...`` up to n // 2, then, for j = 1, 2, ..., the smallest integer that is not below
        ``(n/2) * (max_distance / (n/2)) ** (j / (n - n/2))``.
    """
    if is_compiling():
        raise RuntimeError(
            "buckets cannot be laid out while torch traces: use posenc.modules.T5Bias, which has "
            "them from its construction"
        )
    both = flag("bidirectional", bidirectional)
    total = whole_number("num_buckets", num_buckets, at_least=4 if both else 2)
    if both and total % 2:
        raise ValueError(f"num_buckets must be even if bidirectional, got {total}")
    n = total // 2 if both else total
    single = n // 2  # distances with a bucket of their own
    last = offset_number("max_distance", max_distance)
    if last <= single:
        raise ValueError(
            f"max_distance must exceed the {single} distances with a bucket of their own, "
            f"got {last}"
        )
    wide = n - single
    growing = [  # distance**wide >= single**(wide - j) * last**j, in integers
        bisect_left(range(last), single ** (wide - j) * last**j, key=lambda x: x**wide)
        for j in range(wide)
    ]
    return (*range(1, single), *growing)


def bucket_of(relative: Any, edges: tuple[int, ...], bidirectional: bool) -> Any:
    """`t5_bucket` of int64 differences, with its edges made before."""
    xp, device = common_place(relative_position=relative)
    distance = xp.clip(relative, -edges[-1], edges[-1])  # further is no other bucket
    distance = xp.abs(distance) if bidirectional else xp.where(distance < 0, -distance, 0)
    table: Any = np.array(edges)
    if device is not None:
        import torch

        table = torch.tensor(edges, device=device)
    bucket = xp.searchsorted(table, distance.reshape(-1), side="right").reshape(relative.shape)
    if bidirectional:
        bucket = bucket + xp.where(relative > 0, len(edges) + 1, 0)
    return bucket


def relative_shift(scores: Any) -> Any:
    """Move scores against distances under their keys, as Transformer-XL does.

    Parameters
    ----------
    scores : ndarray or tensor, shape [..., Tq, Tk]
        Row i: query i against the encodings of distances Tk - 1, ..., 1, 0, in this order (that
        is why Transformer-XL's ``pos_seq`` runs backwards). Any dtype; gradients pass through.

    Returns
    -------
    ndarray or tensor, shape [..., Tq, Tk]
        Row i, column j: the score of query i against distance ``i + (Tk - Tq) - j``, for keys up
        to the query's own; what stands behind them is left over from the next row, and a causal
        mask must hide it.

    Raises
    ------
    TypeError
        If ``scores`` is neither an array nor a tensor, or masked.
    ValueError
        If it has fewer than two axes, or fewer keys than queries.

    Notes
    -----
    Equation ``eq-relative-shift`` of the book: put a column of zeros before the rest, read the
    same numbers in rows of another length, and drop the first of them. Source: Dai et al. (2019),
    appendix B. Elsewhere: ``_rel_shift`` (Transformer-XL), ``rel_shift`` (XLNet).

    Examples
    --------
    >>> import numpy as np
    >>> from posenc import relative_shift
    >>> relative_shift(np.array([[3, 2, 1, 0]] * 4))  # each query's scores are its distances
    array([[0, 0, 3, 2],
           [1, 0, 0, 3],
           [2, 1, 0, 0],
           [3, 2, 1, 0]])
    """
    if not (is_tensor(scores) or isinstance(scores, np.ndarray)):
        raise TypeError(f"scores must be an array or a tensor, got {type(scores).__name__}")
    unmasked("scores", scores)
    if scores.ndim < 2:
        raise ValueError(f"scores must have shape [..., Tq, Tk], got {list(scores.shape)}")
    *batch, queries, keys = scores.shape
    if keys < queries:
        raise ValueError(
            f"scores must have at least as many keys as queries, got {keys} < {queries}"
        )
    xp, _ = common_place(scores=scores)
    wider = xp.concat([xp.zeros_like(scores[..., :1]), scores], axis=-1)  # [..., Tq, Tk + 1]
    return wider.reshape(*batch, keys + 1, queries)[..., 1:, :].reshape(scores.shape)
