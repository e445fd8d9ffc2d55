"""Rotations of torch tensors.

Eager CPU tensors take ways that touch memory once: a product of complex numbers for pairs
(2i, 2i + 1), blocks that stay in a core's cache for pairs (i, i + r/2), a float32 scratch for
narrow dtypes. Whatever traces, transforms or differentiates tables, and other devices, take the
formula as it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.autograd import forward_ad

from posenc.kernels.rotate_numpy import halves

_BLOCK = 1 << 19
"""Most entries that are rotated at once by a way that goes over them again: 2 MiB in float32."""

_VECTORS = 16
"""Complex numbers that torch multiplies in one step, at most."""

COMPLEX = {torch.float32: torch.complex64, torch.float64: torch.complex128}

Table = tuple[torch.Tensor, torch.Tensor]


def rotate(
    xs: Sequence[torch.Tensor],
    tables: Sequence[Table],
    outs: Sequence[torch.Tensor | None],
    *,
    interleaved: bool,
    inverse: bool,
) -> list[torch.Tensor]:
    """Rotate tensors; arguments as in `posenc.kernels.rotate`."""
    recording = torch.is_grad_enabled()
    if recording and not torch.compiler.is_compiling() and any(x.requires_grad for x in xs):
        tables = [(keepable(cos), keepable(sin)) for cos, sin in tables]
    learned = recording and any(table.requires_grad for pair in tables for table in pair)
    if learned or not _runs_as_it_stands(*xs):
        results = [
            formula(x, *table, interleaved, inverse) for x, table in zip(xs, tables, strict=True)
        ]
        return [
            result if out is None else out.copy_(result)
            for result, out in zip(results, outs, strict=True)
        ]
    if recording and any(x.requires_grad for x in xs):  # the door let no out through
        return [
            Rotation.apply(x, *table, interleaved, inverse)  # type: ignore[no-untyped-call]
            for x, table in zip(xs, tables, strict=True)
        ]
    form = None
    results = []
    for x, table, out in zip(xs, tables, outs, strict=True):
        if form is None or table[0] is not tables[0][0]:
            form = _Form(*table, interleaved, inverse)
        results.append(_rotated(x, form, out))
    return results


def formula(
    x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool, inverse: bool
) -> torch.Tensor:
    """The rotation as the book writes it, in real arithmetic; autograd knows every step."""
    width = 2 * cos.shape[-1]
    first, second = halves(width, interleaved)
    a, b = x[..., first].to(cos.dtype), x[..., second].to(cos.dtype)
    s = -sin if inverse else sin
    turned = [(a * cos - b * s).to(x.dtype), (b * cos + a * s).to(x.dtype)]  # before they join
    if interleaved:
        turned = [torch.stack(turned, -1).reshape(*x.shape[:-1], width)]
    return torch.cat([*turned, x[..., width:]], -1) if width < x.shape[-1] else _joined(turned)


def rows_or_nan(table: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Rows of a table by number; NaN for a number that is no row, where no error can say so."""
    outside = (rows < 0) | (rows >= table.shape[0])
    return table[rows.masked_fill(outside, 0)].masked_fill(outside[..., None], torch.nan)


def keepable(table: torch.Tensor) -> torch.Tensor:
    """A table that autograd can keep: a copy of one that was made in inference mode."""
    return table.clone() if table.is_inference() else table


def _joined(parts: list[torch.Tensor]) -> torch.Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts, -1)


