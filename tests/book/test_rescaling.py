"""What the chapter on rescaling derives: reach against brute force, PI's theorem to 40 digits."""

import ast

import mpmath
import numpy as np
import pytest
from reading import BOOK, Page

from posenc import context, frequencies, phases, wavelengths

HOW = {"base": 1000.0, "factor": 4.0}
PARTS = {**HOW, "original_max_position_embeddings": 200}
RULES = {
    "linear": context.linear(24, **HOW),
    "ntk": context.ntk(24, **HOW),
    "yarn": context.yarn(24, **PARTS, beta_fast=8.0),
    "paper": context.yarn_paper(24, **PARTS),
    "llama3": context.llama3(24, **PARTS, low_freq_factor=1, high_freq_factor=4),
    "slower": context.linear(24, base=1000.0, factor=9.3),
    "unscaled": frequencies(24, 1000.0),
}


def chapter(names, given):
    """Return what the chapter's own cells define, so that a change there is seen."""
    found = {"np": np, **given}
    for cell in Page(BOOK / "5-context" / "rescaling.ipynb").code:
        for node in ast.parse(cell.source).body:
            if isinstance(node, ast.FunctionDef) and node.name in names:
                exec(ast.unparse(node), found)
    return [found[name] for name in names]


def new_places(rule, trained, length, tokens):
    """Return the pairs whose hand comes to a place that no trained distance brought it near."""
    before = np.arctan2(*phases(np.arange(length), trained, dtype=np.float64)[::-1])
    after = np.arctan2(*phases(np.arange(tokens), rule, dtype=np.float64)[::-1])
    found = []
    for pair, step in enumerate(trained.omega):
        seen = np.sort(before[:, pair])
        seen = np.concatenate([seen - 2 * np.pi, seen, seen + 2 * np.pi])
        right = np.searchsorted(seen, after[:, pair])
        gap = np.minimum(abs(seen[right] - after[:, pair]), abs(after[:, pair] - seen[right - 1]))
        if gap.max() > step * 1.000001:
            found.append(pair)
    return found


@pytest.mark.equation("eq-reach")
@pytest.mark.parametrize("name", RULES)
def test_up_to_its_reach_a_rule_shows_no_new_place_and_beyond_it_one(name):
    """Catches the largest of the slowings taken for the least, and hands that come round."""
    length, trained, rule = 200, frequencies(24, 1000.0), RULES[name]
    given = {"trained": trained, "L": length, "turns": length / wavelengths(trained)}
    _, reach = chapter(["h", "reach"], given)
    within = reach(rule)
    slow = wavelengths(trained) > length
    assert 1 < slow.sum() < len(trained)
    assert np.isclose(within, length * min((trained.omega / rule.omega)[slow]), rtol=1e-14)
    assert not new_places(rule, trained, length, int(within * (1 + 1e-12)))
    beyond = new_places(rule, trained, length, int(within * 1.03) + 2)
    assert beyond
    assert slow[beyond].all()
    within_4 = {"linear": 4, "yarn": 4, "paper": 4, "llama3": 4, "slower": 9.3, "unscaled": 1}
    assert np.isclose(within, length * within_4.get(name, within / length))
    if name == "ntk":
        assert within < 3 * length  # for a factor of 4


def test_the_bound_of_position_interpolation_needs_the_sum_of_squares():
    """Catches a slip of ours in calling the constant of a published theorem too small."""
    with mpmath.workdps(40):
        omega = [mpmath.mpf(10000) ** (-mpmath.mpf(2 * i) / 128) for i in range(64)]
        at = [mpmath.fsum(mpmath.cos(w * (s - mpmath.mpf(1) / 2)) for w in omega) for s in (0, 1)]
        deviation = len(omega) - (at[0] + at[1]) / 2  # midway, where all cosines are 1
        printed = 128 / (32 * mpmath.log(10000))
        needed = mpmath.fsum(w**2 for w in omega) / 8
        assert printed < deviation < needed
        for y in (-0.1, -1, -5):  # what its proof has the other way round
            assert mpmath.exp(y) > 1 + y


def test_stale_keys_are_what_a_cache_under_other_frequencies_gives():
    """Catches an error estimate that forgets a key's own step, or the length's maximum."""
    given = {"trained": frequencies(128), "L": 64, "i": np.arange(64)}
    error, omega_of, stale = chapter(["error", "dynamic_omega", "stale"], given)
    rule = {"base": 10000.0, "factor": 8.0, "original_max_position_embeddings": 64}
    for tokens in (1, 64, 65, 70, 200):
        right = context.dynamic(128, **rule, seq_len=tokens).omega
        np.testing.assert_allclose(omega_of(tokens), right, rtol=1e-12)
    rng = np.random.default_rng(5)
    tokens, key = 80, 70
    q, k = rng.normal(size=(2, 40_000, 64, 2)) @ [1, 1j]
    delta = key * (omega_of(key + 1) - omega_of(tokens))
    moved = (q * k.conj() * (np.exp(1j * delta) - 1)).real.sum(axis=1)
    typical = (q * k.conj()).real.sum(axis=1).std()
    assert abs(moved.std() / typical - stale(tokens)[key]) < 0.01
    assert stale(64).max() == 0
    assert error(np.full(64, np.pi)) == 2
