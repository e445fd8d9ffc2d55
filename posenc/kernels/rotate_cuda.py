"""Rotations of CUDA tensors: one launch for queries and keys, one operator for torch.

The kernel is `posenc.kernels.rotate_triton`, launched by `posenc.kernels.launch_triton`; here are
the operators ``posenc::rotate`` and ``posenc::rotate_into`` that torch.compile and autograd see.
Importing this file registers them, and does not import triton.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import torch
from torch.autograd import forward_ad

from posenc.kernels.launch_triton import Rows, Tensors, launch
from posenc.kernels.rotate_torch import formula, keepable, rows_or_nan

HAS_TRITON = find_spec("triton") is not None
"""Whether triton is installed; it is imported when the first CUDA tensor is turned."""


def runs(xs: Tensors, cos: torch.Tensor, sin: torch.Tensor) -> bool:
    """Whether the kernel turns these tensors, which are on a CUDA device.

    Not where tables get gradients, under vmap and forward-mode derivatives, for subclasses, in
    exported programs, and without triton: there the formula stands, and gives the same.
    """
    if not HAS_TRITON or torch.compiler.is_exporting():
        return False
    if torch.is_grad_enabled() and (cos.requires_grad or sin.requires_grad):
        return False
    if torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0:
        return False
    everything = (*xs, cos, sin)
    if not all(type(x) in (torch.Tensor, torch.nn.Parameter) for x in everything):
        return False
    return torch.compiler.is_compiling() or not any(x.is_neg() for x in everything)


def rotate(
    xs: Tensors,
    tables: Sequence[tuple[torch.Tensor, ...]],
    outs: Sequence[torch.Tensor | None],
    *,
    interleaved: bool,
    inverse: bool,
) -> list[torch.Tensor]:
    """Rotate tensors; arguments as in `posenc.kernels.rotate`."""
    recording = torch.is_grad_enabled()
    results = [x if out is None else out for x, out in zip(xs, outs, strict=True)]
    together: list[list[int]] = []  # of one table, and all or none of them get gradients
    for i, x in enumerate(xs):
        for others in together:
            j = others[0]
            same = tables[i] is tables[j] and (outs[i] is None) == (outs[j] is None)
            if same and not (recording and x.requires_grad != xs[j].requires_grad):
                others.append(i)
                break
        else:
            together.append([i])
    for chosen in together:
        first = chosen[0]
        cos, sin, *rows = tables[first]
        how = (cos, sin, rows[0] if rows else None, interleaved, inverse)
        sources, targets = [xs[i] for i in chosen], [results[i] for i in chosen]
        eager = not torch.compiler.is_compiling()
        if outs[first] is not None and eager and any(target.is_neg() for target in targets):
            for target, turned in zip(targets, _turned(sources, *how), strict=True):
                target.copy_(turned)  # a view that negates what is read
            continue
        if outs[first] is not None:
            into = launch if _nobody_looks() else torch.ops.posenc.rotate_into
            into(sources, targets, *how)
            continue
        direct = _nobody_looks() and not (recording and xs[first].requires_grad)
        targets = (_turned if direct else torch.ops.posenc.rotate)(sources, *how)
        for i, target in zip(chosen, targets, strict=True):
            results[i] = target
    return results


def _nobody_looks() -> bool:
    """Whether no trace and no mode needs to see an operator."""
    return not torch.compiler.is_compiling() and torch._C._len_torch_dispatch_stack() == 0


def _like(x: torch.Tensor) -> torch.Tensor:
    """Memory for a result: in the order of x, if its channels lie side by side."""
    return torch.empty_like(x) if x.stride(-1) == 1 else x.new_empty(x.shape)


def _turned(
    xs: Tensors,
    cos: torch.Tensor,
    sin: torch.Tensor,
    rows: Rows,
    interleaved: bool,
    inverse: bool,
) -> list[torch.Tensor]:
    outs = [_like(x) for x in xs]
    launch(xs, outs, cos, sin, rows, interleaved, inverse)
    return outs


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    """Keep the tables, and nothing else."""
    _, cos, sin, rows, *ctx.how = inputs
    kept = [keepable(table) for table in (cos, sin)]
    ctx.save_for_backward(*kept, rows if rows is None else keepable(rows))


def _backward(ctx: Any, gradients: Tensors) -> tuple[Any, ...]:
    """Turn the gradients by minus the angles: the same kernel; differentiable again."""
    cos, sin, rows = ctx.saved_tensors
    interleaved, inverse = ctx.how
    if any(torch._C._functorch.is_legacy_batchedtensor(each) for each in gradients):
        if rows is not None:  # is_grads_batched of autograd: the operator knows no batches
            cos, sin = (rows_or_nan(t, rows[..., 0]) for t in (cos, sin))
        back = [formula(each, cos, sin, interleaved, not inverse) for each in gradients]
    else:
        back = torch.ops.posenc.rotate(gradients, cos, sin, rows, interleaved, not inverse)
    return back, None, None, None, None, None


_WHAT = "Tensor cos, Tensor sin, Tensor? rows, bool interleaved, bool inverse"
_rotate = torch.library.custom_op(
    "posenc::rotate", _turned, mutates_args=(), schema=f"(Tensor[] xs, {_WHAT}) -> Tensor[]"
)
_rotate.register_fake(lambda xs, *how: [_like(x) for x in xs])
_rotate.register_autograd(_backward, setup_context=_keep)


_ROTATE_INTO = torch.library.custom_op(
    "posenc::rotate_into",
    lambda *args: launch(*args),
    mutates_args=("outs",),
    schema=f"(Tensor[] xs, Tensor(a!)[] outs, {_WHAT}) -> ()",
)
