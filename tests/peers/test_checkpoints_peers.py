"""Every row of the table of families against the classes of that model_type in transformers."""

import importlib

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AttentionInterface, AutoModel
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, AttentionMaskInterface
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.falcon import modeling_falcon
from transformers.models.moonshine.modeling_moonshine import MoonshineDecoder
from transformers.models.roformer import modeling_roformer

from posenc import apply_rope, rope_from_config, rope_tables
from posenc.checkpoints import FAMILIES

ALIASES = {  # read like another model_type: the wrapper of a text model, or the same code
    "qwen2_vl": "qwen2_vl_text",
    "qwen2_5_vl": "qwen2_5_vl_text",
    "kimi_k2": "deepseek_v3",
}
ELSEWHERE = ("chatglm",)  # no class in transformers
FIXED = ("gptj", "codegen", "roformer")  # tables without frequencies of their own
EVERY = [name for name in FAMILIES if name not in (*ALIASES, *ELSEWHERE)]
KINDS = [(name, label) for name in EVERY for label in FAMILIES[name].labels or (None,)]
FLOAT32 = 4e-6  # relative: a power in float32, and the exponent rounded before it


def config_of(name, **changes):
    return CONFIG_MAPPING[ALIASES.get(name, name)](**changes)


def rotary_of(config):
    """The rotary embedding of a text model, built by transformers."""
    module = importlib.import_module(type(config).__module__.replace("configuration_", "modeling_"))
    (found,) = (
        thing
        for name, thing in vars(module).items()
        if name.endswith("RotaryEmbedding")
        and "Vision" not in name
        and thing.__module__ == module.__name__
    )
    return found(config)


def agree(rope, config, label=None):
    """Frequencies and attention factor equal those of transformers to float32 rounding."""
    theirs, prefix = rotary_of(config), f"{label}_" if label else ""
    omega = getattr(theirs, f"{prefix}inv_freq").double().numpy()
    np.testing.assert_allclose(rope.frequencies.omega, omega, rtol=FLOAT32, atol=0)
    factor = getattr(theirs, f"{prefix}attention_scaling")
    assert rope.frequencies.attention_factor == pytest.approx(factor, rel=1e-12)


@pytest.mark.parametrize(("name", "label"), [kind for kind in KINDS if kind[0] not in FIXED])
def test_defaults_are_those_of_the_class(name, label):
    """Catches a base, width, length or rule of a class that the table has wrong."""
    changes = {"head_dim": 128} if name == "glm4_moe" else {}
    config = config_of(name, **changes)
    rope = rope_from_config(config, layer_type=label, seq_len=1)
    agree(rope, config, label)
    sizes = {
        key: config.to_dict().get(key) for key in ("hidden_size", "decoder_num_attention_heads")
    }
    if name != "moonshine":
        sizes["num_attention_heads"] = config.num_attention_heads
    silent = {"model_type": name, **sizes, **changes}  # what the class fills in is left out
    bare = rope_from_config(silent, layer_type=label, seq_len=1)
    assert bare.frequencies == rope.frequencies
    assert bare.softmax_scale == rope.softmax_scale
    assert bare.max_position_embeddings == config.max_position_embeddings
    assert "default of" in bare.source["base"]


SEEN = []


def capture(module, query, key, value, attention_mask=None, scaling=None, **rest):
    """Stand in for attention: keep what it gets, and return nothing but a shape."""
    SEEN.append((query.double(), key.double(), scaling))
    return query.new_zeros(*query.transpose(1, 2).shape[:-1], value.shape[-1]), None


AttentionInterface.register("capture", capture)
AttentionMaskInterface.register("capture", ALL_MASK_ATTENTION_FUNCTIONS["eager"])

