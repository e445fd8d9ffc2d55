"""The configurations of the atlas, and the one formula that its chapter numbers."""

import json
import re
import sys
from pathlib import Path

import mpmath
import numpy as np
import pytest

from posenc import rope_from_config
from posenc.checkpoints import FAMILIES

ATLAS = json.loads((Path(__file__).parents[2] / "book/data/configs.json").read_text())
ROWS = [(m, layer) for m in ATLAS["models"] for layer in m.get("layers", [None])]
SOURCES = {  # where a value may come from
    "config": r"https://github\.com/\S+/blob/[0-9a-f]{40}/\S+",
    "converter": r"https://github\.com/\S+/blob/[0-9a-f]{40}/\S+",
    "report": r"https://github\.com/\S+/(?:blob/[0-9a-f]{40}/\S+|pull/\d+)"
    r"|transformers \d+\.\d+\.\d+, \w+Config",
    "class": r"transformers \d+\.\d+\.\d+, \w+Config",
}


def deep(name, layer=None):
    """The configuration of one model, and what is read from it."""
    (model,) = (m for m in ATLAS["models"] if m["name"] == name)
    return model["config"], rope_from_config(model["config"], layer_type=layer, seq_len=131072)


@pytest.mark.parametrize(("model", "layer"), ROWS, ids=[f"{m['name']} {kind}" for m, kind in ROWS])
def test_every_stored_configuration_is_read(model, layer):
    """Catches an entry that the reader refuses, or whose width, length or base is not its own."""
    rope = rope_from_config(model["config"], layer_type=layer, seq_len=131072)
    said = json.dumps(model["config"])
    assert len(rope.frequencies) == rope.rotary_dim // 2
    assert np.isfinite(rope.frequencies.omega).all()
    assert rope.original_max_position_embeddings <= rope.max_position_embeddings
    for name, value in (("base", rope.base), ("max_position_embeddings", None)):
        if "default" in rope.source[name]:  # then no key of the file may say it
            assert value is None or not re.search(rf"\b{value:.0f}(?:\.0)?\b", said)


def test_every_entry_says_where_it_was_read():
    """Catches a model without a source, a source without a commit, a name given twice."""
    names = [model["name"] for model in ATLAS["models"]]
    assert len(set(names)) == len(names)
    for model in ATLAS["models"]:
        assert model["source"]
        for source in model["source"]:
            assert re.fullmatch(SOURCES[model["kind"]], source), (model["name"], source)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", ATLAS["read"])


def test_every_kind_of_layer_that_rotates_has_its_row():
    """Catches an entry that forgets one of its kinds of layers, or names one that stands still."""
    for model in ATLAS["models"]:
        inner = model["config"].get("text_config", model["config"])
        family = FAMILIES[inner["model_type"]]
        kinds = set(inner.get("layer_types", family.labels)) - set(family.still)
        assert set(model.get("layers", [])) == kinds, model["name"]


@pytest.mark.equation("eq-softmax-scale")
@pytest.mark.parametrize("factor", (1.0, 1.5, 40.0, 64.0))
@pytest.mark.parametrize("mscale", (0.5, 0.707, 1.0))
@pytest.mark.parametrize("all_dim", (0.707, 1.0, 2.0))
@pytest.mark.parametrize("widths", ((128, 64), (64, 32)))
def test_deepseek_puts_the_square_into_the_softmax_scale(factor, mscale, all_dim, widths):
    """Catches a factor unsquared, mscale for mscale_all_dim, 64 for 192 channels, log2 for ln."""
    rope = rope_from_config(
        {
            "model_type": "deepseek_v3",
            "qk_nope_head_dim": widths[0],
            "qk_rope_head_dim": widths[1],
            "rope_scaling": {
                "type": "yarn",
                "factor": factor,
                "original_max_position_embeddings": 4096,
                "mscale": mscale,
                "mscale_all_dim": all_dim,
            },
        }
    )
    with mpmath.workdps(40):
        one, other = (1 + mpmath.mpf(m) / 10 * mpmath.log(factor) for m in (mscale, all_dim))
        scale, on_cosines = other**2 / mpmath.sqrt(sum(widths)), one / other
    assert rope.softmax_scale == pytest.approx(float(scale), rel=1e-14)
    assert rope.frequencies.attention_factor == pytest.approx(float(on_cosines), rel=1e-14)


@pytest.mark.equation("eq-softmax-scale")
def test_the_two_published_scales():
    """V2 and V3 differ in one key: 0.707 squared into the scale, or 1."""
    for name, right in (("DeepSeek-V2-Lite", 0.114721), ("DeepSeek-V3", 0.135234)):
        _, rope = deep(name)
        assert rope.softmax_scale == pytest.approx(right, abs=5e-7)
        assert (rope.rotary_start, rope.rotary_dim, rope.interleaved) == (128, 64, True)


def test_transformers_is_not_imported_by_the_chapter():
    """The page needs no library but the book's: its numbers are compared elsewhere."""
    page = Path(__file__).parents[2] / "book/5-context/models.ipynb"
    code = [cell["source"] for cell in json.loads(page.read_text())["cells"]]
    imported = re.findall(r"^\s*(?:import|from) (\w+)", "\n".join(map("".join, code)), re.MULTILINE)
    known = {"posenc", "numpy", "matplotlib", *sys.stdlib_module_names}
    assert set(imported) <= known
