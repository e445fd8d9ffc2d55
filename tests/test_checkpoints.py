"""Published configurations mean what they say, and what they cannot mean is refused."""

import copy
import json
import pickle
from pathlib import Path
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from posenc import Rope, frequencies, rope_from_config
from posenc.checkpoints import FAMILIES

CONFIGS = json.loads((Path(__file__).parent / "configs.json").read_text())
LLAMA = {
    "model_type": "llama",
    "hidden_size": 256,
    "num_attention_heads": 4,
    "max_position_embeddings": 4096,
}
LINEAR = {"rope_type": "linear", "factor": 8.0}


def asked(case):
    return {key: case[key] for key in ("layer_type", "seq_len") if key in case}


def named(cases):
    return pytest.mark.parametrize("case", cases, ids=[case["id"] for case in cases])


@named(CONFIGS["read"])
def test_what_a_configuration_means(case):
    """Golden values T14 to T22, and the public faults of kinds E and F, each as its own file."""
    rope = rope_from_config(case["config"], **asked(case))
    expect = dict(case["expect"])
    omega = rope.frequencies.omega
    ratio = omega / frequencies(rope.rotary_dim, rope.base).omega
    bands = {
        "kept": lambda first, last: (ratio[first : last + 1], 1),
        "divided": lambda first, last, by: (ratio[first : last + 1], 1 / by),
        "stopped": lambda first, last: (ratio[first : last + 1], 0),
        "ratios": lambda first, values: (ratio[first : first + len(values)], values),
    }
    for name in bands.keys() & expect.keys():
        found, right = bands[name](*expect.pop(name))
        assert len(found)
        np.testing.assert_allclose(found, np.broadcast_to(right, found.shape), rtol=1e-9)
    if "stretched_base" in expect:  # the digits given are those of the base
        base = expect.pop("stretched_base")
        np.testing.assert_allclose(omega[1] ** (-rope.rotary_dim / 2), base, rtol=1e-8)
    found = {
        "omega": omega.tolist(),
        "pairs": len(omega),
        "second": omega[1],
        "attention_factor": rope.frequencies.attention_factor,
    }
    for name, right in expect.items():
        value = found[name] if name in found else getattr(rope, name)
        right = right if isinstance(right, str) else pytest.approx(right, rel=1e-9)
        assert value == right, name


@named(CONFIGS["refused"])
def test_what_a_configuration_cannot_mean(case):
    """One sentence that names the key, and never a guess."""
    error = {"TypeError": TypeError}.get(case.get("error"), ValueError)
    with pytest.raises(error) as raised:
        rope_from_config(case["config"], **asked(case))
    sentence = str(raised.value)
    for word in case["words"]:
        assert word in sentence
    assert "\n" not in sentence


def test_names_that_mean_the_same():
    """T22: old and new names, either place, ints and floats, all keys of a round trip."""
    same = [
        {"rope_scaling": {"type": "linear", "factor": 8}, "rope_theta": 500000},
        {"rope_scaling": {"rope_type": "linear", "factor": 8.0}, "rope_theta": 5e5},
        {"rope_parameters": {**LINEAR, "rope_theta": 5e5}},
        {"rope_parameters": {**LINEAR, "rope_theta": 5e5}, "rope_theta": 500000.0},
        {"rope_parameters": {**LINEAR, "type": "linear", "rope_theta": 5e5}},
        {"rope_parameters": {**LINEAR, "rope_theta": 5e5}, "rope_scaling": {"type": "linear"}},
        {"rope_parameters": {**LINEAR, "rope_theta": 5e5}, "rope_scaling": None},
        {"rope_scaling": {**LINEAR, "partial_rotary_factor": 1.0}, "rope_theta": 5e5},
        {"rope_scaling": LINEAR, "rope_theta": 5e5, "head_dim": 64},
        {"rope_scaling": LINEAR, "rope_theta": 5e5, "head_dim": None, "use_cache": True},
    ]
    first, *others = (rope_from_config({**LLAMA, **keys}).frequencies for keys in same)
    assert first.omega[0] == 1 / 8
    assert all(other == first for other in others)


