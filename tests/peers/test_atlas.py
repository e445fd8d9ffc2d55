"""Every configuration of the atlas against transformers' own class and rotation of that model."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from test_checkpoints_peers import ALIASES, FIXED, FLOAT32, rotary_of
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.gptj.modeling_gptj import create_sinusoidal_positions

from posenc import phases, rope_from_config

ATLAS = json.loads((Path(__file__).parents[2] / "book/data/configs.json").read_text())
ROWS = [(m, layer) for m in ATLAS["models"] for layer in m.get("layers", [None])]
LONG = 131072


def class_of(model):
    """The configuration of the text model, built by transformers from the stored keys."""
    said = copy.deepcopy(model["config"])  # transformers rewrites what it is given
    said = said.get("text_config", said)
    name = said.pop("model_type")
    return CONFIG_MAPPING[ALIASES.get(name, name)](**said)


@pytest.mark.parametrize(("model", "layer"), ROWS, ids=[f"{m['name']} {kind}" for m, kind in ROWS])
def test_frequencies_and_attention_factor_are_those_of_transformers(model, layer):
    """Catches a stored key that one of the two readers overlooks or takes for another thing."""
    config = class_of(model)
    rope = rope_from_config(model["config"], layer_type=layer, seq_len=LONG)
    if rope.model_type in FIXED:  # a table of sines, then cosines
        table = create_sinusoidal_positions(2048, rope.rotary_dim).double().numpy()
        cos, sin = phases(np.arange(2048), rope.frequencies, dtype=np.float64)
        np.testing.assert_allclose(table, np.concatenate([sin, cos], axis=1), rtol=0, atol=1e-3)
        return
    theirs, prefix = rotary_of(config), f"{layer}_" if layer else ""
    if config.model_type == "exaone4":
        prefix = ""  # one rotation, and layers that have none
    if rope.rope_type == "longrope":  # its list is chosen by the length
        theirs(torch.zeros(1), torch.tensor([[LONG - 1]]))
    omega = getattr(theirs, f"{prefix}inv_freq").double().numpy()
    np.testing.assert_allclose(rope.frequencies.omega, omega, rtol=FLOAT32, atol=0)
    factor = getattr(theirs, f"{prefix}attention_scaling")
    assert rope.frequencies.attention_factor == pytest.approx(factor, rel=1e-12)
    assert rope.max_position_embeddings == config.max_position_embeddings


@pytest.mark.parametrize(
    "model", [m for m in ATLAS["models"] if m["kind"] == "class"], ids=lambda m: m["name"]
)
def test_what_is_called_a_default_is_the_default(model):
    """Catches a value that the class no longer has, and the wrong name of the class."""
    default = CONFIG_MAPPING[model["config"]["model_type"]]()
    assert type(default).__name__ == model["source"][0].partition(", ")[2]
    known = default.to_dict()
    for key, value in model["config"].items():
        assert known[key] == value, key


def test_the_version_that_the_chapter_names():
    """Catches numbers compared with one release and a sentence that names another."""
    assert ATLAS["transformers"] == transformers.__version__
