"""The rules for longer texts against transformers, over parameters drawn at random.

``WAVES_EXAMPLES=10000 python -m pytest tests/peers/test_context_peers.py`` draws as many sets of
parameters for each type. Theirs are float32: bounds follow from its rounding, step by step.
"""

import math
import os

import numpy as np
import rotary_embedding_torch
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from posenc import context, frequencies

EXAMPLES = int(os.environ.get("WAVES_EXAMPLES", "60"))
MANY = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.filter_too_much]
)
EPS = 2.0**-24  # half an ulp of float32, relative
CONFIG = LlamaConfig(hidden_size=64, num_attention_heads=4)
SAID = {"base": "rope_theta"}

pairs = st.integers(1, 128)
bases = st.one_of(st.sampled_from([1e4, 5e5, 1e6]), st.floats(2.0, 1e9))
factors = st.one_of(st.sampled_from([1.0, 2, 4.0, 8, 32.0]), st.floats(1.0, 200.0))
lengths = st.one_of(st.sampled_from([2048, 4096, 8192, 32768]), st.integers(2, 2 * 10**6))
turns = st.floats(0.01, 200.0)


def theirs(kind, dim, *, seq_len=None, longest=None, **rule):
    """Frequencies and attention factor of transformers, for a head of that width."""
    CONFIG.head_dim = dim
    CONFIG.max_position_embeddings = longest or rule.get("original_max_position_embeddings", 4096)
    given = {SAID.get(name, name): value for name, value in rule.items() if value is not None}
    CONFIG.rope_parameters = {"rope_type": kind, **given}
    inv_freq, attention_factor = ROPE_INIT_FUNCTIONS[kind](CONFIG, "cpu", seq_len=seq_len)
    assert inv_freq.dtype == torch.float32
    return inv_freq.double().numpy(), attention_factor


def rounding(base):
    """Relative error of base**(-2i/d) in float32: of the exponent, the power and two quotients."""
    return (math.log(base) + 10) * EPS


def agree(found, ours, bound, kind):
    """Whether frequencies differ by the bound, absolute, and factors by float64's rounding."""
    omega, attention_factor = found
    assert omega.shape == ours.omega.shape
    assert (np.abs(omega - ours.omega) <= bound).all(), kind
    assert math.isclose(attention_factor, ours.attention_factor, rel_tol=1e-15)


def test_every_type_of_theirs_is_compared():
    """Catches a type that a new release of transformers brings, and nobody compares."""
    assert sorted(ROPE_INIT_FUNCTIONS) == sorted(
        ["linear", "dynamic", "yarn", "longrope", "llama3", "proportional"]
    )


@MANY
@given(half=pairs, base=bases, factor=factors)
def test_linear(half, base, factor):
    """Catches a factor that multiplies, or scales the base."""
    rule = {"base": base, "factor": factor}
    ours = context.linear(2 * half, **rule)
    agree(theirs("linear", 2 * half, **rule), ours, rounding(base) * ours.omega, "linear")


@MANY
@given(half=pairs, base=bases, factor=factors, trained=lengths, seq_len=lengths)
def test_dynamic(half, base, factor, trained, seq_len):
    """Kind E. Catches another clamp, or another length in the quotient."""
    assume(half > 1)
    rule = {"base": base, "factor": factor}
    ours = context.dynamic(
        2 * half, **rule, original_max_position_embeddings=trained, seq_len=seq_len
    )
    found = theirs("dynamic", 2 * half, **rule, seq_len=seq_len, longest=trained)
    larger = ours.omega[1] ** -half  # the base that it comes to
    agree(found, ours, rounding(larger) * ours.omega, "dynamic")


def deployed_range(dim, rule):
    """The ends of the ramp in float64, as they compute it, and whether rounding decides them."""
    low, high = (
        dim
        * math.log(rule["original_max_position_embeddings"] / (n * 2 * math.pi))
        / (2 * math.log(rule["base"]))
        for n in (rule["beta_fast"], rule["beta_slow"])
    )
    close = min(abs(low - round(low)), abs(high - round(high))) < 1e-9
    if rule["truncate"]:
        return math.floor(low), math.ceil(high), close
    return low, high, False


@MANY
@given(
    half=pairs,
    base=bases,
    factor=factors,
    trained=lengths,
    betas=st.one_of(st.just([1.0, 32.0]), st.tuples(turns, turns).map(sorted)),
    truncate=st.booleans(),
    mscale=st.one_of(st.none(), st.floats(0, 2)),
    mscale_all_dim=st.one_of(st.none(), st.floats(0, 2)),
    attention_factor=st.one_of(st.none(), st.none(), st.floats(0.1, 3)),
)
def test_yarn(
    half, base, factor, trained, betas, truncate, mscale, mscale_all_dim, attention_factor
):
    """Kind E. Catches the ramp's ends, bound and direction, and every way to the factor.

    One reading differs, and is told: where clamped ends cross, theirs turns the ramp round.
    """
    rule = {"base": base, "factor": factor, "original_max_position_embeddings": trained}
    rule |= {"beta_slow": betas[0], "beta_fast": betas[1], "truncate": truncate}
    low, high, undecided = deployed_range(2 * half, rule)
    assume(not undecided)
    rule |= {"mscale": mscale, "mscale_all_dim": mscale_all_dim}
    rule["attention_factor"] = attention_factor
    ours, found = context.yarn(2 * half, **rule), theirs("yarn", 2 * half, **rule)
    unscaled = frequencies(2 * half, base).omega
    if high < 0 or low > 2 * half - 1:
        kept, slowed = (unscaled, unscaled / factor)[:: -1 if high < 0 else 1]
        np.testing.assert_allclose(ours.omega, kept, rtol=1e-14)
        bound = rounding(base) * unscaled
        assert (np.abs(found[0] - slowed) <= bound).all()
        return
    low, high = max(low, 0), min(high, 2 * half - 1)
    width = high - low or 0.001
    ramp = 4 * EPS * (np.arange(half) + abs(low) + 1) / width
    ramp = np.where((np.arange(half) - low < -1e-3) | (np.arange(half) - high > 1e-2), 0, ramp)
    agree(found, ours, rounding(base) * ours.omega + np.minimum(ramp, 1) * unscaled, "yarn")


