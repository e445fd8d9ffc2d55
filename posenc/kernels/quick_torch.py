"""Rotations of small plain tensors, as decoding has them: few calls, few checks."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import forward_ad

from posenc.kernels.rotate_torch import COMPLEX, complex_table

_FEW = 1 << 17
"""Most entries of tensors for which fewer calls count for more than less memory."""

_WIDE = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.float32: torch.float32,
    torch.float64: torch.float64,
}


def quick(xs: tuple[Any, ...], cos: Any, sin: Any, interleaved: Any) -> list[torch.Tensor] | None:
    """Rotate plain contiguous tensors after the fewest checks that suffice; else None.

    Decoding is bound by calls, not by memory. Whatever is not plain, or wrong, goes the long way.
    """
    if (
        torch.compiler.is_compiling()
        or not (interleaved is True or interleaved is False)
        or not type(cos) is type(sin) is torch.Tensor
    ):
        return None
    shape, wide, dtype = cos.shape, cos.dtype, xs[0].dtype
    if (
        len(shape) < 2
        or not shape[-1]
        or sin.shape != shape
        or not _WIDE.get(dtype) is wide is sin.dtype
        or not (cos.is_cpu and sin.is_cpu)
        or cos.requires_grad
        or sin.requires_grad
        or forward_ad._current_level >= 0
        or torch._C._are_functorch_transforms_active()
    ):
        return None
    axes, rows, half = xs[0].ndim, shape[-2], shape[-1]
    if axes < len(shape) or len(shape) > 3:
        return None
    batch = None
    if len(shape) == 3:
        if shape[0] == 1:
            cos, sin = cos[0], sin[0]
        else:
            batch = shape[0]
    limit = _FEW if dtype is not wide or not interleaved else None
    for x in xs:
        if not _is_plain(x, dtype, axes, batch, rows, 2 * half, limit):
            return None
    if batch is not None:
        between = (batch, *[1] * (axes - 3), rows, half)
        cos, sin = cos.view(between), sin.view(between)
    if interleaved and half > 1:
        pair = COMPLEX[wide]
        cis = complex_table(cos, sin)
        if dtype is wide:
            return [(x.view(pair) * cis).view(wide) for x in xs]
    else:
        both, across = torch.cat((cos, cos), -1), torch.cat((-sin, sin), -1)
        if dtype is wide:
            return [(x * both).addcmul_(x.roll(half, -1), across) for x in xs]
    results = []
    room = None
    for x in xs:
        if room is None or room.shape != x.shape:
            room = torch.empty_like(x, dtype=wide, memory_format=torch.contiguous_format)
        room.copy_(x)
        if interleaved and half > 1:
            room.view(pair).mul_(cis)
        else:
            swapped = room.roll(half, -1)
            room.mul_(both).addcmul_(swapped, across)
        results.append(room.to(dtype))
    return results


def _is_plain(
    x: Any, dtype: Any, axes: int, batch: int | None, rows: int, width: int, limit: int | None
) -> bool:
    """Whether a tensor is what tables of these shapes turn whole, and lies as it should."""
    if type(x) is not torch.Tensor or x.dtype is not dtype:
        return False
    shape = x.shape
    return (
        len(shape) == axes
        and shape[-2] == rows
        and shape[-1] == width
        and (batch is None or shape[0] == batch)
        and x.is_cpu
        and x.is_contiguous()
        and not (x.requires_grad or x.is_neg() or x.storage_offset() % 2)
        and (limit is None or x.numel() <= limit)
    )
