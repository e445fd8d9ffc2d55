"""One attention head with everything visible: its scores, its weights and its output.

Slow and plain, for chapters that look inside; the tests hold it to torch's own attention.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posenc._backend import dtype_name
from posenc._door import INTEGERS, is_tensor, unmasked, whole_number

__all__ = ["attention", "causal_mask", "random_head"]


def attention(
    x: Any, w_q: Any, w_k: Any, w_v: Any, *, bias: Any = None, mask: Any = None
) -> tuple[Any, Any, Any]:
    """Attend from every row of x to every row of x, with one head.

    Parameters
    ----------
    x : array of real numbers, or tensor of a floating dtype, shape [..., T, d]
        One row for each token.
    w_q, w_k : array or tensor, shape [d, d_k]
        Weights of queries and keys.
    w_v : array or tensor, shape [d, d_v]
        Weights of the values.
    bias : array or tensor, broadcast with [..., T, T], optional
        Added to the scores, after their division by sqrt(d_k); finite, for a mask hides keys. A
        bias [H, T, T] makes H copies of the head, which differ by it alone.
    mask : bool array or tensor, broadcast with [..., T, T], optional
        True where a query (row) may look at a key (column).

    Returns
    -------
    out : array or tensor, shape [..., T, d_v]
        The values, averaged with the weights.
    weights : array or tensor, shape [..., T, T]
        Softmax of the scores over the keys that the mask allows; 0 elsewhere.
    scores : array or tensor, shape [..., T, T]
        With the bias, without the mask: all are finite.

    Raises
    ------
    TypeError
        If NumPy and torch are mixed, the mask is not of dtype bool, or the rest no real numbers.
    ValueError
        If shapes do not fit, tensors lie on several devices, the bias is not finite, or a query
        may look at no key.

    Notes
    -----
    Equations ``eq-attention``, ``eq-equivariance`` and ``eq-prefix-invariance`` of the book.
    NumPy in: computed in float64. torch in: in float32 (float64 if x is), whatever narrower dtype
    x has, the bias too; only ``out`` is rounded to the dtype of x. Source: Vaswani et al. (2017),
    section 3.2.1. Elsewhere: ``scaled_dot_product_attention`` (torch), which shows no weights.

    Examples
    --------
    >>> import numpy as np
    >>> out, weights, scores = attention(np.eye(2), np.eye(2), np.eye(2), np.eye(2))
    >>> weights.round(3)
    array([[0.67, 0.33],
           [0.33, 0.67]])
    """
    tensor = is_tensor(x)
    named = {"x": x, "w_q": w_q, "w_k": w_k, "w_v": w_v, "bias": bias, "mask": mask}
    for name, value in named.items():
        if value is not None and is_tensor(value) != tensor:
            raise TypeError(f"{name} must be {'a torch tensor' if tensor else 'NumPy'}, as x is")
        if tensor and value is not None and value.device != x.device:
            raise ValueError(f"{name} must be on x's device {x.device}, got {value.device}")
        if value is not None and name != "mask":
            _check_real(name, value, floating=tensor and name == "x")
    xp, dtype = _widest(x, tensor)
    x_, q_, k_, v_ = (_cast(each, dtype, xp) for each in (x, w_q, w_k, w_v))
    _check_shapes(x_.shape, q_.shape, k_.shape, v_.shape)

    queries, keys, values = x_ @ q_, x_ @ k_, x_ @ v_  # [..., T, d_k], [..., T, d_k], [..., T, d_v]
    scores = queries @ xp.matrix_transpose(keys) / math.sqrt(q_.shape[-1])  # [..., T, T]
    if bias is not None:
        _check_broadcast("bias", bias, scores)
        bias = _cast(bias, dtype, xp)
        if not _is_meta(bias) and not xp.all(xp.isfinite(bias)):
            raise ValueError(f"bias must be finite in {dtype_name(bias.dtype)}: a mask hides keys")
        scores = scores + bias
    seen = scores
    if mask is not None:
        seen = xp.where(_checked_mask(mask, scores, xp), scores, -math.inf)
    weights = xp.exp(seen - xp.max(seen, axis=-1, keepdims=True))
    weights = weights / xp.sum(weights, axis=-1, keepdims=True)
    out = weights @ values  # [..., T, d_v]
    return (out.to(x.dtype) if tensor else out), weights, scores


def _cast(value: Any, dtype: Any, xp: Any) -> Any:
    """Bring a value to a dtype; the gradient of a tensor passes."""
    return value.to(dtype) if is_tensor(value) else xp.asarray(value, dtype=dtype)


def causal_mask(length: int, device: Any = None) -> Any:
    """Let each query look at itself and at what came before.

    Parameters
    ----------
    length : int
        Tokens T.
    device : torch device, optional
        Makes the mask a torch tensor on this device.

    Returns
    -------
    bool array or tensor, shape [T, T]
        True on and below the diagonal.

    Raises
    ------
    TypeError, ValueError
        If ``length`` is not a positive integer.

    Examples
    --------
    >>> causal_mask(3).astype(int)
    array([[1, 0, 0],
           [1, 1, 0],
           [1, 1, 1]])
    """
    length = whole_number("length", length, at_least=1)
    mask = np.tri(length, dtype=bool)
    if device is None:
        return mask
    import torch

    return torch.as_tensor(mask, device=device)


def random_head(
    rng: np.random.Generator, dim: int, head_dim: int | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Draw the weights of one head, of standard deviation 1/sqrt(d).

    Parameters
    ----------
    rng : numpy.random.Generator
        Where the numbers come from: ``np.random.default_rng(0)`` in the book.
    dim : int
        Channels d of the input.
    head_dim : int, optional
        Channels d_k of queries, keys and values; d unless given.

    Returns
    -------
    w_q, w_k, w_v : ndarray of float64, shape [d, d_k]
        Drawn in this order. Inputs of unit variance give queries of unit variance.

    Raises
    ------
    TypeError, ValueError
        If a size is not a positive integer.
    """
    dim = whole_number("dim", dim, at_least=1)
    head_dim = dim if head_dim is None else whole_number("head_dim", head_dim, at_least=1)
    w_q, w_k, w_v = rng.normal(scale=dim**-0.5, size=(3, dim, head_dim))
    return w_q, w_k, w_v


