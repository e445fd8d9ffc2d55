"""Which channels the models of transformers turn together, found by running one layer of each.

Run as ``python tests/peers/survey_pairings.py --write book/data/pairings.json``. A layer of every
model is built from its configuration class, with random weights and the class's own width of a
head. Its queries are taken twice where attention would begin: with all tokens at position 0, which
turns nothing, and with all at position 1000. The linear map between the two is the rotation. Its
entries say which channels turn, which turn together, and which way: nothing is read off names.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from transformers import AttentionInterface, AttentionMaskInterface, AutoConfig, AutoModel
from transformers.masking_utils import eager_mask

POSITION, TOKENS = 1000, 300  # twice 300 queries are more than the widest head
MODELS = {
    "codegen": "CodeGen",
    "cohere": "Command R",
    "deepseek_v2": "DeepSeek-V2",
    "deepseek_v3": "DeepSeek-V3",
    "deepseek_v32": "DeepSeek-V3.2",
    "ernie4_5": "Ernie 4.5",
    "gemma": "Gemma",
    "gemma3_text": "Gemma 3",
    "gemma4_text": "Gemma 4 (global)",
    "glm": "GLM-4",
    "glm4_moe": "GLM-4.5",
    "gpt_neox": "GPT-NeoX",
    "gpt_oss": "gpt-oss",
    "gptj": "GPT-J",
    "helium": "Helium",
    "llama": "Llama",
    "llama4_text": "Llama 4",
    "mistral": "Mistral",
    "nanochat": "NanoChat",
    "nemotron": "Nemotron",
    "olmo2": "OLMo 2",
    "persimmon": "Persimmon",
    "phi": "Phi",
    "phi3": "Phi-3",
    "qwen2": "Qwen2",
    "qwen3": "Qwen3",
    "qwen3_next": "Qwen3-Next",
    "smollm3": "SmolLM3",
    "stablelm": "StableLM",
}
SPECIAL: dict[str, dict[str, Any]] = {
    "codegen": {"num_attention_heads": 4},  # its fused projection is cut into four
    "gemma4_text": {  # a global layer; the others turn whole heads
        "layer_types": ["full_attention"],
        "head_dim": 256,
        "vocab_size_per_layer_input": TOKENS,
    },
    "glm4_moe": {"head_dim": 128},  # of its checkpoints; its class says 4096 // 96
    "persimmon": {"qk_layernorm": False},  # takes out a direction, which no fit could see then
    "qwen3_next": {"layer_types": ["full_attention"]},  # else the first layer has no attention
}
# What is made small: everything but the width of a head and the share of it that turns.
SMALL = {
    "num_hidden_layers": 1,
    "num_key_value_heads": 1,
    "vocab_size": TOKENS,
    "intermediate_size": 16,
    "moe_intermediate_size": 16,
    "n_inner": 16,
    "num_experts": 16,
    "num_local_experts": 16,
    "q_lora_rank": 256,
    "pad_token_id": None,
    "bos_token_id": None,
    "eos_token_id": None,
}


class Caught(Exception):  # noqa: N818
    """Ends a forward pass where attention would begin, with the queries in hand."""


def probe(module: Any, query: Any, *rest: Any, **options: Any) -> Any:
    raise Caught(query[0].transpose(0, 1))


AttentionInterface.register("probe", probe)
AttentionMaskInterface.register("probe", eager_mask)  # DeepSeek-V3.2 selects keys by its mask


def small_model(kind: str) -> torch.nn.Module:
    """One layer of a model, its heads as wide as its configuration class makes them."""
    usual = AutoConfig.for_model(kind)
    special = SPECIAL.get(kind, {})
    heads = special.get("num_attention_heads", 2)
    stated = special.get("head_dim") or getattr(usual, "head_dim", None)
    head_dim = stated or usual.hidden_size // usual.num_attention_heads
    sizes = {key: value for key, value in SMALL.items() if hasattr(usual, key)}
    sizes |= {"num_attention_heads": heads, "hidden_size": heads * head_dim} | special
    config = AutoConfig.for_model(kind, **sizes)
    torch.manual_seed(0)
    return AutoModel.from_config(config, attn_implementation="probe").double().eval()


def queries(model: torch.nn.Module, position: int) -> tuple[Any, list[Any]]:
    """Queries [T, H, head_dim] as attention receives them, and what linear layers put out."""
    linear: list[Any] = []
    hooks = [
        layer.register_forward_hook(lambda layer, inputs, out: linear.append(out.flatten(0, -2)))
        for layer in model.modules()
        if isinstance(layer, torch.nn.Linear)
    ]
    ids = torch.arange(TOKENS)[None]
    try:
        with torch.no_grad():
            model(input_ids=ids, position_ids=torch.full_like(ids, position), use_cache=False)
    except Caught as caught:
        return caught.args[0], linear
    finally:
        for hook in hooks:
            hook.remove()
    raise ValueError("the model never came to its attention")


def order_of(query: Any, linear: list[Any]) -> NDArray[np.int64]:
    """Where each channel of the unturned queries stood in the projection that made them.

    A model may hand on its channels in another order than its weights have them. Norms over a
    head do not hinder: both sides are compared after their own mean and length are taken out.
    """

    def plain(y: Any) -> Any:
        y = y - y.mean(-1, keepdim=True)
        return y / y.norm(dim=-1, keepdim=True)

    width = query.shape[-1]
    head = plain(query[:, 0])
    for out in linear:
        if len(out) != TOKENS or out.shape[-1] % width:
            continue
        for block in plain(out.unflatten(-1, (-1, width))).unbind(1):
            exactly = "donot_use_mm_for_euclid_dist"
            gap = torch.cdist(head.T, block.T, compute_mode=exactly)
            if bool((gap.min(1).values < 1e-3).all()):
                return gap.argmin(1).numpy()
    raise ValueError("no projection makes these queries")


def survey(kind: str) -> dict[str, Any]:
    """Pairing, widths, place and direction of one model's rotation."""
    model = small_model(kind)
    still, linear = queries(model, 0)
    turned, _ = queries(model, POSITION)
    width = still.shape[-1]
    order = order_of(still, linear)
    sides = (y.reshape(-1, width).numpy()[:, np.argsort(order)] for y in (still, turned))
    rotation = np.linalg.lstsq(*sides, rcond=None)[0].T
    mixed = np.abs(rotation - np.diag(np.diag(rotation))) > 1e-4
    if (mixed.sum(axis=1) > 1).any():
        raise ValueError("a channel turns with more than one other")
    channels = np.flatnonzero(mixed.any(axis=1))
    partner, half = mixed.argmax(axis=1)[channels], len(channels) // 2
    ways = {
        True: channels.reshape(-1, 2)[:, ::-1].ravel(),
        False: np.roll(channels, half),
    }
    (interleaved,) = (way for way, expected in ways.items() if (partner == expected).all())
    sine = -rotation[channels[0], partner[0]] / math.sin(POSITION)  # pair 0: 1 radian a token
    first, last = int(channels[0]), int(channels[-1]) + 1
    where = "all" if len(channels) == width else "first" if last == len(channels) else "last"
    if last - first != len(channels):
        where = "spread"
    return {
        "name": MODELS[kind],
        "interleaved": interleaved,
        "head_dim": width,
        "rotary_dim": len(channels),
        "channels": where,
        "forwards": bool(sine > 0),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path)
    parser.add_argument("kinds", nargs="*")
    options = parser.parse_args()
    models = {kind: survey(kind) for kind in options.kinds or sorted(MODELS)}
    found = {
        "date": datetime.date.today().isoformat(),
        "transformers": transformers.__version__,
        "models": models,
    }
    text = re.sub(r"\n {6}|\n {4}(?=\})", " ", json.dumps(found, indent=2)) + "\n"
    print(text)
    if options.write:
        options.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
