"""Where a result lies: NumPy or torch, its dtype, its device, the memory it is written to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from posenc._door import is_compiling, is_tensor, kind

_NUMPY_FLOATS = ("float16", "float32", "float64")
_TORCH_FLOATS = ("bfloat16", *_NUMPY_FLOATS)


def common_place(**named: Any) -> tuple[Any, Any]:
    """The array library of several inputs, and their one device (None for NumPy).

    Python numbers, ranges and lists go anywhere; arrays and tensors must not be mixed.
    """
    place: tuple[str, Any] | None = None
    for name, value in named.items():
        if is_tensor(value):
            here = (name, value.device)
        elif isinstance(value, (np.ndarray, np.generic)):
            here = (name, None)
        else:
            continue
        if place is not None and (place[1] is None) != (here[1] is None):
            raise TypeError(f"{place[0]} and {name} must both be NumPy's, or both torch's")
        if place is not None and place[1] != here[1]:
            raise ValueError(
                f"{place[0]} and {name} must be on one device, got {place[1]} and {here[1]}"
            )
        place = place or here
    xp: Any
    if place is None or place[1] is None:
        import array_api_compat.numpy as xp

        return xp, None
    import array_api_compat.torch as xp

    return xp, place[1]


class Backend(NamedTuple):
    """Where a result is computed and in which dtype it is stored."""

    xp: Any
    """``array_api_compat.numpy`` or ``array_api_compat.torch``."""
    dtype: Any
    device: Any
    """A torch device, or None for NumPy."""


def backend(positions: object, dtype: Any, device: Any, outs: Sequence[object]) -> Backend:
    """Choose NumPy or torch: the positions decide; for Python integers device, out or dtype may."""
    tensors = [is_tensor(out) for out in outs]
    for out, tensor in zip(outs, tensors, strict=True):
        if not tensor and not isinstance(out, np.ndarray):
            raise TypeError(f"out must be an array or a tensor, got {kind(out)}")
    torch_dtype = dtype is not None and type(dtype).__module__ == "torch"
    if is_tensor(positions):
        if not all(tensors) or (dtype is not None and not torch_dtype):
            raise TypeError("positions are a torch tensor; out and dtype must be torch's as well")
        return _torch_backend(positions, dtype, device, outs)
    if isinstance(positions, (np.ndarray, np.generic)):
        if any(tensors) or torch_dtype or device is not None:
            raise TypeError(
                "positions are a NumPy array; out and dtype must be NumPy's as well, and device "
                "must stay None (hand in a torch tensor to compute with torch)"
            )
        return _numpy_backend(dtype, outs)
    if device is not None or torch_dtype or any(tensors):
        if not all(tensors) or (dtype is not None and not torch_dtype):
            raise TypeError("device, out and dtype must all be torch's, or all NumPy's")
        return _torch_backend(None, dtype, device, outs)
    return _numpy_backend(dtype, outs)


def _numpy_backend(dtype: Any, outs: Sequence[Any]) -> Backend:
    import array_api_compat.numpy as xp

    if dtype is None:
        dtype = outs[0].dtype if outs else np.float32
    try:
        resolved = np.dtype(dtype)
    except TypeError:
        raise TypeError(f"dtype must be a floating dtype, got {dtype!r}") from None
    if resolved.name not in _NUMPY_FLOATS:
        raise TypeError(f"dtype must be {_one_of(_NUMPY_FLOATS)}, got {resolved.name}")
    return Backend(xp, resolved, None)


def _torch_backend(positions: Any, dtype: Any, device: Any, outs: Sequence[Any]) -> Backend:
    import array_api_compat.torch as xp
    import torch

    if dtype is None:
        dtype = outs[0].dtype if outs else torch.float32
    name = str(dtype).removeprefix("torch.")
    if name not in _TORCH_FLOATS:
        raise TypeError(f"dtype must be {_one_of(_TORCH_FLOATS)}, got {name}")
    if device is None:
        source = positions if positions is not None else (outs[0] if outs else None)
        device = torch.device("cpu") if source is None else source.device
    return Backend(xp, dtype, torch.device(device))


def check_out(name: str, out: Any, shape: tuple[int, ...], target: Backend) -> None:
    """Refuse an output of another shape, dtype or device, or one that records gradients."""
    if tuple(out.shape) != shape:
        raise ValueError(f"{name} must have shape {list(shape)}, got {list(out.shape)}")
    if overlaps_itself(shape, out.strides if target.device is None else out.stride()):
        raise ValueError(f"{name} must have a place of its own for each entry")
    if out.dtype != target.dtype:
        raise ValueError(f"{name} must have dtype {target.dtype}, got {out.dtype}")
    if target.device is None:
        if not out.flags.writeable:
            raise ValueError(f"{name} must be writeable, got a read-only array")
        return
    if out.device.type != target.device.type or (
        target.device.index is not None and out.device != target.device
    ):
        raise ValueError(f"{name} must be on device {target.device}, got {out.device}")
    if out.requires_grad:
        raise ValueError(f"{name} must not require grad: a table is a constant")


def check_apart(name: str, first: Any, second: Any) -> None:
    """Refuse two outputs that share an element: the second would overwrite the first."""
    if is_compiling() or getattr(first, "is_meta", False):
        return  # no addresses there
    if np.shares_memory(addresses(first), addresses(second)):
        raise ValueError(f"{name} must not share memory: each entry needs a place of its own")


def addresses(out: Any) -> Any:
    """The places of an output's elements, as a NumPy array that is never read."""
    if not is_tensor(out):
        return out
    size = out.element_size()
    view = {
        "version": 3,
        "typestr": f"|V{size}",
        "shape": tuple(out.shape),
        "strides": tuple(step * size for step in out.stride()),
        "data": (out.data_ptr(), False),
    }
    return np.asarray(type("Places", (), {"__array_interface__": view})())


def overlaps_itself(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether a strided view may reach one element by two indices."""
    reach = 0
    for step, length in sorted(
        (abs(step), length) for step, length in zip(strides, shape, strict=True) if length > 1
    ):
        if step <= reach:
            return True
        reach += step * (length - 1)
    return False


def empty(shape: tuple[int, ...], target: Backend) -> Any:
    """An uninitialised result."""
    if target.device is None:
        return target.xp.empty(shape, dtype=target.dtype)
    return target.xp.empty(shape, dtype=target.dtype, device=target.device)


def cast(values: Any, target: Backend) -> Any:
    """Round float64 values to the target's dtype, on the target's device."""
    if target.device is None:
        return values.astype(target.dtype, copy=False)
    return values.to(target.dtype).to(target.device)


def arithmetic_device(target: Backend) -> Any:
    """The target's device, or the CPU for one without float64."""
    return "cpu" if target.device is not None and target.device.type == "mps" else target.device


def dtype_name(dtype: Any) -> str:
    """``float64`` for that dtype of NumPy, in any byte order, and of torch."""
    return str(getattr(dtype, "name", dtype)).removeprefix("torch.")


def _one_of(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"
