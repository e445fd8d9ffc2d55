"""What a rotation checks at its door, and the tables in the shape in which they are used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from posenc._backend import addresses, common_place, overlaps_itself
from posenc._door import has_values, integer_positions, is_compiling, is_tensor, unmasked

_WIDE = {"float16": "float32", "bfloat16": "float32", "float32": "float32", "float64": "float64"}


def check_words(interleaved: object, inverse: object, position_axis: object) -> None:
    """Refuse a pairing that is not said, and an axis that is none of the two."""
    if not isinstance(interleaved, bool):
        raise TypeError(
            "interleaved must be True for pairs (2i, 2i + 1) or False for pairs (i, i + d/2), "
            f"got {interleaved!r}"
        )
    if not isinstance(inverse, bool):
        raise TypeError(f"inverse must be True or False, got {inverse!r}")
    whole = isinstance(position_axis, (int, np.integer)) and not isinstance(position_axis, bool)
    if not whole or position_axis not in (-2, -3):
        raise ValueError(
            "position_axis must be -2 for [..., T, head_dim] or -3 for [..., T, H, head_dim], "
            f"got {position_axis!r}"
        )


def check_inputs(named: dict[str, Any], cos: Any, sin: Any, positions: Any, axis: int) -> None:
    """Refuse inputs of different libraries, devices or dtypes, and widths that do not fit."""
    for name, value in {**named, "cos": cos, "sin": sin}.items():
        if not (is_tensor(value) or isinstance(value, np.ndarray)):
            raise TypeError(f"{name} must be an array or a tensor, got {type(value).__name__}")
        plain(name, value)
    if is_tensor(positions):
        plain("positions", positions)
    common_place(**named, cos=cos, sin=sin, positions=positions)
    first, x = next(iter(named.items()))
    for name, value in named.items():
        if value.ndim < -axis:
            shape = "[..., T, head_dim]" if axis == -2 else "[..., T, H, head_dim]"
            raise ValueError(f"{name} must have shape {shape}, got {list(value.shape)}")
        if value.dtype != x.dtype:
            raise TypeError(
                f"{first} and {name} must have one dtype, got {x.dtype} and {value.dtype}"
            )
        if value.shape[-1] % 2 or not value.shape[-1]:
            raise ValueError(
                f"{name} must have an even head_dim as its last axis, got {list(value.shape)}"
            )
    dtype = _name(x)
    if dtype not in _WIDE:
        raise TypeError(f"{first} must be of a floating dtype of 16 to 64 bits, got {dtype}")
    for name, table in (("cos", cos), ("sin", sin)):
        if _name(table) != _WIDE[dtype]:
            raise TypeError(
                f"{name} must be {_WIDE[dtype]} for {first} of {dtype}, got {_name(table)}: "
                "tables are never narrowed"
            )
    if cos.shape != sin.shape:
        raise ValueError(
            f"cos and sin must have one shape, got {list(cos.shape)} and {list(sin.shape)}"
        )
    if cos.ndim < 2 or not cos.shape[-1]:
        raise ValueError(f"cos must have shape [T, r/2] or [*batch, T, r/2], got {list(cos.shape)}")
    for name, value in named.items():
        if 2 * cos.shape[-1] > value.shape[-1]:
            raise ValueError(
                f"cos must have at most head_dim/2 = {value.shape[-1] // 2} columns for {name}, "
                f"got {cos.shape[-1]}"
            )


def plain(name: str, value: Any) -> None:
    """Refuse arrays whose products are matrix products or have gaps, and tensors without rows."""
    unmasked(name, value)
    if isinstance(value, np.matrix):
        raise TypeError(f"{name} must not be a matrix, whose * is another product: use an array")
    if is_tensor(value) and (value.is_nested or str(value.layout) != "torch.strided"):
        layout = "a nested tensor" if value.is_nested else str(value.layout)
        raise TypeError(f"{name} must be a dense tensor, got {layout}")


def matched(table: Any, name: str, x: Any, axis: int, rows: str) -> Any:
    """A table [*batch, T, r/2] with the axes of x, the position axis last but one.

    Batch axes are matched from the left: plain broadcasting would match them from the right, and
    give a head the positions of another row wherever there are as many heads as rows.
    """
    outer = x.shape[:axis]
    *batch, length, half = table.shape
    if length != x.shape[axis]:
        raise ValueError(
            f"{rows} must have T = {x.shape[axis]} as {name} has on axis {axis}, got {length}"
        )
    if len(batch) > len(outer) or any(b not in (1, n) for b, n in zip(batch, outer, strict=False)):
        raise ValueError(
            f"{rows} must have batch axes that are 1 or the first axes of {name}, "
            f"{list(outer)}, got {batch}"
        )
    return table.reshape(*batch, *[1] * (x.ndim - 2 - len(batch)), length, half)


def gathered(cos: Any, sin: Any, positions: Any, by_number: bool) -> tuple[Any, Any, Any]:
    """Rows of tables [rows, r/2] at integer positions; none outside.

    ``by_number``: the kernel reads the rows itself, and makes those outside NaN. Then the tables
    are returned whole, with the positions as the third value; else that is None.
    """
    if cos.ndim != 2:
        raise ValueError(
            f"cos must have shape [rows, r/2] if positions are given, got {list(cos.shape)}"
        )
    ready = by_number and is_tensor(positions) and str(positions.dtype) == "torch.int32"
    index = positions if ready else integer_positions(positions)
    if index.ndim < 1:
        raise ValueError("positions must have shape [T] or [*batch, T], got []")
    rows = cos.shape[0]
    says = f"positions must lie in 0 ... {rows - 1}, the rows of cos and sin"
    if not is_tensor(cos):
        outside = (index < 0) | (index >= rows)
        if outside.any():
            raise ValueError(f"{says}, got {index[outside][0]}")
        return cos[index], sin[index], None
    import torch

    index = torch.as_tensor(index, device=cos.device)
    if _cannot_ask(index):
        if by_number:
            return cos, sin, index
        from posenc.kernels.rotate_torch import rows_or_nan

        return rows_or_nan(cos, index), rows_or_nan(sin, index), None
    outside = (index < 0) | (index >= rows)
    if is_compiling():
        torch._assert_async(~outside.any(), says)
    elif has_values(index) and bool(outside.any()):
        raise ValueError(f"{says}, got {int(index[outside][0])}")
    return (cos, sin, index) if by_number else (cos[index], sin[index], None)


def _cannot_ask(index: Any) -> bool:
    """Whether no error can depend on values: vmap, CUDA under compile or graph capture."""
    import torch

    if torch._C._are_functorch_transforms_active():
        return True
    return bool(index.is_cuda) and (is_compiling() or torch.cuda.is_current_stream_capturing())


def check_outs(named: dict[str, Any], outs: Sequence[Any], tables: Sequence[Any]) -> None:
    """Refuse outputs that do not fit, record gradients, or overlap what is still to be read."""
    labels = ["out"] if len(outs) == 1 else [f"out of {name}" for name in named]
    tensor = is_tensor(tables[0])
    for label, out, (name, x) in zip(labels, outs, named.items(), strict=True):
        if is_tensor(out) != tensor or not (tensor or isinstance(out, np.ndarray)):
            raise TypeError(f"{label} must be {name}'s kind of array, got {type(out).__name__}")
        plain(label, out)
        if out.shape != x.shape:
            raise ValueError(
                f"{label} must have the shape of {name}, {list(x.shape)}, got {list(out.shape)}"
            )
        if out.dtype != x.dtype:
            raise ValueError(f"{label} must have the dtype of {name}, {x.dtype}, got {out.dtype}")
        if tensor and out.device != x.device:
            raise ValueError(f"{label} must be on device {x.device}, got {out.device}")
        if not tensor and not out.flags.writeable:
            raise ValueError(f"{label} must be writeable, got a read-only array")
    if tensor:
        import torch

        if torch._C._are_functorch_transforms_active():
            raise ValueError("out must be left out under the transforms of torch.func")
        everything = (*named.values(), *outs, *tables)
        if torch.is_grad_enabled() and any(each.requires_grad for each in everything):
            raise ValueError("out must be left out while gradients are recorded")
        if is_compiling() or not has_values(everything[0]):
            return
    for place, (label, out) in enumerate(zip(labels, outs, strict=True)):
        if overlaps_itself(out.shape, addresses(out).strides):
            raise ValueError(f"{label} must not hold an element twice, as expanded tensors do")
        read = list(named.items())
        others = [*read, ("cos", tables[0]), ("sin", tables[1])]
        others += list(zip(labels[:place], outs[:place], strict=True))
        for name, other in others:
            own = name == read[place][0]
            if not (own and _same_memory(out, other)) and _shares(out, other):
                allowed = f"{name} itself or " if own else ""
                raise ValueError(f"{label} must be {allowed}memory that shares nothing with {name}")


def _same_memory(x: Any, y: Any) -> bool:
    """Whether these are one array, or two names of the same elements in the same order."""
    if x is y:
        return True
    here, there = addresses(x), addresses(y)
    differ = [
        n > 1 and s != t for n, s, t in zip(x.shape, here.strides, there.strides, strict=True)
    ]
    return here.ctypes.data == there.ctypes.data and not any(differ)


def _shares(x: Any, y: Any) -> bool:
    """Whether two arrays or tensors share an element; what is too hard to tell counts as shared."""
    if is_tensor(x) and x.untyped_storage().data_ptr() != y.untyped_storage().data_ptr():
        return False
    try:
        return bool(np.shares_memory(addresses(x), addresses(y), max_work=10**6))  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def _name(x: Any) -> str:
    return str(x.dtype).removeprefix("torch.")
