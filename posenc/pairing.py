"""Two pairings of the same channels: the permutation between them, and weights that follow it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from posenc._door import even_number, is_tensor, whole_number
from posenc._rotation import plain


def pairing_permutation(dim: int, *, to_interleaved: bool) -> NDArray[np.int64]:
    """Order of channels that turns one pairing into the other.

    Parameters
    ----------
    dim : int
        Channels d that are rotated, even.
    to_interleaved : bool
        True: from pairs (i, i + d/2) to pairs (2i, 2i + 1). False: the way back.

    Returns
    -------
    ndarray of int64, shape [d]
        ``x_target = x_source[..., perm]``. The two directions undo one another; for d >= 6
        neither undoes itself, so a conversion must happen once and in the right direction.

    Raises
    ------
    TypeError
        If ``dim`` is not an integer, or ``to_interleaved`` not a bool.
    ValueError
        If ``dim`` is odd or not positive.

    Notes
    -----
    Equation ``eq-pairing-permutation`` of the book.
    ``apply_rope(x[..., perm], cos, sin, interleaved=target)`` is
    ``apply_rope(x, cos, sin, interleaved=source)[..., perm]``; keys kept after their turn are
    reordered by the same ``perm``. Source: Su et al. (2021), equation 34, pairs neighbours.
    Elsewhere: ``permute`` of transformers' conversion of Llama, as
    ``view(H, d/2, 2, -1).transpose(1, 2)``.

    Examples
    --------
    >>> from posenc import pairing_permutation
    >>> pairing_permutation(8, to_interleaved=False)
    array([0, 2, 4, 6, 1, 3, 5, 7])
    >>> pairing_permutation(8, to_interleaved=True)
    array([0, 4, 1, 5, 2, 6, 3, 7])
    """
    dim = even_number("dim", dim)
    if not isinstance(to_interleaved, bool):
        raise TypeError(f"to_interleaved must be True or False, got {to_interleaved!r}")
    shape = (2, dim // 2) if to_interleaved else (dim // 2, 2)
    return np.arange(dim).reshape(shape).T.reshape(-1)


def convert_qk_weight(
    weight: Any, n_heads: int, *, to_interleaved: bool, rotary_dim: int | None = None
) -> Any:
    """Move the rows of a query or key projection from one pairing to the other.

    Parameters
    ----------
    weight : ndarray or tensor, shape [H * head_dim, ...]
        ``weight`` of the projection (rows are output channels, as in ``torch.nn.Linear``), or its
        ``bias``. Any dtype. A norm's weight over each head, shape [head_dim], has one head.
    n_heads : int
        Heads H of this projection: for keys the number of key heads.
    to_interleaved : bool
        As in `pairing_permutation`.
    rotary_dim : int, optional
        Channels of each head that are rotated, the first ones; all unless given.

    Returns
    -------
    ndarray or tensor, shape [H * head_dim, ...]
        The same rows in another order, in memory of their own.

    Raises
    ------
    TypeError
        If ``weight`` is no array or tensor, a number is not an integer, or ``to_interleaved``
        not a bool.
    ValueError
        If the rows do not divide into H heads, or ``rotary_dim`` is odd or wider than a head.

    Notes
    -----
    Equation ``eq-weight-conversion`` of the book.
    Convert queries and keys, weights and biases, and LoRA's B, whose rows are the same channels:
    scores stay as they are only if all are converted, once. Values are never converted. A model
    of pairs (i, i + d/2) converted so runs at the speed of the other pairing on a CPU.
    Elsewhere: ``permute`` in transformers' ``convert_llama_weights_to_hf``.

    Examples
    --------
    >>> import numpy as np
    >>> from posenc import convert_qk_weight
    >>> convert_qk_weight(np.arange(8), 2, to_interleaved=True)
    array([0, 2, 1, 3, 4, 6, 5, 7])
    """
    if not (is_tensor(weight) or isinstance(weight, np.ndarray)):
        raise TypeError(f"weight must be an array or a tensor, got {type(weight).__name__}")
    plain("weight", weight)
    heads = whole_number("n_heads", n_heads, at_least=1)
    rows = weight.shape[0] if weight.ndim else 0
    if not rows or rows % heads:
        raise ValueError(
            f"weight must have rows for {heads} heads of one width, got shape {list(weight.shape)}"
        )
    head_dim = rows // heads
    width = head_dim if rotary_dim is None else rotary_dim
    width = even_number("head_dim" if rotary_dim is None else "rotary_dim", width)
    if width > head_dim:
        raise ValueError(f"rotary_dim must be at most head_dim = {head_dim}, got {width}")
    order = np.arange(rows).reshape(heads, head_dim)
    order[:, :width] = order[:, pairing_permutation(width, to_interleaved=to_interleaved)]
    index: Any = order.reshape(-1)
    if is_tensor(weight):
        import torch

        index = torch.from_numpy(index).to(weight.device)
        if str(weight.dtype).startswith("torch.float4"):  # torch moves its bytes, not its numbers
            return weight.view(torch.uint8)[index].view(weight.dtype)
    return weight[index]
