"""Results: memory of the right kind, and the last rounding."""

from __future__ import annotations

from typing import Any

from posenc._door import Backend


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


def joined(blocks: tuple[Any, ...], shape: tuple[int, ...], target: Backend) -> Any:
    """Blocks of rows as one table of the target's library."""
    table = blocks[0] if len(blocks) == 1 else target.xp.concat(blocks)
    return table.reshape(shape)