def test_a_mapping_a_file_a_folder_and_an_object(tmp_path):
    """Catches a form of the same configuration that is read otherwise, or changed."""
    config = {**LLAMA, "rope_scaling": LINEAR}
    before = copy.deepcopy(config)
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config), encoding="utf-8-sig")
    forms = (
        config,
        MappingProxyType(config),
        file,
        str(file),
        tmp_path,
        SimpleNamespace(to_dict=lambda: config),
        {"model_type": "llava", "text_config": config},
        {"model_type": "llava", "text_config": SimpleNamespace(to_dict=lambda: config)},
    )
    right = rope_from_config(config)
    assert isinstance(right, Rope)
    assert all(rope_from_config(form) == right for form in forms)
    assert config == before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not JSON"),
        ("[1]", "must hold a JSON object, got list"),
        ('{"rope_theta": 1e4, "rope_theta": 5e5}', "rope_theta stands twice"),
        ('{"rope_theta": NaN}', "NaN is no JSON number"),
        ("\xff", "is not JSON"),
        ("[" * 100_000, "is nested too deeply for a configuration"),
        (f'{{"hidden_size": {"9" * 5000}}}', "an integer of 5000 digits is none of a configur"),
    ],
)
def test_files_that_are_no_configuration(tmp_path, text, words):
    """Catches a duplicate key of which the last wins, and an error that names no file."""
    file = tmp_path / "config.json"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=words) as raised:
        rope_from_config(file)
    assert str(file) in str(raised.value)


@pytest.mark.parametrize("thing", (None, 3, ["model_type"], dict))
def test_things_that_are_no_configuration(thing):
    """Catches a class, or nothing, taken for a configuration."""
    with pytest.raises(TypeError, match="config must be a mapping, a path or an object"):
        rope_from_config(thing)


@pytest.mark.parametrize(
    ("thing", "sentence"),
    [
        (SimpleNamespace(to_dict=lambda: None), "config must be a mapping, .* got NoneType"),
        (SimpleNamespace(to_dict=lambda: [1]), "config must be a mapping, .* got list"),
        ({**LLAMA, 1: 2}, "the keys of a configuration must be str, got 1"),
        ({1: 2, "text_config": LLAMA}, "the keys of a configuration must be str, got 1"),
        ({"text_config": {**LLAMA, 1: 2}}, "the keys of a configuration must be str, got 1"),
        ({**LLAMA, "rope_scaling": {1: 2}}, "the keys of a configuration must be str, got 1"),
        ({**LLAMA, "rope_theta": np.ones(2)}, "rope_theta must be a real number, got list"),
    ],
)
def test_a_configuration_is_checked_as_far_as_it_is_read(thing, sentence):
    """Catches an AttributeError about a key, and an array that is neither true nor false."""
    with pytest.raises(TypeError, match=sentence):
        rope_from_config(thing)


def test_the_path_of_nothing_is_no_folder():
    """Catches an unset variable that reads the configuration of whatever folder this is."""
    with pytest.raises(ValueError, match="config must be the path of a file or a folder"):
        rope_from_config("")


@pytest.mark.parametrize("arrays", (np.array, torch.tensor))
def test_lists_may_be_arrays_and_stay_the_callers(arrays):
    """Catches a comparison of arrays, and a result that changes with its configuration."""
    lists = {"short_factor": [1.0] * 4, "long_factor": [2.0, 3.0, 4.0, 5.0]}
    phi = {**LLAMA, "model_type": "phi3", "head_dim": 8, "id2label": {0: "a"}}
    plain = {**phi, "rope_scaling": {"type": "longrope", **lists}}
    made = {key: arrays(value) for key, value in lists.items()}
    right = rope_from_config(plain, seq_len=10**6)
    for boxes in (("rope_scaling",), ("rope_scaling", "rope_parameters")):
        config = {**phi, **{box: {"type": "longrope", **made} for box in boxes}}
        assert rope_from_config(config, seq_len=10**6) == right
    lists["long_factor"][0] = 9.0
    assert right.parameters["long_factor"] == [2.0, 3.0, 4.0, 5.0]


