"""Ways to rotate q and k on a GPU: ours, the compiled formula, and what else is installed.

Each is built for tensors q [B, H, T, D] and k [B, KH, T, D] and float32 tables [T, D/2]; a library
that wants tokens before heads gets tensors that lie so in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from typing import Any, NamedTuple

import torch

from posenc import apply_rope_qk

Pair = tuple[torch.Tensor, torch.Tensor]
PACKAGES = ("transformers", "flash-attn", "liger-kernel", "flashinfer-python")


class Rotation(NamedTuple):
    """One way: what it does, how its tensors lie, whether it has a backward."""

    turn: Callable[[torch.Tensor, torch.Tensor], Pair]
    tokens_first: bool = False  # memory in the order [B, T, H, D]; still handed in as [B, H, T, D]
    differentiable: bool = True


def formula(q: torch.Tensor, k: torch.Tensor, cos: Any, sin: Any, interleaved: bool) -> Pair:
    """Rotate as the book writes it, each half cast before they join: what a compiler is given."""

    def one(x: torch.Tensor) -> torch.Tensor:
        if interleaved:
            a, b = x[..., 0::2].float(), x[..., 1::2].float()
        else:
            a, b = x.float().chunk(2, -1)
        first, second = (a * cos - b * sin).to(x.dtype), (b * cos + a * sin).to(x.dtype)
        if interleaved:
            return torch.stack([first, second], -1).flatten(-2)
        return torch.cat([first, second], -1)

    return one(q), one(k)


def posenc_way(cos: torch.Tensor, sin: torch.Tensor, interleaved: bool) -> Rotation:
    """Rotate by this package."""
    return Rotation(lambda q, k: apply_rope_qk(q, k, cos, sin, interleaved=interleaved))


def compiled_way(cos: torch.Tensor, sin: torch.Tensor, interleaved: bool) -> Rotation:
    """Inductor, given the plain formula."""
    compiled = torch.compile(formula, fullgraph=True, dynamic=False)
    return Rotation(lambda q, k: compiled(q, k, cos, sin, interleaved))


def transformers_way(cos: torch.Tensor, sin: torch.Tensor, interleaved: bool) -> Rotation | None:
    """Transformers' function for Llama, with tables in bfloat16, as its models have them."""
    if interleaved:
        return None
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    wide = [torch.cat([t, t], -1).to(torch.bfloat16)[None] for t in (cos, sin)]
    return Rotation(lambda q, k: apply_rotary_pos_emb(q, k, *wide))


def flash_attention_way(cos: torch.Tensor, sin: torch.Tensor, interleaved: bool) -> Rotation:
    """flash-attention's Triton kernel, once for q and once for k."""
    from flash_attn.layers.rotary import apply_rotary_emb

    tables = [t.to(torch.bfloat16) for t in (cos, sin)]  # it wants them in the dtype of x

    def one(x: torch.Tensor) -> torch.Tensor:
        found = apply_rotary_emb(x.transpose(1, 2), *tables, interleaved=interleaved)
        return found.transpose(1, 2)  # type: ignore[no-any-return]

    return Rotation(lambda q, k: (one(q), one(k)), tokens_first=True)


def liger_way(cos: torch.Tensor, sin: torch.Tensor, interleaved: bool) -> Rotation | None:
    """Liger's Triton kernel, one launch, in place."""
    if interleaved:
        return None
    from liger_kernel.transformers.rope import liger_rotary_pos_emb

    wide = [torch.cat([t, t], -1)[None] for t in (cos, sin)]
    return Rotation(lambda q, k: liger_rotary_pos_emb(q, k, *wide), tokens_first=True)


def flashinfer_way(cos: torch.Tensor, sin: torch.Tensor, interleaved: bool) -> Rotation:
    """FlashInfer's CUDA kernel, one launch, positions looked up inside."""
    from flashinfer.rope import apply_rope_with_cos_sin_cache

    cache = torch.cat([cos, sin], -1)
    rows = torch.arange(len(cos), device=cos.device)
    positions: dict[int, torch.Tensor] = {}

    def turn(q: torch.Tensor, k: torch.Tensor) -> Pair:
        batch, _, tokens, dim = q.shape
        flat = [x.transpose(1, 2).reshape(batch * tokens, -1) for x in (q, k)]
        if batch not in positions:
            positions[batch] = rows.repeat(batch)
        found = apply_rope_with_cos_sin_cache(
            positions[batch], *flat, dim, cache, is_neox=not interleaved
        )
        turned = [x.view(batch, tokens, -1, dim).transpose(1, 2) for x in found]
        return turned[0], turned[1]

    return Rotation(turn, tokens_first=True, differentiable=False)


MAKERS = {
    "posenc": posenc_way,
    "torch.compile": compiled_way,
    "transformers": transformers_way,
    "flash-attention": flash_attention_way,
    "Liger": liger_way,
    "FlashInfer": flashinfer_way,
}


def versions() -> dict[str, str]:
    """Versions of the libraries that are installed."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