SMALL = {
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 1,
    "intermediate_size": 32,
    "vocab_size": 64,
    "num_local_experts": 2,
    "num_experts": 2,
    "n_routed_experts": 2,
    "num_experts_per_tok": 1,
    "moe_intermediate_size": 16,
    "n_layer": 1,
    "n_embd": 64,
    "n_head": 4,
    "rotary_dim": 8,
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "first_k_dense_replace": 1,
    "n_group": 1,
    "topk_group": 1,
    "pad_token_id": 0,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "shared_expert_intermediate_size": 16,
    "hidden_size_per_layer_input": 8,
    "vocab_size_per_layer_input": 64,
    "num_kv_shared_layers": 0,
    "encoder_num_hidden_layers": 1,
    "decoder_num_hidden_layers": 1,
    "decoder_num_attention_heads": 4,
    "decoder_num_key_value_heads": 4,
}
OWN = {  # what else a small model of this family needs
    "chameleon": {"vocabulary_map": {"<image>": 60}, "vq_config": {"base_channels": 32}},
    "helium": {"head_dim": 16},
    "qwen2_vl_text": {"hidden_size": 512},  # its sections are made for 128 channels
    "qwen2_5_vl_text": {"hidden_size": 512},
    "phi4_multimodal": {
        "vision_config": {
            "hidden_size": 32,
            "intermediate_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
        },
        "audio_config": {
            "hidden_size": 32,
            "intermediate_size": 32,
            "num_blocks": 1,
            "num_attention_heads": 2,
            "ext_pw_out_channel": 32,
            "depthwise_separable_out_channel": 32,
            "nemo_conv_channels": 32,
        },
    },
    "longcat_flash": {
        "num_layers": 1,
        "moe_topk": 2,
        "zero_expert_num": 1,
        "ffn_hidden_size": 32,
        "expert_ffn_hidden_size": 16,
    },
    "deepseek_v4": {"head_dim": 512, "mlp_layer_types": ["moe"], "o_groups": 4},
    "mistral4": {"n_routed_experts": 2},
}
LAYERS = {"main": "sliding_attention", "compress": "heavily_compressed_attention"}
POSITIONS = torch.tensor([[7, 3, 100, 51, 2]])


def small(name, label=None, **changes):
    """The configuration of a model with one layer, of one kind."""
    known = config_of(name, **({"head_dim": 16} if name == "glm4_moe" else {})).to_dict()
    sizes = {key: size for key, size in SMALL.items() if key in known}
    if "head_dim" in known and FAMILIES[name].latent is None:
        sizes["head_dim"] = 32
    if label or FAMILIES[name].still:
        last = ["full_attention"] if name == "gemma4_text" else []  # it insists on one
        kind = label or "full_attention"
        kind = "sliding_attention" if kind in FAMILIES[name].still else kind
        sizes["layer_types"] = [LAYERS.get(kind, kind), *last]
        sizes["num_hidden_layers"] = 1 + len(last)
    config = config_of(name, **(sizes | OWN.get(name, {}) | changes))
    config._attn_implementation = "capture"
    return config


def seen(config, positions):
    """Queries, keys and scale that reach the attention of the first layer."""
    torch.manual_seed(0)
    if config.model_type == "moonshine":
        model = MoonshineDecoder(config).eval()
        more = {"encoder_hidden_states": torch.zeros(1, 3, config.hidden_size)}
    else:
        model, more = AutoModel.from_config(config).eval(), {}
    SEEN.clear()
    with torch.no_grad():
        model(input_ids=torch.tensor([[1, 2, 3, 4, 5]]), position_ids=positions, **more)
    return SEEN[0]


def turned(x, rope):
    """What this package makes of queries that stood at position 0."""
    x, turning = x.clone(), slice(rope.rotary_start, rope.rotary_start + rope.rotary_dim)
    cos, sin = rope_tables(POSITIONS[0], rope.frequencies, dtype=torch.float64)
    raw = x[..., turning] / rope.frequencies.attention_factor  # A stands in them already
    x[..., turning] = apply_rope(raw, cos, sin, interleaved=rope.interleaved)
    return x


def same_attention(config, label=None):
    """One layer of transformers gets the queries, keys and scale that this package predicts."""
    rope = rope_from_config(config, layer_type=label, seq_len=101)
    q_0, k_0, scale = seen(config, torch.zeros_like(POSITIONS))
    q, k, _ = seen(config, POSITIONS)
    latent = FAMILIES[config.model_type].latent and config.model_type != "deepseek_v2"
    if latent and rope.interleaved:  # these hand their pairs on as halves
        start, r = rope.rotary_start, rope.rotary_dim
        order = [*range(start), *(start + np.arange(r).reshape(2, -1).T.ravel())]
        q_0, k_0, q, k = (x[..., order] for x in (q_0, k_0, q, k))
    keys = k.shape[2] if k.shape[2] == len(POSITIONS[0]) else len(POSITIONS[0])
    for before, after in ((q_0, q), (k_0[:, :, :keys], k[:, :, :keys])):
        bound = 1e-4 * after.abs().max().item()
        torch.testing.assert_close(turned(before, rope), after, rtol=0, atol=bound)
        assert not torch.allclose(before, after, rtol=0, atol=100 * bound)
    assert rope.head_dim == q.shape[-1]
    assert rope.softmax_scale == pytest.approx(scale or q.shape[-1] ** -0.5, rel=1e-12)
    return rope


