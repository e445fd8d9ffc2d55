"""What the chapter on counting badly defines and claims, held to arithmetic done another way."""

import ast
from fractions import Fraction

import numpy as np
import pytest
from reading import BOOK, Page

from posenc.lab.attention import attention, random_head


def chapter(*names):
    """Return functions that the chapter's own cells define, so that a change there is seen here."""
    found = {"np": np}
    for cell in Page(BOOK / "1-order" / "counting-badly.ipynb").code:
        for node in ast.parse(cell.source).body:
            if isinstance(node, ast.FunctionDef) and node.name in names:
                exec(ast.unparse(node), found)
    return [found[name] for name in names]


@pytest.mark.equation("eq-normalised-index")
@pytest.mark.parametrize("length", (2, 3, 10, 512, 1000))
def test_the_normalised_index_ends_at_one_and_steps_by_one_over_length_less_one(length):
    """Catches p/L, whose step is rounder and whose last value is not 1."""
    (normalised,) = chapter("normalised")
    exact = [float(Fraction(p, length - 1)) for p in range(length)]
    assert np.array_equal(normalised(length), exact)
    assert (exact[0], exact[-1]) == (0, 1)
    assert np.allclose(np.diff(normalised(length)), 1 / (length - 1), rtol=1e-12, atol=0)


@pytest.mark.equation("eq-bilinear")
@pytest.mark.parametrize("seed", range(5))
def test_scores_of_one_coordinate_are_its_four_terms(seed):
    """Catches a lost or doubled term, and u and v exchanged, with different words at each place."""
    rng = np.random.default_rng(seed)
    words, p = rng.standard_normal((9, 6)), rng.permutation(40)[:9]
    w_q, w_k, w_v = random_head(rng, 7, 5)
    scores = attention(np.column_stack([words, p]), w_q, w_k, w_v)[2] * np.sqrt(5)
    u, v = w_q[6], w_k[6]
    for i, m in enumerate(p):
        for j, n in enumerate(p):
            q, k = words[i] @ w_q[:6], words[j] @ w_k[:6]
            terms = q @ k, m * (u @ k), n * (q @ v), m * n * (u @ v)
            assert scores[i, j] == pytest.approx(sum(terms))


@pytest.mark.equation("eq-bilinear")
@pytest.mark.parametrize("seed", range(20))
def test_a_straight_score_is_highest_at_an_end(seed):
    """Catches the claim that one coordinate attends to a fixed distance: a key inside wins."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.tile(rng.standard_normal(6), (30, 1)), np.arange(30)])
    scores = attention(x, *random_head(rng, 7))[2]
    assert abs(np.diff(scores, n=2, axis=1)).max() < 1e-10
    assert set(scores.argmax(axis=1)) <= {0, 29}
    assert np.linalg.matrix_rank(scores, tol=1e-9) <= 2


def test_no_affine_step_for_bits_whatever_the_fit():
    """Catches a fit that is worse than it need be: by the four codes one half is the least."""
    bits, step_error = chapter("bits", "step_error")
    code = bits(np.arange(1024))
    assert (code @ (1 << np.arange(10)) == np.arange(1024)).all()
    now, then = code[[0, 3, 1, 2]], code[[1, 4, 2, 3], 1]
    assert (now[0] + now[1] == now[2] + now[3]).all()
    assert then[0] + then[1] != then[2] + then[3]
    assert abs(step_error(code)).max() >= 0.5
    assert abs(step_error(np.eye(64))).max() < 1e-12
