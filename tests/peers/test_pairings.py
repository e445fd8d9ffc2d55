"""What the book says of published models, asked of the models once more."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from survey_pairings import (
    MODELS,
    POSITION,
    TOKENS,
    Caught,
    order_of,
    queries,
    small_model,
    survey,
)
from transformers.models.deepseek_v32 import modeling_deepseek_v32

STORED = json.loads((Path(__file__).parents[2] / "book/data/pairings.json").read_text())


@pytest.mark.parametrize("kind", sorted(MODELS))
def test_a_stored_row_is_what_the_model_does(kind):
    """Kind A. Catches a row typed from memory, and a model that has changed since."""
    assert STORED["models"][kind] == survey(kind)


def test_the_stored_survey_is_of_the_pinned_library_and_complete():
    """Catches rows of models that are no longer asked, and a version left behind."""
    assert STORED["transformers"] == transformers.__version__
    assert list(STORED["models"]) == sorted(MODELS)


def test_a_pairing_belongs_to_a_module(monkeypatch):
    """Kind A. DeepSeek-V3.2: neighbours turn in attention, halves in the indexer beside it."""
    model = small_model("deepseek_v32")
    caught = []
    turn = modeling_deepseek_v32.apply_rotary_pos_emb

    def recording(q, k, *tables, **options):
        turned = turn(q, k, *tables, **options)
        caught.append((q, turned[0]))
        return turned

    monkeypatch.setattr(modeling_deepseek_v32, "apply_rotary_pos_emb", recording)
    ids = torch.arange(TOKENS)[None]
    with torch.no_grad(), pytest.raises(Caught):
        model(input_ids=ids, position_ids=torch.full_like(ids, POSITION), use_cache=False)
    ((before, after),) = caught
    sides = (y.reshape(-1, y.shape[-1]).numpy() for y in (before, after))
    rotation = np.linalg.lstsq(*sides, rcond=None)[0].T
    partner = np.abs(rotation[0, 1:]).argmax() + 1
    assert partner == len(rotation) // 2
    assert abs(rotation[0, partner] + math.sin(POSITION)) < 1e-5
    assert survey("deepseek_v32")["interleaved"]


def test_an_output_in_another_order_is_no_other_pairing():
    """Kind A. DeepSeek-V3 reads neighbours and hands on halves: the book's third listing."""
    order = order_of(*queries(small_model("deepseek_v3"), 0))
    passed, turned = order[:128], order[128:]
    assert (passed == np.arange(128)).all()
    assert (turned == 128 + np.r_[0:64:2, 1:64:2]).all()
