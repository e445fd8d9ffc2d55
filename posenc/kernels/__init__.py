"""How a rotation is carried out: one door, a way for each library and device behind it.

`posenc.rotary` has checked everything before it comes here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from posenc._door import is_tensor


def rotate(
    xs: Sequence[Any],
    tables: Sequence[tuple[Any, ...]],
    outs: Sequence[Any],
    *,
    interleaved: bool,
    inverse: bool,
) -> list[Any]:
    """Rotate several arrays, or tensors, by tables that broadcast against their pairs.

    Parameters
    ----------
    xs : sequence of arrays or tensors, shape [..., T, head_dim]
        Of one library, device and dtype.
    tables : sequence of tuples (cos, sin), shape [..., T, r/2]
        For each of ``xs``, with as many axes; an axis of 1 broadcasts. Equal tables are one
        object. Where `reads_by_number` says so: (cos, sin, rows), tables [length, r/2] and row
        numbers [..., T, 1] of which those outside give NaN.
    outs : sequence of arrays, tensors or None
        For each of ``xs``: itself, or memory that shares no element with anything here.
    interleaved, inverse : bool
        Pairs (2i, 2i + 1) instead of (i, i + r/2); by minus the angle.

    Returns
    -------
    list of arrays or tensors
        ``outs``, or new ones where they are None.
    """
    if is_tensor(xs[0]):
        if reads_by_number(xs, *tables[0][:2]):
            from posenc.kernels import rotate_cuda

            return rotate_cuda.rotate(xs, tables, outs, interleaved=interleaved, inverse=inverse)
        from posenc.kernels import rotate_torch

        return rotate_torch.rotate(xs, tables, outs, interleaved=interleaved, inverse=inverse)
    from posenc.kernels import rotate_numpy

    return rotate_numpy.rotate(xs, tables, outs, interleaved=interleaved, inverse=inverse)


def reads_by_number(xs: Sequence[Any], cos: Any, sin: Any) -> bool:
    """Whether these are turned by the CUDA kernel, which finds rows of tables by their number."""
    if not (is_tensor(xs[0]) and _on_gpu(xs[0])):
        return False
    from posenc.kernels import rotate_cuda

    return rotate_cuda.runs(xs, cos, sin)


def _on_gpu(x: Any) -> bool:
    return bool(x.is_cuda)


def quick(xs: tuple[Any, ...], cos: Any, sin: Any, interleaved: Any) -> list[Any] | None:
    """Rotate small plain tensors with few calls, unchecked input included; None if not plain."""
    if not all(map(is_tensor, xs)):
        return None
    from posenc.kernels import quick_torch

    try:
        return quick_torch.quick(xs, cos, sin, interleaved)
    except RuntimeError:  # sparse, nested, or an odd stride on an axis of one entry: not plain
        return None
