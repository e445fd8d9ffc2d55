"""The rules for longer texts: golden values, mpmath, and what must hold for any parameters."""

import json
import math
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import mpmath
import numpy as np
import oracle
import oracle_rules
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from posenc import Frequencies, apply_rope, context, frequencies, rope_tables, wavelengths

GOLDEN = json.loads(Path(__file__).with_name("golden.json").read_text())["context"]
LLAMA_2 = {"base": 10000.0, "original_max_position_embeddings": 4096}
LLAMA_3_1 = {
    "base": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
SOME = settings(max_examples=60, deadline=None)

dims = st.integers(2, 40).map(lambda pairs: 2 * pairs)
bases = st.floats(1.01, 1e9)
factors = st.floats(1.0, 200.0)
lengths = st.integers(1, 10**6)
turns = st.floats(0.01, 200.0)


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden["id"])
def test_golden_rules(golden):
    """Kinds E and F. Catches another exponent, bound, list or factor than the published one."""
    dim, parameters = golden["dim"], golden["parameters"]
    f = getattr(context, golden["rule"])(dim, **parameters)
    assert len(f) == dim // 2
    if "omega" in golden:
        np.testing.assert_allclose(f.omega, golden["omega"], rtol=1e-9)
    if "implied_base" in golden:
        right = [golden["implied_base"] ** (-2 * i / dim) for i in range(dim // 2)]
        np.testing.assert_allclose(f.omega, right, rtol=1e-9)
    for pair, ratio in golden.get("ratios", []):
        unscaled = parameters["base"] ** (-2 * pair / dim)
        assert math.isclose(f.omega[pair] / unscaled, ratio, rel_tol=1e-9)
    assert abs(f.attention_factor - golden.get("attention_factor", 1.0)) < 1e-9


def held(f, right):
    """Whether every frequency is the right one to the last of 128 bits, and of 53."""
    assert f.omega.tolist() == [float(w) for w in right]
    for omega, (high, low) in zip(right, f.turns.tolist(), strict=True):
        assert oracle.turn_error(omega, high, low) <= 0.5000001


@pytest.mark.equation("eq-linear", "eq-ntk")
@SOME
@given(dim=dims, base=bases, factor=factors)
def test_linear_and_ntk_are_the_formulas_to_the_last_bit(dim, base, factor):
    """Catches float64 on the way, d for d - 2, and a base scaled by the factor itself."""
    for name in ("linear", "ntk"):
        rule = {"base": base, "factor": factor}
        held(getattr(context, name)(dim, **rule), getattr(oracle_rules, name)(dim, **rule))


@pytest.mark.equation("eq-dynamic")
@SOME
@given(dim=dims, base=bases, factor=factors, trained=lengths, seq_len=lengths)
def test_dynamic_is_the_formula_to_the_last_bit(dim, base, factor, trained, seq_len):
    """Catches a length that is not clamped, and a factor that does not multiply the length."""
    rule = {"base": base, "factor": factor, "seq_len": seq_len}
    rule["original_max_position_embeddings"] = trained
    held(context.dynamic(dim, **rule), oracle_rules.dynamic(dim, **rule))


@pytest.mark.equation("eq-yarn", "eq-yarn-paper")
@SOME
@given(
    dim=dims,
    base=bases,
    factor=factors,
    trained=lengths,
    betas=st.tuples(turns, turns).map(sorted),
    truncate=st.booleans(),
)
def test_both_yarns_are_the_formulas_to_the_last_bit(dim, base, factor, trained, betas, truncate):
    """Catches a ramp with another bound, from another index, or rounded where it must not be."""
    rule = {"base": base, "factor": factor, "original_max_position_embeddings": trained}
    rule |= {"beta_slow": betas[0], "beta_fast": betas[1]}
    held(context.yarn_paper(dim, **rule), oracle_rules.yarn_paper(dim, **rule))
    f = context.yarn(dim, **rule, truncate=truncate)
    held(f, oracle_rules.yarn(dim, **rule, truncate=truncate))
    assert f.attention_factor == float(oracle_rules.temperature(factor))


@pytest.mark.equation("eq-yarn-temperature")
@SOME
@given(factor=factors, one=st.floats(0.0, 2.0), other=st.floats(0.0, 2.0))
def test_coefficients_divide(factor, one, other):
    """Kind E. Catches mscale and mscale_all_dim exchanged, multiplied, or one of them alone."""
    f = context.yarn(8, **LLAMA_2, factor=factor, mscale=one, mscale_all_dim=other)
    g = oracle_rules.temperature
    with mpmath.workdps(oracle.DIGITS):
        right = g(factor, one) / g(factor, other) if one and other else g(factor)
    assert f.attention_factor == float(right)
    for alone in ({"mscale": one}, {"mscale_all_dim": one}, {}):
        f = context.yarn(8, **LLAMA_2, factor=factor, **alone)
        assert f.attention_factor == float(g(factor))


@pytest.mark.equation("eq-longrope")
@SOME
@given(
    base=bases,
    lists=st.integers(1, 20).flatmap(
        lambda n: st.lists(
            st.lists(st.floats(0.1, 100.0), min_size=n, max_size=n), min_size=2, max_size=2
        )
    ),
    trained=st.integers(2, 10**5),
    seq_len=lengths,
    factor=factors,
)
def test_longrope_is_the_formula_to_the_last_bit(base, lists, trained, seq_len, factor):
    """Kind E. Catches one list for both, a list multiplied, and a factor that scales again."""
    rule = {"base": base, "short_factor": lists[0], "long_factor": lists[1], "seq_len": seq_len}
    rule |= {"original_max_position_embeddings": trained, "factor": factor}
    dim = 2 * len(lists[0])
    f = context.longrope(dim, **rule)
    held(f, oracle_rules.longrope(dim, **rule))
    with mpmath.workdps(oracle.DIGITS):
        right = mpmath.sqrt(1 + mpmath.log(factor) / mpmath.log(trained))
    assert f.attention_factor == float(right)
    assert context.longrope(dim, **rule, attention_factor=1.25).attention_factor == 1.25


@pytest.mark.equation("eq-llama3")
@SOME
@given(
    dim=dims,
    base=bases,
    factor=factors,
    trained=lengths,
    bands=st.tuples(turns, turns).map(sorted),
)
def test_llama3_is_the_formula_to_the_last_bit(dim, base, factor, trained, bands):
    """Catches wavelengths in radians, bands exchanged, and a ramp the other way round."""
    rule = {"base": base, "factor": factor, "original_max_position_embeddings": trained}
    rule |= {"low_freq_factor": bands[0], "high_freq_factor": bands[1]}
    held(context.llama3(dim, **rule), oracle_rules.llama3(dim, **rule))


@pytest.mark.equation("eq-proportional")
@SOME
@given(dim=dims, base=bases, proportion=st.floats(0.51, 1.0), factor=factors)
def test_proportional_is_the_formula_to_the_last_bit(dim, base, proportion, factor):
    """Kind F. Catches exponents over the rotated width, and a list of that width only."""
    rule = {"base": base, "partial_rotary_factor": proportion, "factor": factor}
    held(context.proportional(dim, **rule), oracle_rules.proportional(dim, **rule))


@pytest.mark.parametrize("least", (5e-324, 1e-300, 1e300))
def test_divisors_of_any_size_leave_every_bit_right(least):
    """Catches a fixed number of digits after the point: a tiny divisor lifts the digits below."""
    rule = {"base": 3.0, "short_factor": [1.0, least, 1.0], "attention_factor": 1.0, "seq_len": 1}
    rule |= {"original_max_position_embeddings": 2, "long_factor": [1.0] * 3}
    with mpmath.workdps(500):
        omega = 1 / (mpmath.mpf(least) * mpmath.mpf(3) ** (mpmath.mpf(1) / 3))
    if least < 1e-308:
        with pytest.raises(ValueError, match="omega must be finite in float64"):
            context.longrope(6, **rule)
        return
    high, low = context.longrope(6, **rule).turns[1].tolist()
    assert oracle.turn_error(omega, high, low) <= 0.5000001


@pytest.mark.equation("eq-rescaling")
@pytest.mark.parametrize("dim", (4, 64, 128))
@pytest.mark.parametrize("base", (10000, 500000.0))
def test_a_factor_of_one_changes_nothing(dim, base):
    """Catches a rule that scales at its neutral point, or rounds once more than the default."""
    unscaled, length = frequencies(dim, base), {"original_max_position_embeddings": 4096}
    rule, ones = {"base": base, "factor": 1}, [1] * (dim // 2)
    lists = {"short_factor": ones, "long_factor": ones}
    same = [
        context.linear(dim, **rule),
        context.ntk(dim, **rule),
        context.yarn(dim, **rule, **length),
        context.yarn(dim, **rule, **length, truncate=False, mscale=0.7, mscale_all_dim=0.3),
        context.yarn_paper(dim, **rule, **length),
        context.llama3(dim, **rule, **length, low_freq_factor=1, high_freq_factor=4),
        context.proportional(dim, base=base, partial_rotary_factor=1),
        context.longrope(dim, **rule, **length, **lists, seq_len=9999),
        context.dynamic(dim, **rule, **length, seq_len=4096),
        context.dynamic(dim, base=base, factor=8, **length, seq_len=1),
    ]
    for f in same:
        assert f == unscaled
        assert f.omega.tolist() == unscaled.omega.tolist()


@pytest.mark.equation("eq-ntk")
def test_ntk_keeps_the_first_hand_and_slows_the_last_by_the_factor():
    """Catches an exponent that is d/(d-2) of something else: the two ends fix it."""
    for dim, factor in ((4, 4.0), (64, 3.7), (128, 32.0)):
        f = context.ntk(dim, base=10000.0, factor=factor)
        slow = context.linear(dim, base=10000.0, factor=factor)
        assert f.turns[0].tolist() == frequencies(dim).turns[0].tolist()
        assert f.turns[-1].tolist() == slow.turns[-1].tolist()


def test_dynamic_remembers_nothing():
    """Kind E. Catches a base that stays grown, one that never grows, and NaN below the length."""
    rule = {"base": 10000.0, "factor": 2.0, "original_max_position_embeddings": 2048}
    grown = context.dynamic(128, **rule, seq_len=8192)
    for seq_len in (8192, 2048, 100, 1, 8192, 1025):
        f = context.dynamic(128, **rule, seq_len=seq_len)
        assert f == (grown if seq_len == 8192 else frequencies(128))
        assert np.isfinite(f.omega).all()


def test_dynamic_at_factor_one_is_the_papers():
    """Catches a factor that multiplies L/L0 once too often: the base grows by L/L0 alone."""
    f = context.dynamic(64, **LLAMA_2, factor=1, seq_len=10240)
    assert f == context.ntk(64, base=10000.0, factor=2.5)


@pytest.mark.equation("eq-yarn-ramp")
@pytest.mark.parametrize(
    ("length", "base", "low", "high"),
    [
        (4096, 1e4, 20, 46),
        (2048, 1e4, 16, 41),
        (16384, 1e4, 30, 55),
        (32768, 1e6, 23, 40),
        (8192, 5e5, 18, 35),
    ],
)
def test_yarn_keeps_fast_hands_and_slows_slow_ones(length, base, low, high):
    """Catches a ramp off by a pair: 21 pairs of Llama 2 are left alone, 18 fully slowed down.

    The first pair fully slowed down is half the critical dimension: 92, 82, 110, 70.
    """
    rule = {"base": base, "factor": 16.0}
    f = context.yarn(128, **rule, original_max_position_embeddings=length)
    kept, slowed = frequencies(128, base).turns, context.linear(128, **rule).turns
    same = lambda turns: np.flatnonzero((f.turns == turns).all(axis=1)).tolist()  # noqa: E731
    assert same(kept) == list(range(low + 1))
    assert same(slowed) == list(range(high, 64))
    assert (wavelengths(frequencies(128, base)) < length).sum() == high


def test_llama3_keeps_fast_hands_and_slows_slow_ones():
    """Catches a boundary at another wavelength: pairs 29 to 34 are between."""
    f, before = context.llama3(128, **LLAMA_3_1), frequencies(128, 500000.0)
    slowed = context.linear(128, base=500000.0, factor=8.0)
    assert f.turns[:29].tolist() == before.turns[:29].tolist()
    assert f.turns[35:].tolist() == slowed.turns[35:].tolist()
    spans = wavelengths(before)
    assert [round(float(spans[i]), 2) for i in (28, 29, 34, 35)] == [
        1956.5,
        2401.74,
        6695.11,
        8218.72,
    ]


@SOME
@given(
    dim=dims, base=bases, factor=factors, trained=lengths, bands=st.tuples(turns, turns).map(sorted)
)
def test_llama3_has_the_ramp_of_yarns_paper(dim, base, factor, trained, bands):
    """Catches two ramps that only look alike; the paper's sets the attention factor too."""
    rule = {"base": base, "factor": factor, "original_max_position_embeddings": trained}
    llama = context.llama3(dim, **rule, low_freq_factor=bands[0], high_freq_factor=bands[1])
    paper = context.yarn_paper(dim, **rule, beta_slow=bands[0], beta_fast=bands[1])
    assert llama.turns.tolist() == paper.turns.tolist()
    assert llama.attention_factor == 1.0
    assert paper.attention_factor == float(oracle_rules.temperature(factor))


def test_yarn_as_deployed_is_up_to_three_times_faster_than_its_paper():
    """Catches one of the two ramps taken for the other: pair 38 of 64, at 16 times the length."""
    ratio = context.yarn(128, **LLAMA_2, factor=16).omega
    ratio = ratio / context.yarn_paper(128, **LLAMA_2, factor=16).omega
    assert ratio.argmax() == 38
    assert round(float(ratio[38]), 2) == 3.04


@pytest.mark.equation("eq-rescaling")
@SOME
@given(
    dim=dims,
    base=bases,
    factors=st.tuples(factors, factors).map(sorted),
    trained=lengths,
    seq_len=lengths,
    truncate=st.booleans(),
)
def test_hands_stay_in_order_between_their_bounds(dim, base, factors, trained, seq_len, truncate):
    """Catches a ramp turned round: a slower hand loses more, and none more than the factor."""
    length = {"base": base, "original_max_position_embeddings": trained}
    bands = {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
    rules = (
        lambda s: context.linear(dim, base=base, factor=s),
        lambda s: context.ntk(dim, base=base, factor=s),
        lambda s: context.yarn(dim, **length, factor=s, truncate=truncate),
        lambda s: context.yarn_paper(dim, **length, factor=s),
        lambda s: context.llama3(dim, **length, **bands, factor=s),
    )
    unscaled = frequencies(dim, base).omega
    for rule in rules:
        less, more = (rule(s).omega / unscaled for s in factors)
        for h, s in ((less, factors[0]), (more, factors[1])):
            assert (np.diff(h) <= 1e-15).all()
            assert h[0] <= 1
            assert h[-1] >= 1 / s * (1 - 1e-15)
        assert (more <= less * (1 + 1e-15)).all()
    shorter, longer = (
        context.dynamic(dim, **length, factor=2.0, seq_len=n).omega for n in (seq_len, 2 * seq_len)
    )
    assert (longer <= shorter).all()


def test_a_ramp_whose_ends_cross_is_not_turned_round():
    """Catches the deployed formula where clamped bounds cross: it scales the other pairs."""
    rule = {"base": 10000.0, "factor": 4.0}
    slow = context.linear(8, **rule).turns.tolist()
    for length in (1, 4):
        f = context.yarn(8, **rule, original_max_position_embeddings=length, truncate=False)
        assert f.turns.tolist() == slow  # no pair makes a turn within four tokens
    f = context.yarn(8, **rule, original_max_position_embeddings=4)
    assert f.turns[1:].tolist() == slow[1:]
    assert f.omega[0] == 1  # rounded up, the ramp ends at pair 0: as deployed
    f = context.yarn(8, **rule, original_max_position_embeddings=1, beta_slow=32.0)
    assert f.turns.tolist() == slow
    rule["base"] = 10.0
    f = context.yarn(8, **rule, original_max_position_embeddings=10**6)
    assert f.turns.tolist() == frequencies(8, 10.0).turns.tolist()  # all make more than 32


def test_a_ramp_without_width_is_a_step():
    """Catches a division by zero where both ends fall on one index."""
    rule = {**LLAMA_2, "factor": 4.0, "beta_fast": 3.0, "beta_slow": 3.0}
    h = context.yarn(64, **rule, truncate=False).omega / frequencies(64).omega
    turning = 4096 / wavelengths(frequencies(64))
    np.testing.assert_allclose(h, np.where(turning > 3, 1, 0.25), rtol=1e-14)
    h = context.yarn_paper(64, **rule).omega / frequencies(64).omega
    np.testing.assert_allclose(h, np.where(turning > 3, 1, 0.25), rtol=1e-14)


def test_longrope_chooses_by_the_length_of_the_whole_text():
    """Kind E. Catches one list for all lengths, and the long one a token too early."""
    rule = {"base": 10000.0, "short_factor": (1.0, 2.0), "original_max_position_embeddings": 16}
    rule |= {"long_factor": np.array([3.0, 5.0]), "attention_factor": 1.5}
    short, long = Frequencies([1.0, 0.005]), Frequencies([1 / 3, 0.002])
    for seq_len in (16, 17, 3, 10**6, 1):
        f = context.longrope(4, **rule, seq_len=seq_len)
        np.testing.assert_allclose(f.omega, (long if seq_len > 16 else short).omega, rtol=1e-15)
        assert f.attention_factor == 1.5
    for same in ([3.0, 5.0], torch.tensor([3.0, 5.0]), np.float32([3, 5]), (3, 5)):
        again = context.longrope(4, **{**rule, "long_factor": same}, seq_len=17)
        assert again == context.longrope(4, **rule, seq_len=17)


def test_proportional_is_not_partial():
    """Kind F. Catches the exponent and the width of partial rotary embeddings."""
    f = context.proportional(512, base=1e6, partial_rotary_factor=0.25)
    assert len(f) == 256
    assert f.turns[:64].tolist() == frequencies(512, 1e6).turns[:64].tolist()
    assert not f.turns[64:].any()
    assert f.omega[1] != frequencies(128, 1e6).omega[1]
    assert np.isinf(wavelengths(f)[64:]).all()


@pytest.mark.parametrize(("dim", "p", "pairs"), [(100, 0.58, 29), (100, 0.29, 14), (52, 0.9, 23)])
def test_a_proportion_is_read_as_the_decimal_that_it_stands_for(dim, p, pairs):
    """Golden value T21. Catches .58 * 100 = 57.99999999999999 cut to 57 channels, 28 pairs."""
    f = context.proportional(dim, base=10000.0, partial_rotary_factor=p)
    assert np.count_nonzero(f.omega) == pairs


@pytest.mark.equation("eq-yarn-temperature")
def test_the_factor_reaches_cosines_and_sines_once():
    """Kind E. Catches an attention factor that is dropped, or squared before the logits are."""
    f = context.yarn(8, **LLAMA_2, factor=16.0)
    cos, sin = rope_tables([0, 7], f, dtype=np.float64)
    np.testing.assert_allclose(np.hypot(cos, sin), 1.2772588722239782, rtol=1e-15)
    q = np.random.default_rng(0).normal(size=(2, 8))
    turned = apply_rope(q, cos, sin, interleaved=True)
    logits = (turned**2).sum(-1) / (q**2).sum(-1)
    np.testing.assert_allclose(logits, 1.6313902267, rtol=1e-9)


@pytest.mark.parametrize("stated", (1.0, 1.4852030263919618, 2.5))
def test_a_stated_attention_factor_is_final(stated):
    """Kind E. Catches a stated factor that multiplies YaRN's own number, or the coefficients'."""
    rule = {"factor": 128.0, "attention_factor": stated}
    for others in ({}, {"mscale": 0.7}, {"mscale": 0.7, "mscale_all_dim": 1.0}):
        assert context.yarn(8, **LLAMA_2, **rule, **others).attention_factor == stated


def test_integers_and_floats_are_one_number():
    """Golden value T22. Catches a rule that depends on how JSON wrote its numbers."""
    whole = context.llama3(64, **{k: int(v) for k, v in LLAMA_3_1.items()})
    assert context.llama3(np.int64(64), **LLAMA_3_1) == whole
    narrow = {"base": np.float32(10000), "factor": torch.tensor(4)}
    assert context.ntk(64, **narrow) == context.ntk(64, base=10000, factor=4.0)


def test_callers_and_threads_disturb_no_rule():
    """Catches arithmetic in mpmath's global context, and a precision that threads share."""
    right, before = context.yarn(128, **LLAMA_2, factor=16.0), sys.getswitchinterval()
    with mpmath.workdps(5):
        assert context.yarn(128, **LLAMA_2, factor=16.0) == right
        assert mpmath.mp.dps == 5
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            found = pool.map(lambda _: context.yarn(128, **LLAMA_2, factor=16.0), range(40))
            assert all(f == right for f in found)
    finally:
        sys.setswitchinterval(before)


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")
def test_tracing_a_rule_is_refused_with_the_way_out_or_breaks_the_graph():
    """Catches an error from inside the tracer, which cannot follow mpmath."""

    def scaled(x):
        return x * len(context.linear(8, base=10000.0, factor=2.0))

    with pytest.raises(Exception, match="frequencies cannot be computed while torch traces"):
        torch.compile(scaled, backend="eager", fullgraph=True)(torch.ones(2))
    assert torch.compile(scaled, backend="eager")(torch.ones(2)).tolist() == [4, 4]


def test_the_hands_of_phi_3_slow_down_more_and_more():
    """Catches a list applied backwards: published factors rise with the pair."""
    published = [1.03, 1.05, 1.05, 1.08, 1.23, 1.23, 1.30, 1.45, 1.60, 1.65, 1.90, 2.86]
    published += [3.69, 5.42, 5.49, 5.49, 9.09, 11.58, 15.66, 15.77, 15.79, 18.36, 21.99, 23.08]
    published += [30.01, 32.35, 32.59, 35.56, 39.95, 53.84, 56.20, 57.95, 59.29, 59.77, 59.92]
    published += [61.19, 61.96, 62.50, 63.37, 63.48, 63.48, 63.66, 63.85, 64.08, 64.76, 64.80]
    published += [64.81, 64.81]
    rule = {**LLAMA_2, "short_factor": [1.0] * 48, "long_factor": published, "factor": 32}
    f = context.longrope(96, **rule, seq_len=131072)
    h = f.omega / frequencies(96).omega
    assert all(after <= before * (1 + 1e-15) for before, after in pairwise(h))
    assert np.flatnonzero(1 / h > 32)[0] == 25  # beyond the factor itself
    assert round(float(wavelengths(frequencies(96))[25])) == 761
    assert round(f.attention_factor, 6) == 1.190238