def test_words_at_the_door():
    """Catches a layer type or a length of another kind."""
    with pytest.raises(TypeError, match="layer_type must be a str"):
        rope_from_config(LLAMA, layer_type=3)
    with pytest.raises(TypeError, match="seq_len must be an integer"):
        rope_from_config(LLAMA, seq_len=4096.0)
    with pytest.raises(FileNotFoundError):
        rope_from_config("no such file")


def test_every_value_says_where_it_comes_from():
    """A default is never taken without a word."""
    given = rope_from_config({**LLAMA, "rope_theta": 5e5, "head_dim": 64}).source
    assert given["base"] == "rope_theta"
    assert given["head_dim"] == "head_dim"
    silent = {key: LLAMA[key] for key in ("model_type", "hidden_size", "num_attention_heads")}
    source = rope_from_config(silent).source
    assert source["base"] == "default of model_type 'llama'"
    assert source["max_position_embeddings"] == "default of model_type 'llama'"
    assert source["head_dim"] == "hidden_size / num_attention_heads"
    assert source["interleaved"] == "code of model_type 'llama'"
    assert "note" in rope_from_config({"model_type": "ministral3"}).source
    rule = rope_from_config({"model_type": "gpt_oss"})
    assert rule.rope_type == "yarn"
    assert rule.source["rope_type"] == "default of model_type 'gpt_oss'"


def test_a_file_may_say_the_pairing_that_its_code_has():
    """SmolLM2's files do."""
    config = {"model_type": "llama", "hidden_size": 576, "num_attention_heads": 9}
    plain = rope_from_config(config)
    said = rope_from_config(config | {"rope_interleaved": False})
    assert not said.interleaved
    assert (said.frequencies, said.rotary_dim) == (plain.frequencies, plain.rotary_dim)


def test_keys_of_other_things_are_left_alone():
    """A real file has dozens of keys that speak of something else."""
    others = {"vocab_size": 32000, "attn_scale": 0.1, "sliding_window": None, "qk_rope": 3}
    others |= {"seq_length": 2048, "n_positions": 7, "n_head": 3, "kv_channels": 8}
    assert rope_from_config({**LLAMA, **others}) == rope_from_config(LLAMA)
    assert rope_from_config({**LLAMA, "query_pre_attn_scalar": 9}).softmax_scale == 64**-0.5


def test_nesting_is_seen_by_the_layer_types_that_are_declared():
    """Catches a flat dictionary taken for a nested one, and the other way round."""
    nested = {"sliding_attention": {"rope_theta": 1e4}, "full_attention": LINEAR}
    config = {**LLAMA, "layer_types": ["sliding_attention", "full_attention"]}
    config["rope_parameters"] = nested
    assert rope_from_config(config, layer_type="full_attention").rope_type == "linear"
    assert rope_from_config(config, layer_type="sliding_attention").rope_type == "default"
    with pytest.raises(ValueError, match="layer_type must be 'sliding_attention' or"):
        rope_from_config(config)
    flat = {**config, "rope_parameters": LINEAR}
    for layer_type in (None, *nested):
        assert rope_from_config(flat, layer_type=layer_type).rope_type == "linear"
    only = {**config, "rope_parameters": {"full_attention": LINEAR}}
    assert rope_from_config(only).rope_type == "linear"


def test_a_base_beside_a_nested_dictionary_is_one_of_its_bases():
    """Old files keep the base of one kind of layer beside the dictionary of both."""
    layers = {"sliding_attention": {"rope_theta": 1e4}, "full_attention": {"rope_theta": 1e6}}
    config = {"model_type": "gemma3_text", "rope_parameters": layers, "rope_theta": 1e6}
    bases = [rope_from_config(config, layer_type=name).base for name in layers]
    assert bases == [1e4, 1e6]
    with pytest.raises(ValueError, match="rope_theta is 30000"):
        rope_from_config({**config, "rope_theta": 3e4}, layer_type="full_attention")


