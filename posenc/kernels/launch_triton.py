"""The launch of the Triton kernel: strides, sizes of tiles, one grid for queries and keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch

_TILE = 1024
"""Most pairs that a program of 128 threads holds at once: 128-bit accesses of 16-bit numbers."""

_MANY = 4096
"""Programs that fill a GPU several times over: with more, each turns several tiles of heads."""

_LOOP = 4
"""Tiles of heads that one program turns by the same row, where there are many programs."""

Tensors = Sequence[torch.Tensor]
Rows = torch.Tensor | None


class Plan(NamedTuple):
    """Sizes that the kernel is compiled for."""

    tokens: int
    heads: int
    loop: int
    warps: int = 4


class _Operand(NamedTuple):
    """A tensor [batch, heads, tokens, head_dim], where its result goes, and its tables."""

    x: torch.Tensor
    out: torch.Tensor
    cos: torch.Tensor
    sin: torch.Tensor
    rows: Rows
    axes: list[tuple[int, int, int, int]]
    """Batch and head: how many, and the strides of x, of the result, and of the tables' rows."""

    @property
    def per_head(self) -> bool:
        """Whether heads turn by rows of their own."""
        return self.axes[1][0] > 1 and self.axes[1][3] != 0

    def fits(self, other: _Operand) -> bool:
        """Whether one launch can turn both: they differ in nothing but memory and heads."""
        (batch, *_, step), (heads, *_, head_step) = self.axes
        (batches, *_, steps), (other_heads, *_, other_step) = other.axes
        tables = [(self.cos, other.cos), (self.sin, other.sin)]
        if self.rows is not None and other.rows is not None:
            tables.append((self.rows, other.rows))
        return (
            batch == batches
            and (batch == 1 or step == steps)
            and self.per_head == other.per_head
            and (not self.per_head or (heads, head_step) == (other_heads, other_step))
            and all(a.data_ptr() == b.data_ptr() for a, b in tables)
        )


def _operands(
    x: torch.Tensor, out: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, rows: Rows
) -> Iterator[_Operand]:
    """Take the axes before the tokens for two; slices, where their strides do not allow it."""
    index = cos if rows is None else rows  # [..., T, r/2], or [..., T, 1]
    axes = [
        (n, x.stride(i), out.stride(i), index.stride(i) if index.shape[i] > 1 else 0)
        for i, n in enumerate(x.shape[:-2])
    ]
    if len(axes) > 2:
        axes = _merged(axes)
    if len(axes) <= 2:
        yield _Operand(x, out, cos, sin, rows, [(1, 0, 0, 0)] * (2 - len(axes)) + axes)
        return
    axis = next(i for i, n in enumerate(x.shape) if n > 1)

    def slices(t: torch.Tensor, i: int) -> torch.Tensor:
        return t.select(axis, i if t.shape[axis] > 1 else 0)

    for i in range(x.shape[axis]):
        tables = (slices(cos, i), slices(sin, i)) if rows is None else (cos, sin)
        yield from _operands(
            slices(x, i), slices(out, i), *tables, None if rows is None else slices(rows, i)
        )


def _merged(axes: list[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]:
    """Take neighbouring axes for one, where every stride goes on from one to the other."""
    merged: list[tuple[int, int, int, int]] = []
    for n, *steps in axes:
        if n == 1:
            continue
        before = merged[-1] if merged else None
        if before and all(b == n * s for b, s in zip(before[1:], steps, strict=True)):
            merged.pop()
            n *= before[0]
        merged.append((n, steps[0], steps[1], steps[2]))
    return merged


def launch(
    xs: Tensors,
    outs: Tensors,
    cos: torch.Tensor,
    sin: torch.Tensor,
    rows: Rows,
    interleaved: bool,
    inverse: bool,
) -> None:
    """Turn all of ``xs`` into ``outs``: by one launch, if two axes before the tokens suffice."""
    if cos.stride() != sin.stride():
        cos, sin = cos.contiguous(), sin.contiguous()
    operands = [
        operand
        for x, out in zip(xs, outs, strict=True)
        if x.numel()
        for operand in _operands(x, out, cos, sin, rows)
    ]
    while operands:
        q = operands.pop(0)
        k = operands.pop(0) if operands and q.fits(operands[0]) else None
        _run(q, k, interleaved, inverse)


def plan(pairs: int, tokens: int, heads: int, batch: int) -> Plan:
    """Sizes for so many pairs (a power of 2), tokens, heads and rows of a batch.

    Many tokens make a tile of their own; few share it with other heads.
    """
    tile = max(1, _TILE // pairs)
    block = min(tile, _next_power_of_2(tokens))
    side = min(tile // block, _next_power_of_2(heads))
    programs = -(-tokens // block) * -(-heads // side) * batch
    return Plan(block, side, _LOOP if programs > _MANY else 1)


def _next_power_of_2(n: int) -> int:
    return 1 << (n - 1).bit_length()


def _run(q: _Operand, k: _Operand | None, interleaved: bool, inverse: bool) -> None:
    """Launch the kernel for one or two operands."""
    from posenc.kernels import rotate_triton

    (batch, *_, step), (heads, *_, head_step) = q.axes
    k_heads = 0 if k is None else k.axes[1][0]
    k = q if k is None else k
    half, tokens = q.cos.shape[-1], q.x.shape[-2]
    pairs = _next_power_of_2(half)
    sizes = plan(pairs, tokens, max(heads, k_heads), batch)
    share = sizes.heads * sizes.loop
    q_groups = -(-heads // share)
    groups = q_groups - (-k_heads // share)
    programs = -(-tokens // sizes.tokens) * groups * batch
    rows = q.cos if q.rows is None else q.rows
    arguments: list[Any] = [q.x, q.out, k.x, k.out, q.cos, q.sin, rows]
    for axes, pair in ((q.axes, q), (k.axes, k)):
        (_, x_batch, y_batch, _), (_, x_head, y_head, _) = axes
        arguments += [x_batch, x_head, *pair.x.stride()[-2:]]
        arguments += [y_batch, y_head, *pair.out.stride()[-2:]]
    table = [step, head_step, *q.cos.stride()[-2:], 0, 0, 0]
    if q.rows is not None:
        table = [0, 0, *q.cos.stride(), step, head_step, q.rows.stride(-2)]
    arguments += [*table, tokens, heads, k_heads, q_groups, groups, q.cos.shape[-2]]
    rests = [0 if o.x.data_ptr() == o.out.data_ptr() else o.x.shape[-1] - 2 * half for o in (q, k)]
    here = q.x.device
    elsewhere = here.type == "cuda" and here.index != torch.cuda.current_device()
    with torch.cuda.device(here) if elsewhere else nullcontext():
        rotate_triton.rotate[(programs,)](
            *arguments,
            HALF=half,
            PAIRS=pairs,
            Q_REST=rests[0],
            K_REST=rests[1],
            TOKENS=sizes.tokens,
            HEADS=sizes.heads,
            LOOP=sizes.loop,
            GATHER=q.rows is not None,
            PER_HEAD=q.per_head,
            INTERLEAVED=interleaved,
            INVERSE=inverse,
            num_warps=sizes.warps,
            enable_fp_fusion=True,
        )
