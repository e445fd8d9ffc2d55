"""The laboratory's decoder and its plugs, held to a slow model written out in NumPy."""

import math

import numpy as np
import pytest
import torch

from posenc import alibi_slopes, frequencies
from posenc.lab.attention import attention, causal_mask
from posenc.lab.plugs import ENCODINGS, rescaled
from posenc.lab.transformer import Decoder

T, DIM, HEADS = 9, 16, 2


def tokens(batch=3, length=T, symbols=7):
    return torch.randint(symbols, (batch, length), generator=torch.Generator().manual_seed(5))


def decoder(name, **options):
    sizes = {"dim": DIM, "n_heads": HEADS, "n_layers": 2, "rows": 32, "seed": 3} | options
    return Decoder(7, name, **sizes).double()


def layer_norm(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def gelu(x):
    return x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def slow(model, name, row):
    """Scores of one text, [T, symbols], by loops over heads in float64."""
    weights = {key: value.detach().numpy() for key, value in model.state_dict().items()}
    p, d_k = np.arange(len(row)), DIM // HEADS
    x = weights["embedding.weight"][row]
    angles = p[:, None] * 10000.0 ** (-2 * np.arange(DIM // 2) / DIM)
    added = {
        "sinusoidal": lambda: np.stack([np.sin(angles), np.cos(angles)], -1).reshape(len(p), DIM),
        "learned": lambda: weights["encoding.table.weight"][p],
        "index": lambda: p[:, None] * weights["encoding.direction"],
        "normalised": lambda: p[:, None] / p[-1] * weights["encoding.direction"],
    }
    x = x + added.get(name, lambda: 0.0)()
    for layer in range(2):
        of = {key: weights[f"blocks.{layer}.{key}.weight"] for key in ("qkv", "out", "up", "down")}
        heads = of["qkv"].reshape(3, HEADS, d_k, DIM)  # which, head, channel, input
        found = []
        for head in range(HEADS):
            w_q, w_k, w_v = (heads[which, head].T for which in range(3))
            z = layer_norm(x)
            if name == "rope":
                turn = np.exp(1j * p[:, None] * 10000.0 ** (-2 * np.arange(d_k // 2) / d_k))
                hands = [(z @ w)[:, : d_k // 2] + 1j * (z @ w)[:, d_k // 2 :] for w in (w_q, w_k)]
                q, k = (np.hstack([(h * turn).real, (h * turn).imag]) for h in hands)
                scores = np.where(causal_mask(len(p)), q @ k.T / math.sqrt(d_k), -np.inf)
                e = np.exp(scores - scores.max(-1, keepdims=True))
                found.append(e / e.sum(-1, keepdims=True) @ z @ w_v)
                continue
            bias = -alibi_slopes(HEADS)[head] * (p[:, None] - p) if name == "alibi" else None
            found.append(attention(z, w_q, w_k, w_v, bias=bias, mask=causal_mask(len(p)))[0])
        x = x + np.hstack(found) @ of["out"].T
        x = x + gelu(layer_norm(x) @ of["up"].T) @ of["down"].T
    return layer_norm(x) @ weights["head.weight"].T


@pytest.mark.parametrize("name", ENCODINGS)
def test_the_decoder_is_the_slow_one(name):
    """Catches a lost scale, mask or norm, heads cut wrongly, and an encoding in the wrong place."""
    model, text = decoder(name), tokens()
    ours = model(text).detach().numpy()
    for row, got in zip(text.numpy(), ours, strict=True):
        assert abs(slow(model, name, row) - got).max() < 1e-10


@pytest.mark.parametrize("name", ENCODINGS)
def test_later_tokens_change_nothing_before_them(name):
    """Catches a mask that lets a model read its answers."""
    model, text = decoder(name), tokens()
    other = text.clone()
    other[:, 5:] = (text[:, 5:] + 1) % 7
    before, after = model(text), model(other)
    assert torch.allclose(before[:, :5], after[:, :5], atol=1e-12)
    assert not torch.allclose(before[:, 5:], after[:, 5:], atol=1e-3)


@pytest.mark.parametrize("name", [name for name in ENCODINGS if name != "normalised"])
@pytest.mark.parametrize("pieces", [(4, 1, 1, 3), (1,) * T, (8, 1)])
def test_read_from_a_cache_a_text_is_the_same(name, pieces):
    """Catches a cache that is turned again, or a mask aligned at the wrong corner."""
    model, text, cache, parts = decoder(name), tokens(), [], []
    for piece in text.split(pieces, dim=1):
        offset = sum(part.shape[1] for part in parts)
        parts.append(model(piece, offset=offset, cache=cache))
    assert torch.allclose(torch.cat(parts, 1), model(text), atol=1e-9)
    assert [pair[0].shape[-2] for pair in cache] == [T, T]


@pytest.mark.parametrize("name", ENCODINGS)
def test_only_what_is_relative_may_move(name):
    """Catches RoPE or ALiBi that see the absolute position, and waves that do not."""
    model, text = decoder(name, rows=32), tokens()
    moved = (model(text, offset=20) - model(text)).abs().max()
    assert (moved < 1e-9) == (name in ("none", "alibi", "rope"))


def test_models_of_one_seed_start_alike_whatever_their_encoding():
    """Catches a comparison of encodings that compares draws."""
    weights = [decoder(name).state_dict() for name in ENCODINGS]
    shared = [key for key in weights[0] if not key.startswith("encoding")]
    assert len(shared) > 10
    for other in weights[1:]:
        assert all(torch.equal(weights[0][key], other[key]) for key in shared)
    changed = decoder("none", seed=4).state_dict()
    assert not torch.equal(weights[0]["head.weight"], changed["head.weight"])


def test_drawing_weights_leaves_the_global_generator_alone():
    """Catches weights that depend on what was drawn before them."""
    before = torch.get_rng_state()
    Decoder(7, "learned", dim=DIM, n_heads=HEADS)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("name", ENCODINGS)
def test_gradients_reach_every_weight(name):
    """Catches an encoding that is not trained, or a detour that drops the gradient."""
    model = decoder(name)
    model(tokens(length=32)).square().mean().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())


@pytest.mark.parametrize("name", ENCODINGS)
def test_a_trace_holds_what_the_layers_saw(name):
    """Catches scores without their bias or turn, and a trace that changes the result."""
    model, text, trace = decoder(name), tokens(), []
    logits = model(text, trace=trace)
    assert torch.allclose(logits, model(text), atol=1e-12)
    assert [stream.shape for stream, _ in trace] == [(3, T, DIM)] * 3
    last = model.head(model.norm(trace[-1][0]))
    assert torch.allclose(logits, last)
    *_, v = model.blocks[1].heads(trace[1][0])
    seen = torch.ones(T, T).tril().bool()
    weights = trace[1][1].masked_fill(~seen, -math.inf).softmax(-1)
    again = model.blocks[1](trace[1][0], weights @ v)
    assert torch.allclose(again, trace[2][0], atol=1e-9)


@pytest.mark.parametrize("rule", ["plain", "linear", "ntk", "yarn"])
def test_at_factor_one_no_rule_changes_anything(rule):
    """Catches a rule that spoils the trained length."""
    same = rescaled(rule, 16, factor=1.0, trained=32)
    assert np.array_equal(same.omega, frequencies(16).omega)
    assert same.attention_factor == 1


def test_each_rule_does_what_it_says():
    """Catches rules exchanged, a blend upside down, and an exponent of the wrong length."""
    omega = frequencies(16).omega
    of = {rule: rescaled(rule, 16, factor=8.0, trained=64) for rule in ("linear", "ntk", "yarn")}
    assert np.allclose(of["linear"].omega, omega / 8, rtol=1e-15)
    stretch = omega / of["ntk"].omega
    assert stretch[0] == 1
    assert stretch[-1] == pytest.approx(8, rel=1e-12)
    assert (np.diff(stretch) > 0).all()
    turns = 64 * omega / (2 * np.pi)
    kept = omega / of["yarn"].omega
    assert (kept[turns >= 4] == 1).all()
    assert np.allclose(kept[turns <= 1], 8)
    middle = (turns > 1) & (turns < 4)
    assert middle.any()
    blend = (turns[middle] - 1) / 3
    assert np.allclose(1 / kept[middle], blend + (1 - blend) / 8)
    assert of["yarn"].attention_factor == pytest.approx(0.1 * math.log(8) + 1)
    usual = rescaled("yarn", 16, factor=8.0, trained=32, beta=32.0)
    assert (usual.omega < omega).all()  # in 32 tokens no hand makes 32 turns


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (
            lambda: Decoder(7, "rotary"),
            ValueError,
            "encoding must be 'none' or 'index' .* or 'rope', got 'rotary'",
        ),
        (
            lambda: decoder("learned")(tokens(length=33)),
            ValueError,
            r"positions must lie in 0 ... 31: the table has 32 rows.*got 32",
        ),
        (lambda: Decoder(7, "rope", dim=12), ValueError, "dim must be a multiple of 2 n_heads = 8"),
        (lambda: Decoder(0, "rope"), ValueError, "symbols must be at least 1, got 0"),
        (lambda: Decoder(7, "rope", rows=1.0), TypeError, "rows must be an integer, got float"),
        (
            lambda: rescaled("dynamic", 16, factor=2.0, trained=32),
            ValueError,
            "rule must be 'plain' or 'linear'",
        ),
        (
            lambda: rescaled("linear", 16, factor=0.5, trained=32),
            ValueError,
            "factor must be at least 1, got 0.5",
        ),
        (
            lambda: rescaled("yarn", 16, factor=2.0, trained=32, beta=0.5),
            ValueError,
            "beta_slow must be at most beta_fast, got 1.0 and 0.5",
        ),
    ],
)
def test_bad_input_gets_one_clear_sentence(call, error, sentence):
    """Catches an error from the inside, and an index out of range far from its cause."""
    with pytest.raises(error, match=sentence):
        call()
