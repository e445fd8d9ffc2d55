"""Slopes at the door: one real number for each head, on the device where they are used."""

from __future__ import annotations

from typing import Any

import numpy as np

from posenc._backend import dtype_name
from posenc._door import INTEGERS, is_compiling, is_tensor, kind, unmasked

_FLOATS = ("bfloat16", "float16", "float32", "float64")


def head_slopes(slopes: Any, device: Any) -> Any:
    """Slopes [H] as float64 if they are float64 or integers, else as float32.

    Parameters
    ----------
    slopes : array, tensor or list of numbers, shape [H]
        As `posenc.alibi_bias` takes them.
    device : torch device or None
        Where they shall lie; None for NumPy.
    """
    if not is_tensor(slopes):
        if is_compiling():
            raise RuntimeError("slopes must be a torch tensor while torch traces: make it before")
        slopes = _as_array(slopes)
    name = dtype_name(slopes.dtype)
    if name not in _FLOATS and name not in INTEGERS:
        raise TypeError(
            f"slopes must be real numbers, got {name}: integers or {', '.join(_FLOATS)} are allowed"
        )
    if slopes.ndim != 1:
        raise ValueError(f"slopes must have shape [H], one for each head, got {list(slopes.shape)}")
    wide = "float32" if name in _FLOATS[:3] else "float64"
    if not is_tensor(slopes):
        slopes = np.array(slopes, dtype=wide)  # a copy: torch takes no reversed or read-only one
        if not np.isfinite(slopes).all():
            raise ValueError("slopes must be finite, got nan or inf")
    if device is None:
        return slopes
    import torch

    return torch.as_tensor(slopes, dtype=getattr(torch, wide), device=device)


def _as_array(slopes: Any) -> Any:
    unmasked("slopes", slopes)
    if isinstance(slopes, (list, tuple)):
        for each in slopes:
            if is_tensor(each):
                raise TypeError("slopes must be one tensor or numbers, got a list of tensors")
            if isinstance(each, (bool, np.bool_)):
                raise TypeError(f"slopes must be real numbers, got {kind(each)}")
    try:
        return np.asarray(slopes)
    except ValueError:
        raise ValueError(
            "slopes must have shape [H], one for each head, got a ragged list"
        ) from None