def _widest(x: Any, tensor: bool) -> tuple[Any, Any]:
    """The array library, and the dtype that everything is computed in."""
    xp: Any
    if tensor:
        import array_api_compat.torch as xp

        return xp, xp.float64 if x.dtype == xp.float64 else xp.float32
    import array_api_compat.numpy as xp

    return xp, xp.float64


def _is_meta(value: Any) -> bool:
    return is_tensor(value) and bool(value.is_meta)


def _check_real(name: str, value: Any, *, floating: bool) -> None:
    unmasked(name, value)
    dtype = dtype_name(value.dtype if is_tensor(value) else np.asarray(value).dtype)
    if not ("float" in dtype or (dtype in INTEGERS and not floating)):
        what = "of a floating dtype" if floating else "real numbers"
        hint = " (hide keys with mask)" if (name, dtype) == ("bias", "bool") else ""
        raise TypeError(f"{name} must be {what}, got {dtype}{hint}")


def _check_shapes(x: Any, w_q: Any, w_k: Any, w_v: Any) -> None:
    if len(x) < 2 or not x[-2]:
        raise ValueError(f"x must have shape [..., T, d] with a token at least, got {list(x)}")
    for name, shape in (("w_q", w_q), ("w_k", w_k), ("w_v", w_v)):
        if len(shape) != 2 or shape[0] != x[-1]:
            raise ValueError(f"{name} must have {x[-1]} rows, one a channel, got {list(shape)}")
    if w_q[1] != w_k[1]:
        raise ValueError(f"w_q and w_k must have as many columns, got {w_q[1]} and {w_k[1]}")
    if not w_q[1]:
        raise ValueError(f"w_q and w_k must have at least one column, got {list(w_q)}")


def _check_broadcast(name: str, value: Any, scores: Any) -> None:
    shape = tuple(np.shape(value))
    try:
        fits = np.broadcast_shapes(shape, tuple(scores.shape))[-2:] == tuple(scores.shape[-2:])
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"{name} must fit scores {list(scores.shape)}, got {list(shape)}")


def _checked_mask(mask: Any, scores: Any, xp: Any) -> Any:
    unmasked("mask", mask)
    mask = xp.asarray(mask)
    if mask.dtype != xp.bool:
        raise TypeError(
            f"mask must be of dtype bool, True where a query may look, got {mask.dtype}"
        )
    _check_broadcast("mask", mask, scores)
    if not _is_meta(mask) and not xp.all(xp.any(mask, axis=-1)):
        raise ValueError("mask must leave every query at least one key, got a row of False")
    return mask
