"""What every public function checks at its door: one clear sentence for each bad input."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

INT64 = range(-(1 << 63), 1 << 63)
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def whole_number(name: str, value: object, *, at_least: int | None = None) -> int:
    """Take an integer that is no bool, as a Python int."""
    try:
        if isinstance(value, bool) or "bool" in _dtype(value) or _axes(value):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {kind(value)}") from None
    if at_least is not None and number < at_least:
        raise ValueError(f"{name} must be at least {at_least}, got {number}")
    return number


def even_number(name: str, value: object, *, at_least: int = 1) -> int:
    """Take an even integer that is no bool, as a Python int."""
    number = whole_number(name, value, at_least=at_least)
    if number % 2:
        raise ValueError(f"{name} must be even, got {number}")
    return number


def offset_number(name: str, value: object) -> int:
    """Take an integer that fits in int64."""
    number = whole_number(name, value)
    if number not in INT64:
        raise ValueError(f"{name} must fit in int64, got {number}")
    return number


def real_number(name: str, value: object) -> float:
    """Take a real number, as a Python float: infinities and NaN are let through."""
    refused = (bool, complex, np.complexfloating, str, bytes, bytearray)
    if isinstance(value, refused) or "bool" in _dtype(value) or _axes(value):
        raise TypeError(f"{name} must be a real number, got {kind(value)}")
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a real number, got {kind(value)}") from None
    except OverflowError:
        return math.inf


def positive_float(name: str, value: object) -> float:
    """Take a positive finite real number, as a Python float."""
    number = real_number(name, value)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be positive and finite, got {value}")
    return number


def _dtype(value: object) -> str:
    return str(getattr(value, "dtype", ""))


def _axes(value: object) -> int:
    return int(getattr(value, "ndim", "0"))


def choice(name: str, value: object, allowed: Sequence[str]) -> None:
    """Refuse a word that is none of those allowed."""
    if not (isinstance(value, str) and value in allowed):
        raise ValueError(f"{name} must be {' or '.join(map(repr, allowed))}, got {value!r}")


def flag(name: str, value: object) -> bool:
    """Take True or False, and nothing that only counts as one of them."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {kind(value)}")
    return bool(value)


def unmasked(name: str, value: object) -> None:
    """Refuse a masked array, whose gaps would be taken for numbers."""
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{name} must not be masked: fill the gaps, or leave them out")


def is_tensor(value: object) -> bool:
    """Whether a value is a torch tensor; without torch loaded there is none."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_compiling() -> bool:
    """Whether torch is tracing this call for torch.compile or torch.export."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.compiler.is_compiling())


def has_values(tensor: Any) -> bool:
    """Whether a tensor has numbers and an address: not on the meta device, not a fake one."""
    fake = sys.modules.get("torch._subclasses.fake_tensor")
    return not (tensor.is_meta or (fake is not None and isinstance(tensor, fake.FakeTensor)))


def outside_graphs(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function that torch.compile must not trace; without fullgraph the graph breaks."""
    if "torch._dynamo" in sys.modules:
        import torch

        return torch.compiler.disable(function)(*arguments)  # type: ignore[no-untyped-call]
    return function(*arguments)


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
        if not _countable(positions):
            raise ValueError(f"{name} must be few enough for a table, got {positions}")
        if len(positions) and not (positions[0] in INT64 and positions[-1] in INT64):
            raise ValueError(f"{name} must fit in int64, got {positions}")
        count = np.arange(len(positions), dtype=np.int64)
        return wrapped(positions.start) + wrapped(positions.step) * count
    if isinstance(positions, (int, float, list, tuple)):
        return _from_python(name, positions)
    unmasked(name, positions)
    if isinstance(positions, (np.ndarray, np.generic)):
        _check_integer(name, positions.dtype.name)
        return np.asarray(positions, dtype=np.int64)
    raise TypeError(f"{name} must be integers, got {kind(positions)}")


def _countable(positions: range) -> bool:
    try:
        return len(positions) < 1 << 62
    except OverflowError:
        return False


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


def kind(value: object) -> str:
    """What a sentence calls a value that came."""
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        return type(value).__name__
    axes = f" and shape {list(value.shape)}" if _axes(value) else ""  # type: ignore[attr-defined]
    return f"{type(value).__name__} of {dtype}{axes}"
