"""Integers and masks that positions are made from."""

from __future__ import annotations

from typing import Any

import numpy as np

from posenc._backend import common_place, dtype_name
from posenc._door import INTEGERS, integer_positions, is_tensor, unmasked


def tokens(mask: Any) -> Any:
    """A mask as int64: 1 where there is a token, else 0."""
    if not (is_tensor(mask) or isinstance(mask, np.ndarray)):
        raise TypeError(f"mask must be an array or a tensor, got {type(mask).__name__}")
    unmasked("mask", mask)
    if dtype_name(mask.dtype) not in ("bool", *INTEGERS):
        raise TypeError(f"mask must be bool or integers, not 0 at tokens, got {mask.dtype}")
    if not mask.ndim:
        raise ValueError("mask must have shape [..., T], got []")
    xp, _ = common_place(mask=mask)
    return xp.astype(mask != 0, xp.int64)


def integers(name: str, values: Any, device: Any) -> tuple[Any, Any, Any]:
    """Integers as int64 where they belong, their array library, and a torch device or None."""
    if device is not None and isinstance(values, np.ndarray | np.generic):
        raise TypeError(f"{name} are a NumPy array; device must stay None")
    index = integer_positions(values, name)
    if device is not None:
        import torch

        index = torch.as_tensor(index, device=device)
    xp, place = common_place(**{name: index})
    return index, xp, place


def count(length: int, xp: Any, device: Any) -> Any:
    """0, 1, 2 ... as int64, of an array library and on a torch device or for NumPy."""
    if device is None:
        return xp.arange(length, dtype=xp.int64)
    return xp.arange(length, dtype=xp.int64, device=device)


def traced() -> bool:
    """Whether torch traces or transforms this call, so that no value can be asked."""
    import torch

    return torch.compiler.is_compiling() or transformed()


def transformed() -> bool:
    """Whether torch.func transforms this call."""
    import torch

    return bool(torch._C._are_functorch_transforms_active())