@pytest.mark.parametrize(
    ("name", "label"), [kind for kind in KINDS if kind[0] not in ("falcon", "roformer")]
)
def test_a_layer_gets_the_queries_keys_and_scale_that_are_predicted(name, label):
    """Catches a pairing, a width, a first channel, a sign or a softmax scale that is wrong."""
    same_attention(small(name, label), label)


def test_the_encoders_that_hold_their_own_attention():
    """Falcon and RoFormer do not call a shared attention: their functions are called instead."""
    x = torch.as_tensor(np.random.default_rng(0).normal(size=(2, 3, 5, 16))).float()
    config = config_of("falcon", hidden_size=64, num_attention_heads=4)
    rope = rope_from_config(config)
    cos, sin = modeling_falcon.FalconRotaryEmbedding(config)(x, POSITIONS)
    theirs, _ = modeling_falcon.apply_rotary_pos_emb(x, x, cos, sin)
    tables = rope_tables(POSITIONS[0], rope.frequencies)
    ours = apply_rope(x, *tables, interleaved=rope.interleaved)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-4)
    assert rope.softmax_scale == modeling_falcon.FalconAttention(config).inv_norm_factor
    config = config_of("roformer", hidden_size=64, num_attention_heads=4)
    rope = rope_from_config(config)
    embedding = modeling_roformer.RoFormerSinusoidalPositionalEmbedding(101, rope.head_dim)
    embedding.weight.copy_(embedding.create_weight())
    attention = modeling_roformer.RoFormerSelfAttention(config)
    theirs, _ = attention.apply_rotary_position_embeddings(embedding.weight[POSITIONS[0]], x, x)
    tables = rope_tables(POSITIONS[0], rope.frequencies)
    ours = apply_rope(x, *tables, interleaved=rope.interleaved)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-4)
    assert rope.head_dim == attention.attention_head_size


def test_chatglm_is_read_as_vllm_reads_it():
    """Its class is not in transformers: base 10000 rope_ratio, half of each head, neighbours."""
    config = {
        "model_type": "chatglm",
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "rope_ratio": 500,
        "seq_length": 131072,
    }
    rope = rope_from_config(config)
    omega = 1 / (10000 * 500) ** (np.arange(0, 64, 2) / 64)
    np.testing.assert_allclose(rope.frequencies.omega, omega, rtol=1e-14)
    assert (rope.interleaved, rope.rotary_dim, rope.head_dim) == (True, 64, 128)
    assert rope.max_position_embeddings == 131072
    assert not rope_from_config({**config, "original_rope": False}).interleaved