@MANY
@given(
    lists=st.integers(1, 64).flatmap(
        lambda n: st.tuples(*[st.lists(st.floats(0.5, 100.0), min_size=n, max_size=n)] * 2)
    ),
    base=bases,
    trained=lengths,
    seq_len=st.one_of(st.none(), lengths),
    factor=st.one_of(st.none(), factors),
    stretched=factors,
    attention_factor=st.one_of(st.none(), st.floats(0.1, 3)),
)
def test_longrope(lists, base, trained, seq_len, factor, stretched, attention_factor):
    """Kind E. Catches the lists exchanged, and another factor than that of the two lengths."""
    rule = {"base": base, "short_factor": lists[0], "long_factor": lists[1]}
    rule |= {"original_max_position_embeddings": trained, "attention_factor": attention_factor}
    longest = int(trained * stretched)
    dim = 2 * len(lists[0])
    found = theirs("longrope", dim, **rule, factor=factor, seq_len=seq_len, longest=longest)
    ours = context.longrope(
        dim, **rule, factor=factor or longest / trained, seq_len=seq_len or trained
    )
    agree(found, ours, rounding(base) * ours.omega, "longrope")


@MANY
@given(
    half=pairs,
    base=bases,
    factor=factors,
    trained=lengths,
    bands=st.one_of(
        st.sampled_from([[1.0, 4.0], [1, 1]]),
        st.tuples(turns, turns).map(sorted),
        turns.map(lambda n: [n, n]),
    ),
)
def test_llama3(half, base, factor, trained, bands):
    """Catches bands exchanged, wavelengths in radians, and NaN where no band lies between."""
    rule = {"base": base, "factor": factor, "original_max_position_embeddings": trained}
    rule |= {"low_freq_factor": bands[0], "high_freq_factor": bands[1]}
    ours, found = context.llama3(2 * half, **rule), theirs("llama3", 2 * half, **rule)
    unscaled = frequencies(2 * half, base).omega
    turning = trained * unscaled / (2 * math.pi)
    error = (rounding(base) + 4 * EPS) * turning  # of theirs, in turns
    smooth = np.full_like(error, 1.0)
    if bands[1] > bands[0]:
        smooth = np.minimum(error / (bands[1] - bands[0]), 1)
    inside = (turning >= bands[0] - error) & (turning <= bands[1] + error)
    bound = rounding(base) * unscaled + np.where(inside, smooth * unscaled, 0)
    agree(found, ours, bound, "llama3")


@MANY
@given(
    half=pairs,
    base=bases,
    proportion=st.one_of(st.integers(1, 100).map(lambda n: n / 100), st.floats(0.01, 1.0)),
    factor=factors,
)
def test_proportional(half, base, proportion, factor):
    """Kind F. Catches exponents over the rotated width; theirs may cut a product short, as told."""
    product = proportion * 2 * half
    short = abs(product - round(product))
    assume(product >= 2 and (short > 2e-6 or short < 1e-9))
    rule = {"base": base, "partial_rotary_factor": proportion, "factor": factor}
    omega, attention_factor = theirs("proportional", 2 * half, **rule)
    ours = context.proportional(2 * half, **rule)
    cut = np.count_nonzero(ours.omega) - np.count_nonzero(omega)
    if cut:
        assert cut == 1
        assert product < round(product) < product + 1e-6
        omega[np.count_nonzero(omega)] = ours.omega[np.count_nonzero(omega)]
    agree((omega, attention_factor), ours, rounding(base) * ours.omega, "proportional")


def test_their_module_keeps_a_grown_base_that_ours_never_has():
    """Kind E. Catches a rule that remembers: theirs is reset below the trained length only."""
    config = LlamaConfig(
        head_dim=128,
        max_position_embeddings=2048,
        rope_parameters={"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0},
    )
    rope = LlamaRotaryEmbedding(config)
    rule = {"base": 10000.0, "factor": 2.0, "original_max_position_embeddings": 2048}
    grown = context.dynamic(128, **rule, seq_len=8192).omega
    for seq_len, remembered in ((8192, False), (2048, True), (100, False)):
        rope(torch.zeros(1, 1, 1), torch.arange(seq_len)[None])
        ours = context.dynamic(128, **rule, seq_len=seq_len).omega
        right = grown if remembered else ours
        np.testing.assert_allclose(rope.inv_freq.double(), right, rtol=rounding(72196.0))
        assert (ours == grown).all() == (seq_len == 8192)


@settings(max_examples=min(EXAMPLES, 200), deadline=None)
@given(half=st.integers(2, 64), base=st.floats(2.0, 1e6), factor=factors)
def test_ntk_of_rotary_embedding_torch(half, base, factor):
    """Catches another exponent than d/(d-2), which transformers has no type for."""
    rope = rotary_embedding_torch.RotaryEmbedding(2 * half, theta=base, theta_rescale_factor=factor)
    ours = context.ntk(2 * half, base=base, factor=factor)
    found = rope.freqs.detach().double().numpy()
    assert (np.abs(found - ours.omega) <= rounding(base * factor**2) * ours.omega).all()