def test_a_factor_of_null_comes_from_the_lengths():
    """YaRN and LongRoPE: the ratio of the two lengths, and never below 1."""
    box = {"rope_type": "yarn", "factor": None, "original_max_position_embeddings": 1024}
    rope = rope_from_config({**LLAMA, "rope_scaling": box})
    assert rope.parameters["factor"] == 4
    assert "max_position_embeddings /" in rope.source["factor"]
    ones = [1.0] * 32
    box = {"rope_type": "longrope", "short_factor": ones, "long_factor": ones}
    rope = rope_from_config({**LLAMA, "rope_scaling": box}, seq_len=10)
    assert rope.frequencies.attention_factor == 1
    assert rope.parameters["original_max_position_embeddings"] == 4096
    box["original_max_position_embeddings"] = 8192  # more than the 4096 that are allowed
    rope = rope_from_config({**LLAMA, "rope_scaling": box}, seq_len=10)
    assert rope.parameters["factor"] == 1


def test_each_list_of_phimoe_has_its_own_attention_factor():
    """Kind E: catches the long one for a short text, and the lengths' own in place of both."""
    ones = [1.0] * 32
    box = {"type": "longrope", "short_factor": ones, "long_factor": [2.0] * 32}
    box |= {"short_mscale": 1.125, "long_mscale": 1.25, "original_max_position_embeddings": 512}
    phi = {**LLAMA, "model_type": "phimoe", "rope_scaling": box}
    for seq_len, factor, first in ((512, 1.125, 1.0), (513, 1.25, 0.5)):
        rope = rope_from_config(phi, seq_len=seq_len)
        assert rope.frequencies.attention_factor == factor
        assert rope.frequencies.omega[0] == first


def test_a_sequence_has_one_base_whoever_shares_its_batch():
    """T15: no state is kept from one length to the next."""
    config = {**LLAMA, "rope_scaling": {"type": "dynamic", "factor": 2.0}}
    long, short, again = (rope_from_config(config, seq_len=n) for n in (8192, 100, 8192))
    assert short.frequencies == frequencies(64)
    assert long.frequencies == again.frequencies != short.frequencies


def test_every_family_reads_its_own_defaults():
    """No row contradicts itself; a copy and a pickle are equal to the value."""
    sizes = {"hidden_size": 320, "num_attention_heads": 4}
    for name, family in FAMILIES.items():
        for label in family.labels or (None,):
            rope = rope_from_config({"model_type": name, **sizes}, layer_type=label, seq_len=9)
            assert rope.model_type == name
            assert rope.layer_type == label
            assert len(rope.frequencies) == rope.rotary_dim // 2
            assert 0 <= rope.rotary_start <= rope.head_dim - rope.rotary_dim
    assert copy.deepcopy(rope) == rope == pickle.loads(pickle.dumps(rope))


STRANGE = (None, [], [1], {}, {"a": 1}, {"full_attention": {}}, "x", "", "8", "yarn", True, False)
STRANGE += (0, -1, 1, 2, 3.5, -0.0, 1e300, 1e-300, 10**400, 2**63, float("nan"), float("inf"))
KEYS = sorted(
    {key for case in CONFIGS["read"] for key in case["config"]}
    | {"factor", "attention_factor", "mscale_all_dim", "truncate", "beta_fast", "long_factor"}
    | {"rope_parameters", "partial_rotary_factor", "layer_types", "alpha", "type", "text_config"}
)


@settings(max_examples=400, deadline=None)
@given(
    case=st.sampled_from(CONFIGS["read"]),
    key=st.sampled_from(KEYS),
    inside=st.booleans(),
    value=st.sampled_from(STRANGE),
)
def test_any_value_is_read_or_refused_in_one_sentence(case, key, inside, value):
    """Catches an error from inside, a hang, and a table that fills the memory."""
    config = copy.deepcopy(case["config"])
    box = config.get("rope_scaling") or config.get("rope_parameters")
    (box if inside and isinstance(box, dict) else config)[key] = value
    rope, sentence = None, ""
    try:
        rope = rope_from_config(config, **asked(case))
    except (TypeError, ValueError) as error:
        sentence = str(error)
    assert "\n" not in sentence
    if rope is not None:
        assert np.isfinite(rope.frequencies.omega).all()
        assert np.isfinite(rope.softmax_scale)