LLAMA = {"hidden_size": 64, "num_attention_heads": 4, "max_position_embeddings": 8192}
YARN = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}
NEW_YARN = {"rope_type" if key == "type" else key: value for key, value in YARN.items()}
DEEPSEEK_YARN = {**YARN, "factor": 40, "beta_fast": 32, "beta_slow": 1}
BANDS = {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
OLD = [  # a configuration of the time before rope_parameters, its layers, its rope type
    ("llama", LLAMA | {"rope_theta": 5e5}, None, "default"),
    ("llama", LLAMA | {"rope_scaling": {"type": "linear", "factor": 2.0}}, None, "linear"),
    ("llama", LLAMA | {"rope_scaling": {"rope_type": "dynamic", "factor": 2}}, None, "dynamic"),
    ("llama", LLAMA | {"rope_scaling": YARN, "rope_theta": 1e6}, None, "yarn"),
    ("llama", LLAMA | {"rope_scaling": YARN | {"attention_factor": 1.5}}, None, "yarn"),
    ("llama", LLAMA | {"rope_scaling": YARN | {"truncate": False}}, None, "yarn"),
    ("llama", LLAMA | {"rope_scaling": YARN | {"factor": None}}, None, "yarn"),
    (
        "llama",
        LLAMA | {"rope_scaling": {**BANDS, "rope_type": "llama3", "factor": 8.0}},
        None,
        "llama3",
    ),
    ("qwen2", LLAMA | {"rope_scaling": YARN, "rope_theta": 1e6}, None, "yarn"),
    ("mistral", LLAMA | {"head_dim": 32, "rope_theta": 1e6}, None, "default"),
    ("gpt_neox", LLAMA | {"rotary_pct": 0.5, "rotary_emb_base": 25000}, None, "default"),
    ("gpt_neox", LLAMA | {"rotary_pct": 1.0}, None, "default"),
    ("phi", LLAMA | {"partial_rotary_factor": 0.25, "rope_theta": 2e4}, None, "default"),
    ("phi3", LLAMA | {"partial_rotary_factor": 0.75, "rope_theta": 2e4}, None, "default"),
    ("stablelm", LLAMA | {"partial_rotary_factor": 0.5}, None, "default"),
    ("stablelm", LLAMA | {"rope_scaling": {"type": "linear", "factor": 3}}, None, "linear"),
    ("glm4_moe", LLAMA | {"head_dim": 32, "partial_rotary_factor": 0.25}, None, "default"),
    ("minimax_m2", LLAMA | {"head_dim": 32, "rotary_dim": 16}, None, "default"),
    ("nemotron", LLAMA | {"partial_rotary_factor": 0.25}, None, "default"),
    ("nomic_bert", LLAMA | {"rope_scaling": {"type": "dynamic", "factor": 2.0}}, None, "dynamic"),
    ("qwen3_next", LLAMA | {"head_dim": 64, "rope_theta": 1e7}, None, "default"),
    (
        "qwen2_vl_text",
        LLAMA | {"rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}},
        None,
        "default",
    ),
    ("gemma3_text", LLAMA | {"rope_local_base_freq": 2e4}, "sliding_attention", "default"),
    ("gemma3_text", LLAMA | {"rope_theta": 2e6}, "full_attention", "default"),
    (
        "gemma3_text",
        LLAMA | {"rope_scaling": {"rope_type": "linear", "factor": 8.0}},
        "full_attention",
        "linear",
    ),
    (
        "gemma3_text",
        LLAMA | {"rope_scaling": {"rope_type": "linear", "factor": 8.0}},
        "sliding_attention",
        "default",
    ),
    ("modernbert", LLAMA | {"global_rope_theta": 8e4}, "full_attention", "default"),
    ("modernbert", LLAMA | {"local_rope_theta": 8e3}, "sliding_attention", "default"),
    ("olmo3", LLAMA | {"rope_scaling": NEW_YARN}, "full_attention", "yarn"),
    ("olmo3", LLAMA | {"rope_scaling": NEW_YARN}, "sliding_attention", "default"),
    ("deepseek_v2", {"rope_scaling": DEEPSEEK_YARN, "rope_theta": 10000}, None, "yarn"),
    (
        "deepseek_v3",
        {"rope_scaling": DEEPSEEK_YARN | {"mscale": 1.0, "mscale_all_dim": 1.0}},
        None,
        "yarn",
    ),
    (
        "deepseek_v3",
        {"rope_scaling": DEEPSEEK_YARN | {"mscale": 0.707, "mscale_all_dim": 1.0}},
        None,
        "yarn",
    ),
    ("deepseek_v4", {"rope_scaling": DEEPSEEK_YARN, "qk_rope_head_dim": 32}, "compress", "yarn"),
    ("deepseek_v4", {"rope_scaling": DEEPSEEK_YARN, "rope_theta": 2e4}, "main", "default"),
    (
        "hunyuan_v1_dense",
        LLAMA
        | {"head_dim": 16, "rope_scaling": {"type": "dynamic", "alpha": 1000.0, "factor": 1.0}},
        None,
        "ntk",
    ),
    (
        "ministral3",
        {"rope_parameters": YARN | {"llama_4_scaling_beta": 0.1, "rope_theta": 2e6}},
        None,
        "yarn",
    ),
]


@pytest.mark.parametrize(("name", "old", "label", "word"), OLD)
def test_older_names_are_read_as_transformers_reads_them(name, old, label, word):
    """Catches an old key that is overlooked, and what transformers makes of it read otherwise."""
    said = {key: dict(value) if isinstance(value, dict) else value for key, value in old.items()}
    config = config_of(name, **said)  # it rewrites what it is given
    rope = rope_from_config({"model_type": name, **old}, layer_type=label, seq_len=1)
    assert rope.rope_type == word
    if word != "dynamic":
        agree(rope, config, label)
    again = rope_from_config(config, layer_type=label, seq_len=1)  # and as it writes them today
    assert again.frequencies == rope.frequencies
    assert again.softmax_scale == rope.softmax_scale


@pytest.mark.parametrize(("name", "seq_len"), [("phi3", 4096), ("phi3", 4097), ("phimoe", 4096)])
@pytest.mark.parametrize("word", ("longrope", "su"))
def test_longrope_takes_the_list_of_the_length(name, seq_len, word):
    """One list up to the original length, the other beyond; the lengths give the factor."""
    pairs = np.arange(1, 9)
    box = {
        "type": word,
        "short_factor": (1 + pairs / 10).tolist(),
        "long_factor": (4.0 * pairs).tolist(),
    }
    if name == "phimoe":
        box |= {"short_mscale": 1.25, "long_mscale": 1.5}
    old = LLAMA | {"max_position_embeddings": 131072, "rope_scaling": box}
    old["original_max_position_embeddings"] = 4096
    rope = rope_from_config({"model_type": name, **old}, seq_len=seq_len)
    base = {} if name == "phi3" else {"rope_theta": 1e6}
    theirs = rotary_of(
        config_of("phi3", **old | {"rope_scaling": dict(box, type="longrope")} | base)
    )
    at = torch.tensor([[seq_len - 1]])
    theirs(torch.zeros(1), at)
    omega = theirs.inv_freq.double().numpy()
    np.testing.assert_allclose(rope.frequencies.omega, omega, rtol=FLOAT32)
    factor = 1.25 if name == "phimoe" else theirs.attention_scaling
    assert rope.frequencies.attention_factor == pytest.approx(factor, rel=1e-12)


def test_softmax_scales():
    """Catches a scale that a configuration sets and the table does not honour."""
    box = DEEPSEEK_YARN | {"mscale": 1.0, "mscale_all_dim": 1.0}
    assert same_attention(small("deepseek_v3", rope_scaling=box)).softmax_scale > 192**-0.5
    box = DEEPSEEK_YARN | {"mscale": 0.707, "mscale_all_dim": 0.707}
    same_attention(small("deepseek_v2", rope_scaling=box))
    same_attention(small("gemma2", query_pre_attn_scalar=144))
    config = small("gemma3_text", "full_attention", query_pre_attn_scalar=168)
    same_attention(config, "full_attention")
    same_attention(small("granite", attention_multiplier=0.0078125))


def test_deepseek_pairs_halves_where_rope_interleave_says_so():
    """The one key of a configuration that sets the pairing."""
    rope = same_attention(small("deepseek_v3", rope_interleave=False))
    assert not rope.interleaved


@pytest.mark.parametrize("name", ("cohere2", "exaone4"))
def test_layers_that_do_not_rotate(name):
    """Queries of a layer that sees everything are the same at every position."""
    config = small(name, layer_types=["full_attention"])
    q_0, _, _ = seen(config, torch.zeros_like(POSITIONS))
    q, _, _ = seen(config, POSITIONS)
    assert torch.equal(q_0, q)
    with pytest.raises(ValueError, match="'full_attention' do not rotate"):
        rope_from_config(config, layer_type="full_attention")


def test_olmo_3_takes_one_base_for_all_its_layers():
    """Documented: transformers 5.24 forgets a base beside the dictionary for half the layers."""
    old = LLAMA | {"rope_theta": 2e6}
    config = config_of("olmo3", **old)
    thetas = [config.rope_parameters[label]["rope_theta"] for label in FAMILIES["olmo3"].labels]
    assert thetas == [2e6, 5e5]
    for label in FAMILIES["olmo3"].labels:
        assert rope_from_config({"model_type": "olmo3", **old}, layer_type=label).base == 2e6


@pytest.mark.parametrize("name", ("gemma3_text", "olmo3", "modernbert"))
def test_a_type_under_its_old_name_still_counts(name):
    """Documented: where layers differ, transformers 5.24 reads ``type`` as rope_type default."""
    box = {"type": "linear", "factor": 8.0}
    config = config_of(name, **LLAMA, rope_scaling=dict(box))
    entry = config.rope_parameters["full_attention"]
    assert (entry["type"], entry["rope_type"]) == ("linear", "default")
    rope = rope_from_config(
        {"model_type": name, **LLAMA, "rope_scaling": box}, layer_type="full_attention"
    )
    assert rope.rope_type == "linear"
    assert rope.frequencies.omega[0] == 1 / 8


def test_phimoe_takes_its_long_factors_for_a_long_sequence():
    """Documented: transformers 5.24 turns by the short ones at every length."""
    box = {"type": "longrope", "short_factor": [1.0] * 8, "long_factor": [4.0] * 8}
    box |= {"short_mscale": 1.25, "long_mscale": 1.5, "original_max_position_embeddings": 4096}
    old = LLAMA | {"max_position_embeddings": 131072, "rope_scaling": box}
    rope = rope_from_config({"model_type": "phimoe", **old}, seq_len=4097)
    short = rope_from_config({"model_type": "phimoe", **old}, seq_len=4096)
    np.testing.assert_allclose(rope.frequencies.omega, short.frequencies.omega / 4, rtol=1e-15)
    assert rope.frequencies.attention_factor == 1.5
    theirs = rotary_of(config_of("phimoe", **old | {"rope_scaling": dict(box)}))
    cos, _ = theirs(torch.zeros(1), torch.tensor([[4096]]))
    right = 1.5 * np.cos(4096 * short.frequencies.omega)
    np.testing.assert_allclose(cos[0, 0, :8].numpy(), right, rtol=0, atol=1e-3)


def test_truncate_counts_where_layers_differ():
    """Documented: transformers 5.24 looks for a nested truncate beside the layer types."""
    box = NEW_YARN | {"truncate": False}
    old = LLAMA | {"model_type": "olmo3", "rope_scaling": box}
    rope = rope_from_config(old, layer_type="full_attention")
    flat = rope_from_config(old | {"model_type": "llama", "rope_theta": 5e5})
    assert rope.frequencies == flat.frequencies
    theirs = rotary_of(config_of("olmo3", **LLAMA, rope_scaling=dict(box)))
    rounded = rope_from_config(old | {"rope_scaling": NEW_YARN}, layer_type="full_attention")
    omega = theirs.full_attention_inv_freq.double().numpy()
    np.testing.assert_allclose(rounded.frequencies.omega, omega, rtol=FLOAT32)
    assert not np.allclose(rope.frequencies.omega, omega, rtol=1e-3)


FINITE = {"allow_nan": False, "allow_infinity": False}


@settings(max_examples=150, deadline=None)
@given(
    word=st.sampled_from(["default", "linear", "dynamic", "yarn", "llama3"]),
    name=st.sampled_from(["llama", "stablelm", "phi", "glm4", "cohere"]),
    theta=st.floats(100, 1e7, **FINITE),
    factor=st.floats(1, 64, **FINITE),
    heads=st.integers(1, 8),
    width=st.sampled_from([16, 32, 64, 80, 128]),
    length=st.integers(2**11, 2**17),
    inside=st.booleans(),
)
def test_any_configuration(word, name, theta, factor, heads, width, length, inside):
    """Parameters drawn at random, in either place, for families of each pairing and width."""
    box = {"rope_type": word}
    if word != "default":
        box["factor"] = factor
    if word == "yarn":
        box["original_max_position_embeddings"] = length // 2
    if word == "llama3":
        box |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
        box["original_max_position_embeddings"] = length // 2
    old = {
        "hidden_size": heads * width,
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "max_position_embeddings": length,
        "rope_scaling": box | ({"rope_theta": theta} if inside else {}),
        **({} if inside else {"rope_theta": theta}),
        **({"head_dim": width} if name == "glm4" else {}),
    }
    rope = rope_from_config({"model_type": name, **old}, seq_len=length)
    config = config_of(name, **old | {"rope_scaling": dict(old["rope_scaling"])})
    omega = rotary_of(config).inv_freq.double().numpy()
    np.testing.assert_allclose(rope.frequencies.omega, omega, rtol=3 * FLOAT32, atol=0)
