"""Position as a bias on the scores: ALiBi takes a slope times the distance from each score.

A distance is a difference of integers, formed before anything is rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posenc._backend import common_place, dtype_name
from posenc._door import (
    INTEGERS,
    flag,
    integer_positions,
    is_tensor,
    offset_number,
    whole_number,
)
from posenc._slopes import head_slopes


def alibi_slopes(n_heads: int) -> NDArray[np.float64]:
    """Slopes of ALiBi, one for each head, as the authors' code gives them.

    Parameters
    ----------
    n_heads : int
        Heads n, at least 1.

    Returns
    -------
    ndarray of float64, shape [n]
        In score units per token. For a power of two ``2**(-8i/n)``, i = 1 ... n. For another n:
        the slopes of the next smaller power of two m, then every second slope of 2m, from its
        first on. These are not sorted, and trained models rely on their order.

    Raises
    ------
    TypeError
        If ``n_heads`` is not an integer.
    ValueError
        If ``n_heads`` is less than 1.

    Notes
    -----
    Equation ``eq-slopes`` of the book. Source: Press, Smith and Lewis (2022), section 3, and
    their ``get_slopes``. Elsewhere: ``build_alibi_tensor`` (BLOOM), ``alibi_bias_max=8`` (MPT).

    Examples
    --------
    >>> from posenc import alibi_slopes
    >>> alibi_slopes(4)
    array([0.25      , 0.0625    , 0.015625  , 0.00390625])
    >>> alibi_slopes(6)
    array([0.25      , 0.0625    , 0.015625  , 0.00390625, 0.5       ,
           0.125     ])
    """
    n = whole_number("n_heads", n_heads, at_least=1)
    m = 1 << (n.bit_length() - 1)  # the largest power of two that is not above n
    # numbers of Python, because torch.compile would divide NumPy's integers in float32
    exact = [2.0 ** (-8 * i / m) for i in range(1, m + 1)]
    between = [2.0 ** (-4 * i / m) for i in range(1, 2 * (n - m), 2)]  # the odd ones of 2m
    return np.array([*exact, *between], dtype=np.float64)


def alibi_bias(
    slopes: Any, query_positions: Any, key_positions: Any, *, bidirectional: bool = False
) -> Any:
    """What ALiBi adds to the scores of every query and key.

    Parameters
    ----------
    slopes : array, tensor or list of numbers, shape [H]
        One for each head, such as `alibi_slopes` gives; gradients reach slopes that are learned.
        A tensor's values are not looked at.
    query_positions : range, list of int, ndarray or tensor of an integer dtype, [Tq] or [B, Tq]
        Positions in tokens, any int64. Queries at the end of a cache say so by their positions:
        ``[9]`` is the query of the tenth token.
    key_positions : the same, [Tk] or [B, Tk]
        Positions of the keys: at least as many as queries, unless bidirectional.
    bidirectional : bool, default False
        Whether a query attends to later keys as well.

    Returns
    -------
    ndarray or tensor, shape [H, Tq, Tk], or [B, H, Tq, Tk] if positions have a batch
        ``slope * (k - q)``; bidirectional ``-slope * |k - q|``. In the causal form a key after
        its query gets a positive value, which a causal mask must hide, as in BLOOM and MPT.
        float64 if the slopes are float64 (`alibi_slopes` gives these), numbers of Python or
        integers, otherwise float32. Rounded once up to a distance of 2**24 tokens (2**53 in
        float64).

    Raises
    ------
    TypeError
        If positions are not integers, slopes not real numbers of at most 64 bits, or NumPy and
        torch are mixed (NumPy slopes go with torch positions: they follow them).
    ValueError
        If shapes do not fit, devices differ, a slope is not finite, or a causal query has no key
        of its own.
    RuntimeError
        Inside ``torch.compile(fullgraph=True)``, if the slopes are no tensor; positions must be
        tensors or ranges there.

    Notes
    -----
    Equation ``eq-alibi`` of the book. Add it after all scalings of the scores, in float32: a cast
    to bfloat16 merges neighbours beyond distance 256, one to float16 overflows at 131072 (slope
    1/2). Source: Press, Smith and Lewis (2022), section 3. Elsewhere: ``alibi`` of BLOOM and MPT,
    which add ``slope * k``, the same under a softmax if causal and wrong if not; Falcon divides
    its bias by sqrt(d).

    Examples
    --------
    >>> from posenc import alibi_bias
    >>> alibi_bias([0.5], [3], range(4))
    array([[[-1.5, -1. , -0.5,  0. ]]])
    """
    with_them = {"slopes": slopes} if is_tensor(slopes) else {}  # NumPy's follow the positions
    positions = {"query_positions": query_positions, "key_positions": key_positions}
    xp, device = common_place(**with_them, **positions)
    slope = head_slopes(slopes, device)
    both = flag("bidirectional", bidirectional)
    half, rest = differences(query_positions, key_positions, device, causal=not both)
    distance = 2 * xp.astype(half, slope.dtype) + xp.astype(rest, slope.dtype)
    if both:
        distance = 0.0 - xp.abs(distance)  # 0.0 - 0.0 is 0.0, not -0.0
    return slope[:, None, None] * distance[..., None, :, :]  # [..., H, Tq, Tk]


def alibi_score_mod(
    slopes: Any, *, offset: Any = 0, bidirectional: bool = False, device: Any = None
) -> Callable[[Any, Any, Any, Any, Any], Any]:
    """ALiBi as a ``score_mod`` of FlexAttention: the bias is never stored.

    Parameters
    ----------
    slopes : array, tensor or list of numbers, shape [H]
        One for each query head, such as `alibi_slopes` gives.
    offset : int or integer tensor without axes, default 0
        Position of the first query minus that of the first key: in decoding, Tk - Tq. Within
        2**30 of 0, because indices are int32; of a tensor, which is widened to int64, the value
        is not looked at. A tensor spares ``torch.compile`` a compilation for each new value.
    bidirectional : bool, default False
        As in `alibi_bias`; a causal ``block_mask`` hides later keys.
    device : torch device, optional
        Where the slopes shall lie: the device of the queries. Unless given, a tensor stays where
        it is, and other slopes go to the CPU.

    Returns
    -------
    function of (score, batch, head, query index, key index)
        The score plus the bias of `alibi_bias`, added in the score's dtype and at least in
        float32, also where FlexAttention traces it with scores of float16 or bfloat16.

    Raises
    ------
    TypeError
        If slopes are not real numbers, ``offset`` is not an integer, or ``bidirectional`` neither
        True nor False.
    ValueError
        If slopes have another shape than [H] or are not finite, or an int ``offset`` is too far.

    Notes
    -----
    Equation ``eq-alibi`` of the book. Elsewhere: ``alibi_slopes`` of flash_attn_func.

    Examples
    --------
    >>> from posenc import alibi_score_mod, alibi_slopes
    >>> import torch
    >>> add = alibi_score_mod(alibi_slopes(8), offset=9)
    >>> add(torch.tensor(0.0), 0, 0, 0, 5)  # head 0, a query at position 9, a key at 5
    tensor(-2.)
    """
    import torch

    tensor, both = is_tensor(offset), flag("bidirectional", bidirectional)
    if not tensor:
        offset = offset_number("offset", offset)
        if abs(offset) > 1 << 30:
            raise ValueError(f"offset must lie in -2**30 ... 2**30, got {offset}")
    elif offset.ndim or dtype_name(offset.dtype) not in INTEGERS[:-1]:
        raise TypeError(f"offset must be an integer, got {offset.dtype} {list(offset.shape)}")
    if device is None:
        device = slopes.device if is_tensor(slopes) else torch.device("cpu")
    slope = head_slopes(slopes, device)

    def score_mod(score: Any, batch: Any, head: Any, query: Any, key: Any) -> Any:
        distance = key - query - (offset.to(torch.int64) if tensor else offset)
        if both:
            distance = -abs(distance)
        wide = torch.promote_types(score.dtype, torch.float32)
        return score.to(wide) + (slope[head] * distance).to(wide)

    return score_mod


def differences(query: Any, key: Any, device: Any, *, causal: bool) -> tuple[Any, Any]:
    """Key positions minus query positions, as twice a half plus a rest: no int64 overflows.

    Parameters
    ----------
    query, key : positions, shape [Tq] or [B, Tq], and [Tk] or [B, Tk]
        As `alibi_bias` takes them.
    device : torch device or None
        Where the differences shall lie; None for NumPy.
    causal : bool
        Whether each query needs a key of its own.

    Returns
    -------
    half, rest : int64, shape [Tq, Tk] or [B, Tq, Tk]
        ``2 * half + rest`` is the difference; ``rest`` is -1, 0 or 1.
    """
    q = integer_positions(query, "query_positions")
    k = integer_positions(key, "key_positions")
    for name, p, axis in (("query_positions", q, "Tq"), ("key_positions", k, "Tk")):
        if p.ndim not in (1, 2):
            raise ValueError(f"{name} must have shape [{axis}] or [B, {axis}], got {list(p.shape)}")
    if q.ndim == k.ndim == 2 and q.shape[0] != k.shape[0]:
        raise ValueError(
            "query_positions and key_positions must have the same batch, "
            f"got {q.shape[0]} and {k.shape[0]}"
        )
    if causal and k.shape[-1] < q.shape[-1]:
        raise ValueError(
            "key_positions must not be fewer than query_positions (a causal query attends to a "
            f"key of its own), got {k.shape[-1]} and {q.shape[-1]}"
        )
    if device is not None:
        import torch

        q, k = torch.as_tensor(q, device=device), torch.as_tensor(k, device=device)
    q, k = q[..., :, None], k[..., None, :]
    return (k >> 1) - (q >> 1), (k & 1) - (q & 1)
