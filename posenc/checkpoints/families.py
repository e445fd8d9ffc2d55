"""What the code of each model family does with its configuration: one row a ``model_type``.

Every row is compared with the configuration class and the rotation of that ``model_type`` in
transformers (tests/peers/test_checkpoints_peers.py); ``chatglm`` has no class there and follows
vLLM's reading of the published code.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from posenc.checkpoints.family import Family, Rotation

HALVES, NEIGHBOURS = False, True  # pairs (i, i + r/2); pairs (2i, 2i + 1)


def base(theta: float, **rule: Any) -> dict[str, Rotation]:
    """One rotation for all layers, with the class's own base and rope dictionary."""
    return {"": Rotation(theta, rule=rule or None)}


def two(full: Rotation, sliding: Rotation) -> dict[str, Rotation]:
    """One rotation for layers that see everything, one for those with a window."""
    return {"full_attention": full, "sliding_attention": sliding}


MILLION = base(1e6)
BERT_LAYERS = two(Rotation(160000.0, "global_rope_theta"), Rotation(1e4, "local_rope_theta"))
GEMMA3_LAYERS = two(Rotation(1e6), Rotation(1e4, "rope_local_base_freq", scaled=False))
GEMMA4_LAYERS = two(
    Rotation(
        1e6,
        "",
        scaled=False,
        rule={"rope_type": "proportional", "partial_rotary_factor": 0.25},
        head_dim=("global_head_dim", 512),
    ),
    Rotation(1e4, "", scaled=False),
)
DEEPSEEK4_LAYERS = {
    "main": Rotation(1e4, scaled=False),
    "compress": Rotation(160000.0, "compress_rope_theta", attention_factor=1.0),
}
MISTRAL_RULE = {
    "rope_type": "yarn",
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "llama_4_scaling_beta": 0.1,
}
GPT_NAMES = {
    "hidden_size": "n_embd",
    "num_attention_heads": "n_head",
    "max_position_embeddings": "n_positions",
}
GPT: dict[str, Any] = {
    "width": 64,
    "fixed": True,
    "reads": ("rotary_dim",),
    "names": GPT_NAMES,
}
MOONSHINE_NAMES = {"num_attention_heads": "decoder_num_attention_heads"}
SECTIONS = ("mrope_section", "mrope_interleaved")
TEXT = "three rows of positions in mrope_section; for text they are one and the same"
GROWING = "llama_4_scaling_beta also scales queries by their position, beyond softmax_scale"
INDEXER = "the indexer of this model pairs halves"
LATENT: dict[str, Any] = {"interleaved": NEIGHBOURS, "scale": "mscale", "last": True}
MROPE: dict[str, Any] = {"extra": SECTIONS, "types": {"mrope": "default"}, "note": TEXT}
PHI_TYPES = {"su": "longrope", "yarn": "longrope"}
UNREAD = ("beta_fast", "beta_slow", "mscale", "mscale_all_dim")  # in Hunyuan's files, in no code

FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        # Llama and its kin: whole heads, halves
        "llama": Family(HALVES, 2048, reads=("rope_interleaved",)),  # SmolLM2's files have it
        "llama4_text": Family(
            NEIGHBOURS,
            131072,
            head_dim=128,
            layers=base(5e5),
            note="layers with 0 in no_rope_layers do not rotate, and scale their queries instead",
        ),
        "mistral": Family(HALVES, 131072),
        "ministral": Family(HALVES, 131072),
        "ministral3": Family(
            HALVES,
            262144,
            head_dim=128,
            layers=base(1e6, **MISTRAL_RULE, factor=16.0, original_max_position_embeddings=16384),
            extra=("llama_4_scaling_beta",),
            note=GROWING,
        ),
        "mixtral": Family(HALVES, 131072, layers=MILLION),
        "arcee": Family(HALVES, 4096),
        "apertus": Family(
            HALVES,
            65536,
            layers=base(
                12e6,
                rope_type="llama3",
                factor=8.0,
                low_freq_factor=1.0,
                high_freq_factor=4.0,
                original_max_position_embeddings=8192,
            ),
        ),
        "bitnet": Family(HALVES, 2048, layers=base(5e5)),
        "chameleon": Family(HALVES, 4096),
        "seed_oss": Family(HALVES, 524288, head_dim=128),
        "smollm3": Family(
            HALVES,
            32768,
            layers=base(2e6),
            note="layers with 0 in no_rope_layers do not rotate",
        ),
        "starcoder2": Family(HALVES, 4096),
        "olmo": Family(HALVES, 2048),
        "olmo2": Family(HALVES, 2048),
        "olmo3": Family(HALVES, 2048, layers=two(Rotation(5e5), Rotation(5e5, scaled=False))),
        "olmoe": Family(HALVES, 4096),
        "exaone4": Family(HALVES, 2048, still=("full_attention",)),
        "granite": Family(HALVES, 2048, scale="attention_multiplier", scalar=1.0),
        "granitemoe": Family(HALVES, 2048, scale="attention_multiplier", scalar=1.0),
        "gpt_oss": Family(
            HALVES,
            131072,
            head_dim=64,
            layers=base(
                150000.0,
                rope_type="yarn",
                factor=32.0,
                beta_fast=32.0,
                beta_slow=1.0,
                truncate=False,
                original_max_position_embeddings=4096,
            ),
        ),
        "hunyuan_v1_dense": Family(HALVES, 2048, extra=("alpha", *UNREAD)),
        "hunyuan_v1_moe": Family(HALVES, 2048, extra=("alpha", *UNREAD)),
        # Gemma
        "gemma": Family(HALVES, 8192, head_dim=256),
        "gemma2": Family(HALVES, 8192, head_dim=256, scale="query_pre_attn_scalar", scalar=256.0),
        "gemma3_text": Family(
            HALVES,
            131072,
            head_dim=256,
            layers=GEMMA3_LAYERS,
            scale="query_pre_attn_scalar",
            scalar=256.0,
        ),
        "gemma3n_text": Family(HALVES, 32768, head_dim=256, layers=GEMMA3_LAYERS, scale="one"),
        "gemma4_text": Family(HALVES, 131072, head_dim=256, layers=GEMMA4_LAYERS, scale="one"),
        # Qwen
        "qwen2": Family(HALVES, 32768),
        "qwen2_moe": Family(HALVES, 32768),
        "qwen3": Family(HALVES, 32768, head_dim=128),
        "qwen3_moe": Family(HALVES, 32768),
        "qwen3_next": Family(HALVES, 32768, head_dim=256, part=0.25, still=("linear_attention",)),
        "qwen3_5_text": Family(
            HALVES, 32768, head_dim=256, part=0.25, still=("linear_attention",), **MROPE
        ),
        "qwen2_vl": Family(HALVES, 32768, layers=MILLION, **MROPE),
        "qwen2_vl_text": Family(HALVES, 32768, layers=MILLION, **MROPE),
        "qwen2_5_vl": Family(HALVES, 32768, layers=MILLION, **MROPE),
        "qwen2_5_vl_text": Family(HALVES, 32768, layers=MILLION, **MROPE),
        "qwen3_vl_text": Family(HALVES, 128000, head_dim=128, layers=base(5e5), **MROPE),
        "qwen3_vl_moe_text": Family(HALVES, 128000, layers=base(5e5), **MROPE),
        # A part of the head
        "phi": Family(HALVES, 2048, part=0.5, reads=("rotary_dim",)),
        "phi3": Family(HALVES, 4096, part=1.0, original=4096, types=PHI_TYPES),
        "phi4_multimodal": Family(HALVES, 131072, part=1.0, original=4096, types=PHI_TYPES),
        "phimoe": Family(
            HALVES,
            131072,
            layers=MILLION,
            types=PHI_TYPES,
            extra=("short_mscale", "long_mscale"),
        ),
        "gpt_neox": Family(HALVES, 2048, part=0.25, reads=("rotary_pct", "rotary_emb_base")),
        "gptj": Family(NEIGHBOURS, 2048, **GPT),
        "codegen": Family(NEIGHBOURS, 2048, **GPT),
        "falcon": Family(HALVES, 2048, names={"hidden_size": "n_embed"}),
        "stablelm": Family(HALVES, 4096, part=0.25),
        "nemotron": Family(HALVES, 4096, part=0.5),
        "persimmon": Family(HALVES, 16384, part=0.5),
        "minimax_m2": Family(
            HALVES, 196608, head_dim=128, part=1.0, layers=base(5e6), reads=("rotary_dim",)
        ),
        "glm4_moe": Family(HALVES, 131072, part=0.5),
        # Neighbours
        "glm": Family(NEIGHBOURS, 131072, head_dim=128, part=0.5),
        "glm4": Family(NEIGHBOURS, 131072, head_dim=128, part=0.5),
        "chatglm": Family(
            NEIGHBOURS,
            8192,
            part=0.5,
            reads=("rope_ratio", "original_rope"),
            names={"max_position_embeddings": "seq_length"},
        ),
        "cohere": Family(NEIGHBOURS, 8192, layers=base(5e5)),
        "cohere2": Family(NEIGHBOURS, 8192, still=("full_attention",), reads=("rotary_pct",)),
        "ernie4_5": Family(NEIGHBOURS, 131072, head_dim=128, layers=base(5e5)),
        "ernie4_5_moe": Family(NEIGHBOURS, 131072, layers=base(5e5)),
        "helium": Family(NEIGHBOURS, 4096, head_dim=128, layers=base(1e5)),
        "moonshine": Family(NEIGHBOURS, 512, part=0.9, names=MOONSHINE_NAMES),
        # DeepSeek and its kin: a slice at the end of each head turns
        "deepseek_v2": Family(length=2048, latent=(128, 64), **LATENT),
        "deepseek_v3": Family(length=4096, latent=(128, 64), reads=("rope_interleave",), **LATENT),
        "kimi_k2": Family(length=4096, latent=(128, 64), reads=("rope_interleave",), **LATENT),
        "deepseek_v32": Family(length=163840, latent=(128, 64), note=INDEXER, **LATENT),
        "deepseek_v4": Family(
            NEIGHBOURS,
            1048576,
            head_dim=512,
            part=0.125,
            layers=DEEPSEEK4_LAYERS,
            last=True,
        ),
        "mistral4": Family(
            length=1048576,
            latent=(64, 64),
            layers=base(1e4, **MISTRAL_RULE, factor=128.0, original_max_position_embeddings=8192),
            reads=("rope_interleave",),
            extra=("llama_4_scaling_beta",),
            note=GROWING,
            **LATENT,
        ),
        "glm4_moe_lite": Family(
            length=202752, latent=(192, 64), reads=("rope_interleave",), **LATENT
        ),
        "longcat_flash": Family(length=131072, latent=(128, 64), layers=base(1e7), **LATENT),
        "minicpm3": Family(HALVES, 32768, latent=(64, 32), scale="mscale", last=True),
        # Encoders
        "modernbert": Family(HALVES, 8192, layers=BERT_LAYERS),
        "modernbert-decoder": Family(HALVES, 8192, layers=BERT_LAYERS),
        "nomic_bert": Family(HALVES, 2048, layers=base(1000.0)),
        "roformer": Family(NEIGHBOURS, 1536, fixed=True, reads=("rotary_value",)),
    }
)
"""Every ``model_type`` whose rotation is known."""
