"""What every public function checks at its door: one clear sentence for each bad input."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

INT64 = range(-(1 << 63), 1 << 63)

_NUMPY_FLOATS = ("float16", "float32", "float64")
_TORCH_FLOATS = ("bfloat16", *_NUMPY_FLOATS)


def whole_number(name: str, value: object, *, at_least: int | None = None) -> int:
    """Take an integer that is no bool, as a Python int."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {_kind(value)}") from None
    if at_least is not None and number < at_least:
        raise ValueError(f"{name} must be at least {at_least}, got {number}")
    return number


def offset_number(name: str, value: object) -> int:
    """Take an integer that fits in int64."""
    number = whole_number(name, value)
    if number not in INT64:
        raise ValueError(f"{name} must fit in int64, got {number}")
    return number


def positive_float(name: str, value: object) -> float:
    """Take a positive finite real number, as a Python float."""
    if isinstance(value, (bool, np.bool_, str, bytes)):
        raise TypeError(f"{name} must be a real number, got {_kind(value)}")
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a real number, got {_kind(value)}") from None
    except OverflowError:
        number = math.inf
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be positive and finite, got {value}")
    return number


def choice(name: str, value: object, allowed: Sequence[str]) -> None:
    """Refuse a word that is none of those allowed."""
    if not (isinstance(value, str) and value in allowed):
        raise ValueError(f"{name} must be {' or '.join(map(repr, allowed))}, got {value!r}")


def is_tensor(value: object) -> bool:
    """Whether a value is a torch tensor; without torch loaded there is none."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_compiling() -> bool:
    """Whether torch is tracing this call for torch.compile or torch.export."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.compiler.is_compiling())


def common_place(**named: Any) -> tuple[Any, Any]:
    """The array library of several inputs, and their one device (None for NumPy).

    Python numbers, ranges and lists go anywhere; arrays and tensors must not be mixed.
    """
    place: tuple[str, Any] | None = None
    for name, value in named.items():
        if is_tensor(value):
            here = (name, value.device)
        elif isinstance(value, (np.ndarray, np.generic)):  # a union would break graphs
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
            raise TypeError(f"out must be an array or a tensor, got {_kind(out)}")
    torch_dtype = dtype is not None and type(dtype).__module__ == "torch"
    if is_tensor(positions):
        if not all(tensors) or (dtype is not None and not torch_dtype):
            raise TypeError("positions are a torch tensor; out and dtype must be torch's as well")
        return _torch_backend(positions, dtype, device, outs)
    if isinstance(positions, np.ndarray | np.generic):
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


def integer_positions(positions: Any, name: str = "positions") -> Any:
    """Positions as an int64 array, or tensor, of their own shape; errors call them by name.

    Raises
    ------
    TypeError
        If they are no integers: floating, bool, uint64 or text.
    ValueError
        If one lies outside int64, or a list is ragged.
    """
    if is_tensor(positions):
        import torch

        _check_integer(name, str(positions.dtype).removeprefix("torch."))
        return positions.to(torch.int64)
    if isinstance(positions, range):
        if len(positions) and not (positions[0] in INT64 and positions[-1] in INT64):
            raise ValueError(f"{name} must fit in int64, got {positions}")
        count = np.arange(len(positions), dtype=np.int64)
        return wrapped(positions.start) + wrapped(positions.step) * count
    if isinstance(positions, (int, list, tuple)):
        return _from_python(name, positions)
    if isinstance(positions, np.ndarray | np.generic):
        _check_integer(name, positions.dtype.name)
        return np.asarray(positions, dtype=np.int64)
    raise TypeError(f"{name} must be integers, got {_kind(positions)}")


def wrapped(number: int) -> np.int64:
    """Reduce an integer modulo 2**64 to the int64 that stands for it in wrap-around arithmetic."""
    return np.int64((number + (1 << 63)) % (1 << 64) - (1 << 63))


def _from_python(name: str, positions: Any) -> Any:
    try:
        values = np.array(positions, dtype=object)
    except ValueError:
        raise ValueError(f"{name} must be a rectangular list of integers") from None
    numbers = []
    for value in values.ravel():
        if isinstance(value, (float, np.floating, bool, np.bool_)):
            _check_integer(name, type(value).__name__.rstrip("_"))
        if isinstance(value, (list, tuple)):
            raise ValueError(f"{name} must be a rectangular list of integers")
        numbers.append(offset_number(name, value))
    return np.array(numbers, dtype=np.int64).reshape(values.shape)


def _check_integer(name: str, dtype: str) -> None:
    if "float" in dtype:
        raise TypeError(
            f"{name} must be integers, got {dtype}: floating dtypes merge neighbours "
            "(256 and 257 are one number in bfloat16, 2**24 and 2**24 + 1 in float32)"
        )
    if not dtype.startswith(("int", "uint")) or dtype == "uint64":
        raise TypeError(f"{name} must be integers that fit in int64, got {dtype}")


def _one_of(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _kind(value: object) -> str:
    dtype = getattr(value, "dtype", None)
    return type(value).__name__ if dtype is None else f"{type(value).__name__} of {dtype}"