class Rotation(torch.autograd.Function):
    """A rotation whose gradient is the rotation by minus the angle: it saves the tables alone."""

    @staticmethod
    def forward(
        x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool, inverse: bool
    ) -> torch.Tensor:
        """Rotate."""
        return _rotated(x, _Form(cos, sin, interleaved, inverse), None)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keep the tables."""
        _, cos, sin, *ctx.how = inputs
        ctx.save_for_backward(cos, sin)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        """Rotate back; differentiable again."""
        cos, sin = ctx.saved_tensors
        interleaved, inverse = ctx.how
        gradient = gradients[0]
        if torch._C._functorch.is_legacy_batchedtensor(gradient):  # autograd's is_grads_batched
            back = formula(gradient, cos, sin, interleaved, not inverse)
        else:
            how = {"interleaved": interleaved, "inverse": not inverse}
            (back,) = rotate([gradient], [(cos, sin)], [None], **how)
        return back, None, None, None, None


def _runs_as_it_stands(*xs: torch.Tensor) -> bool:
    """Whether these are eager CPU tensors that nothing traces, transforms or differentiates.

    A view as complex numbers drops tangents without a word, and vmap knows no ``out``.
    """
    return (
        not torch.compiler.is_compiling()
        and not torch._C._are_functorch_transforms_active()
        and forward_ad._current_level < 0
        and all(type(x) in (torch.Tensor, torch.nn.Parameter) and x.is_cpu for x in xs)
    )


class _Form:
    """Tables in the form that a way of rotating takes."""

    def __init__(
        self, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool, inverse: bool
    ) -> None:
        self.half = cos.shape[-1]
        self.interleaved = interleaved and self.half > 1  # one pair is the same in both
        self.sign = -1 if inverse else 1
        self.dtype = cos.dtype
        self.tables: list[torch.Tensor]
        if self.interleaved:
            self.tables = [complex_table(cos, -sin if inverse else sin)]
        else:
            self.tables = [torch.cat([cos, cos], -1), sin]


def complex_table(cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """``cos + i sin``, so laid out that each row of a product is computed alike.

    torch multiplies complex numbers in vectors, and what is left over one by one, with another
    rounding. Rows of a table that do not touch make it start anew in each row, so that a row
    comes out the same to the bit in a prompt and in decoding.
    """
    half = cos.shape[-1]
    if half % _VECTORS == 0:
        return torch.complex(cos, sin)
    apart = torch.empty(*cos.shape[:-1], half + 1, dtype=COMPLEX[cos.dtype], device=cos.device)
    return torch.complex(cos, sin, out=apart[..., :half])


def _rotated(x: torch.Tensor, form: _Form, out: torch.Tensor | None) -> torch.Tensor:
    """Rotate an eager CPU tensor."""
    x = x.resolve_neg()
    if out is None:
        out = torch.empty_like(x) if x.stride(-1) == 1 else x.new_empty(x.shape)
    part, into, width = x, out, 2 * form.half
    if width < x.shape[-1]:
        part, into = x[..., :width], out[..., :width]
        if out is not x:
            out[..., width:].copy_(x[..., width:])
    narrow = x.dtype != form.dtype
    if form.interleaved and not narrow:
        source, target = _as_complex(part), _as_complex(into)
        if source is not None and target is not None:
            torch.mul(source, form.tables[0], out=target)
            return out
    if not (form.interleaved or narrow):
        in_place = part.data_ptr() == into.data_ptr()
        way = _half_split_in_place if in_place else _half_split
        for piece, target, tables in _blocks(part, into, form.tables):
            way(piece, target, tables, form)
        return out
    room = x.new_empty(2, max(width, min(_BLOCK, part.numel())), dtype=form.dtype)
    for piece, target, tables in _blocks(part, into, form.tables):
        wide, turned = (row[: piece.numel()].view(piece.shape) for row in room)
        wide.copy_(piece)
        if form.interleaved:
            cis = tables[0]
            torch.mul(wide.view(cis.dtype), cis, out=turned.view(cis.dtype))
        else:
            _half_split(wide, turned, tables, form)
        target.copy_(turned)
    return out


def _half_split(
    x: torch.Tensor, out: torch.Tensor, tables: Sequence[torch.Tensor], form: _Form
) -> None:
    """Rotate pairs (i, i + r/2) into other memory."""
    both, sin = tables
    half = form.half
    torch.mul(x, both, out=out)
    out[..., :half].addcmul_(x[..., half:], sin, value=-form.sign)
    out[..., half:].addcmul_(x[..., :half], sin, value=form.sign)


def _half_split_in_place(
    x: torch.Tensor, out: torch.Tensor, tables: Sequence[torch.Tensor], form: _Form
) -> None:
    """Rotate pairs (i, i + r/2) where they lie, with room for the first of each."""
    both, sin = tables
    half = form.half
    a, b, cos = out[..., :half], out[..., half:], both[..., :half]
    before = a.clone()
    a.mul_(cos).addcmul_(b, sin, value=-form.sign)
    b.mul_(cos).addcmul_(before, sin, value=form.sign)


def _as_complex(x: torch.Tensor) -> torch.Tensor | None:
    """The same memory as complex numbers, where its strides allow that."""
    *outer, inner = x.stride()
    if inner != 1 or x.is_neg() or x.storage_offset() % 2 or any(step % 2 for step in outer):
        return None
    return x.view(COMPLEX[x.dtype])


def _blocks(
    x: torch.Tensor, out: torch.Tensor, tables: Sequence[torch.Tensor]
) -> Iterator[tuple[torch.Tensor, torch.Tensor, Sequence[torch.Tensor]]]:
    """Split along the outermost axes, until a core's cache holds a piece."""
    size = x.numel()
    axis = next((axis for axis in range(x.ndim - 1) if x.shape[axis] > 1), None)
    if size <= _BLOCK or axis is None:
        yield x, out, tables
        return
    length = x.shape[axis]
    step = max(1, _BLOCK * length // size)
    for start in range(0, length, step):
        count = min(step, length - start)
        rows = [
            table if table.shape[axis] == 1 else table.narrow(axis, start, count)
            for table in tables
        ]
        yield from _blocks(x.narrow(axis, start, count), out.narrow(axis, start, count), rows)
