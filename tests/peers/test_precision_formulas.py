"""The formulas of the chapter on precision are those of the installed libraries, bit for bit."""

import ast
import importlib
import math
from importlib.util import find_spec
from pathlib import Path

import pytest
import rotary_embedding_torch
import torch
from transformers import LlamaConfig
from transformers.models.gptj.modeling_gptj import create_sinusoidal_positions
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
from x_transformers import x_transformers

from posenc import frequencies, rope_tables
from posenc.lab import notebooks

CHAPTER = Path(__file__).parents[2] / "book/6-machines/precision.ipynb"
SIZES = pytest.mark.parametrize(
    ("dim", "base"), ((64, 10000), (128, 10000.0), (128, 500000.0), (256, 1e6), (512, 10000))
)
PLACES = torch.tensor([0, 1, 255, 256, 257, 4095, 14279, 131071, 10**7, 2**24 + 1, 2**31])


@pytest.fixture(scope="module")
def formulas():
    """Return the functions that the chapter's cells define, by name."""
    found = {"torch": torch, "math": math}
    for cell in notebooks.read(CHAPTER).cells:
        if cell.cell_type == "code":
            for node in ast.parse(cell.source).body:
                if isinstance(node, ast.FunctionDef):
                    exec(ast.unparse(node), found)
    return found


def llama_module(dim, base):
    """Return transformers' module for heads of this size."""
    config = LlamaConfig(hidden_size=dim, num_attention_heads=1, head_dim=dim)
    config.rope_parameters["rope_theta"] = base
    return LlamaRotaryEmbedding(config)


@SIZES
def test_llama(formulas, dim, base):
    """Catches angles of another formula than transformers', and autocast reaching into them."""
    module, angle = llama_module(dim, base), formulas["llama"](PLACES, dim, base)
    for autocast in (False, True):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            cos, sin = module(torch.zeros(1), PLACES[None])
        assert torch.equal(cos[0], torch.cat([angle, angle], -1).cos())
        assert torch.equal(sin[0], torch.cat([angle, angle], -1).sin())


@SIZES
def test_llama_cast_to_bfloat16(formulas, dim, base):
    """Catches a cast that transformers would undo: its buffer is cast, and stays so."""
    module = llama_module(dim, base).to(torch.bfloat16)
    assert module.inv_freq.dtype == torch.bfloat16
    cos, _ = module(torch.zeros(1), PLACES[None])
    angle = formulas["to_bf16"](PLACES, dim, base)
    assert torch.equal(cos[0, :, : dim // 2], angle.cos())
    assert (angle - formulas["llama"](PLACES, dim, base)).abs().max() > 1


@pytest.mark.parametrize("dim", (64, 128, 256))
def test_gptj(formulas, dim):
    """Catches another formula than that of GPT-J's table."""
    angle = formulas["gptj"](torch.arange(5000), dim, 10000)
    theirs = create_sinusoidal_positions(5000, dim)
    assert torch.equal(theirs, torch.cat([angle.sin(), angle.cos()], 1))


@SIZES
def test_torchtune(formulas, dim, base):
    """Catches another formula than torchtune's; without it, than the products it forms."""
    angle = formulas["torchtune"](torch.arange(5000), dim, base)
    if find_spec("torchtune"):
        module = importlib.import_module("torchtune.modules.position_embeddings")
        rope = module.RotaryPositionalEmbeddings(dim, 5000, base)
        rope.rope_init()
        assert torch.equal(rope.cache, torch.stack([angle.cos(), angle.sin()], -1))
    exponent = torch.arange(0, dim, 2).float() / dim
    assert torch.equal(angle, torch.outer(torch.arange(5000.0), 1.0 / base**exponent))


@SIZES
def test_rotary_embedding_torch(formulas, dim, base):
    """Catches another formula, and positions in another format than that of the query."""
    rope = rotary_embedding_torch.RotaryEmbedding(dim, theta=base, cache_if_possible=False)
    formula = formulas["rotary_embedding_torch"]
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        count = torch.arange(3000)
        at = rope.get_seq_pos(3000, dtype=dtype)
        assert torch.equal(rope(at)[:, ::2], formula(count, dim, base, dtype))
        q = torch.tensor([1.0, 0.0]).to(dtype).repeat(1, 1, 3000, dim // 2)
        turned = rope.rotate_queries_or_keys(q)[0, 0]
        angle = formula(count, dim, base, dtype)
        assert torch.equal(turned[:, ::2], angle.cos().to(dtype))
        assert torch.equal(turned[:, 1::2], angle.sin().to(dtype))


@SIZES
def test_x_transformers(formulas, dim, base):
    """Catches another formula than theirs, and autocast reaching into it."""
    rope = x_transformers.RotaryEmbedding(dim, base=base)
    angle = formulas["x_transformers"](PLACES, dim, base)
    for autocast in (False, True):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            theirs, scale = rope(PLACES)
        assert scale == 1
        assert torch.equal(theirs[0, :, ::2], angle)


def test_torchs_operator_forms_no_angles_and_computes_in_the_format_of_its_tables():
    """Catches an operator that would widen bfloat16 tables, which the chapter says it does not."""
    cos, sin = (t.bfloat16() for t in rope_tables(range(50), frequencies(32), device="cpu"))
    x = torch.randn(1, 1, 50, 32, generator=torch.Generator().manual_seed(0)).bfloat16()
    theirs = torch.onnx.ops.rotary_embedding(x, cos[None], sin[None], interleaved=True)[0, 0]
    a, b = x[0, 0, :, ::2], x[0, 0, :, 1::2]
    assert torch.equal(theirs[:, ::2], cos * a - sin * b)
    assert torch.equal(theirs[:, 1::2], sin * a + cos * b)


def test_the_tutorials_exponential_rounds_elsewhere(formulas):
    """Catches a sixth formula that is the other five in disguise, or that is wrong."""
    p = torch.arange(0, 4096)
    one, other = (formulas[name](p, 128, 10000.0) for name in ("tutorial", "llama"))
    assert not torch.equal(one, other)
    assert (one - other).abs().max() < 1e-3
