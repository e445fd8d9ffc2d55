"""What the chapter on RoPE derives, held to 40-digit arithmetic and to matrices made otherwise."""

import ast

import mpmath
import numpy as np
import pytest
from reading import BOOK, Page

from posenc import Frequencies, apply_rope, frequencies, phases, rope_tables, shift_matrix

PLACES = [(0, 0), (5, 2), (2, 5), (23, 20), (-9, 4), (10**6 + 7, 10**6), (10**15 + 7, 10**15)]


@pytest.fixture
def rng():
    return np.random.default_rng(40)


def turned(x, position, f, **how):
    """Return the vector x [d] as it is at a position, in float64."""
    cos, sin = rope_tables([position], f, dtype=np.float64)
    return apply_rope(x[None], cos, sin, interleaved=True, **how)[0]


def matrix(position, f):
    """Return the matrix that `apply_rope` multiplies by, column by column."""
    return np.stack([turned(e, position, f) for e in np.eye(2 * len(f))], axis=1)


def exact_omega(dim, base):
    """Return the frequencies to 60 digits."""
    with mpmath.workdps(60):
        return [mpmath.power(base, -mpmath.mpf(2 * i) / dim) for i in range(dim // 2)]


def exact_score(q, k, m, n, base=10000):
    """Return the real part of the sum of conj(q_i) k_i exp(-i omega_i (m - n)), to 40 digits."""
    with mpmath.workdps(40):
        total = mpmath.mpc(0)
        for i, w in enumerate(exact_omega(len(q), base)):
            a, b = (mpmath.mpc(x[2 * i], x[2 * i + 1]) for x in (q, k))
            total += mpmath.conj(a) * b * mpmath.expj(-w * (m - n))
        return float(total.real)


def exact_matrix(position, dim, base=10000):
    """Return the rotation, block by block, from angles of 60 digits."""
    R = np.zeros((dim, dim))
    with mpmath.workdps(60):
        for i, w in enumerate(exact_omega(dim, base)):
            c, s = float(mpmath.cos(w * position)), float(mpmath.sin(w * position))
            R[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[c, -s], [s, c]]
    return R


def chapter(name):
    """Return a function that the chapter's own cells define, so that a change there is seen."""
    found = {"np": np, "phases": phases, "frequencies": frequencies}
    for cell in Page(BOOK / "4-rotations" / "rope.ipynb").code:
        for node in ast.parse(cell.source).body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                exec(ast.unparse(node), found)
    return found[name]


def diagonals(scores):
    """Return how far scores [m, n] vary at one difference m - n, at most."""
    length = len(scores)
    return max(np.ptp(np.diagonal(scores, r)) for r in range(1 - length, length))


@pytest.mark.equation("eq-rope-ask")
@pytest.mark.parametrize(("dim", "base"), ((4, 10000), (64, 10000), (128, 500000)))
def test_the_wish_is_granted_at_any_two_positions(rng, dim, base):
    """Catches a score in which a position is left over, and content moved at position 0."""
    f, (q, k) = frequencies(dim, base), rng.normal(size=(2, dim))
    for m, n in PLACES:
        score = turned(q, m, f) @ turned(k, n, f)
        assert abs(score - exact_score(q, k, m, n, base)) < 1e-12
    assert np.array_equal(turned(q, 0, f), q)


@pytest.mark.equation("eq-rope-ask")
def test_powers_of_any_orthogonal_matrix_grant_it_and_are_rope_in_another_basis(rng):
    """Catches the claim that the answer is one of many kinds: the angles are all that differs."""
    S, eye = rng.normal(size=(6, 6)), np.eye(6)
    A = np.linalg.solve(eye + (S - S.T), eye - (S - S.T))
    powers = np.stack([np.linalg.matrix_power(A, p) for p in range(20)])
    q, k = rng.normal(size=(2, 6))
    scores = (powers @ q) @ (powers @ k).T
    assert diagonals(scores) < 1e-12
    values, vectors = np.linalg.eig(A)
    ahead = np.angle(values) > 0
    planes = np.sqrt(2) * vectors[:, ahead]
    Q = np.stack([planes.imag, planes.real], axis=-1).reshape(6, 6)
    f = Frequencies(np.angle(values[ahead]))
    rope = np.array(
        [[turned(Q.T @ q, m, f) @ turned(Q.T @ k, n, f) for n in range(20)] for m in range(20)]
    )
    assert abs(rope - scores).max() < 1e-12


@pytest.mark.equation("eq-rope-ask")
def test_orthogonal_matrices_that_are_no_powers_do_not_grant_it(rng):
    """Catches the belief that keeping lengths is enough."""
    G, H = (M - M.T for M in rng.normal(size=(2, 4, 4)))
    with mpmath.workdps(30):
        each = [
            mpmath.expm(p * mpmath.matrix(G)) * mpmath.expm(p * mpmath.matrix(H)) for p in range(5)
        ]
    each = [np.array(A.tolist(), dtype=float) for A in each]
    assert all(abs(A.T @ A - np.eye(4)).max() < 1e-12 for A in each)
    q, k = rng.normal(size=(2, 4))
    assert diagonals(np.array([[q @ a.T @ b @ k for b in each] for a in each])) > 0.1


@pytest.mark.equation("eq-rope")
@pytest.mark.parametrize("position", (1, -3, 17, 10**9, 2**62))
@pytest.mark.parametrize(("dim", "base"), ((2, 10000), (64, 10000), (128, 500000)))
def test_each_pair_is_multiplied_by_a_unit_complex_number(rng, dim, base, position):
    """Catches the other sign, the other pairing, frequencies of another width or base."""
    x = rng.normal(size=dim)
    y = turned(x, position, frequencies(dim, base))
    with mpmath.workdps(60):
        for i, w in enumerate(exact_omega(dim, base)):
            z = mpmath.mpc(x[2 * i], x[2 * i + 1]) * mpmath.expj(w * position)
            assert abs(z.real - y[2 * i]) < 1e-14
            assert abs(z.imag - y[2 * i + 1]) < 1e-14


@pytest.mark.equation("eq-rope-rotation")
@pytest.mark.parametrize("position", (0, 1, -7, 17, 10**12))
def test_the_matrix_of_the_chapter_is_the_one_that_the_library_multiplies_by(position):
    """Catches a block that is transposed, misplaced, or of another frequency."""
    by_hand = chapter("rotation_by_hand")
    ours = matrix(position, frequencies(16))
    assert abs(by_hand(position, 16) - ours).max() < 1e-15
    exact = exact_matrix(position, 16)
    assert abs(ours - exact).max() < 1e-15
    assert np.array_equal(by_hand(position, 16), shift_matrix(position, 16).T)


@pytest.mark.equation("eq-rope-relative")
@pytest.mark.parametrize(("m", "n"), PLACES)
def test_two_rotations_leave_the_difference(m, n):
    """Catches n - m and m - n exchanged, and angles that lose digits far out."""
    f = frequencies(32)
    product = matrix(m, f).T @ matrix(n, f)
    assert abs(product - exact_matrix(n - m, 32)).max() < 1e-15
    assert abs(product - matrix(n - m, f)).max() < 1e-15
    assert m == n or abs(product - exact_matrix(m - n, 32)).max() > 0.25


@pytest.mark.equation("eq-rope-relative")
def test_a_key_turned_backwards_leaves_the_sum(rng):
    """Catches the chapter's account of mixed signs: tests at (0, 0) and of lengths see nothing."""
    f, (q, k) = frequencies(64), rng.normal(size=(2, 64))
    back = {n: turned(k, n, f, inverse=True) for n in range(24)}
    assert abs(turned(q, 0, f) @ back[0] - q @ k) < 1e-13
    assert abs(np.linalg.norm(back[9]) - np.linalg.norm(k)) < 1e-13
    for m in range(8):
        assert abs(turned(q, m, f) @ back[7 - m] - exact_score(q, k, 0, 7)) > 1e-3
        assert abs(turned(q, m, f) @ back[7 - m] - exact_score(q, k, 7, 0)) < 1e-13


@pytest.mark.equation("eq-rope-score")
@pytest.mark.parametrize(("m", "n"), PLACES)
def test_a_score_is_a_sum_of_cosines_whose_phases_the_contents_set(rng, m, n):
    """Catches a phase of the other sign: right at m = n, wrong everywhere else."""
    f, (q, k) = frequencies(32), rng.normal(size=(2, 32))
    score, flipped = 0.0, 0.0
    with mpmath.workdps(40):
        for i, w in enumerate(exact_omega(32, 10000)):
            (a, b), (c, d) = q[2 * i : 2 * i + 2], k[2 * i : 2 * i + 2]
            length = mpmath.hypot(a, b) * mpmath.hypot(c, d)
            phi = mpmath.atan2(d, c) - mpmath.atan2(b, a)
            score += float(length * mpmath.cos(w * (m - n) - phi))
            flipped += float(length * mpmath.cos(w * (m - n) + phi))
    ours = turned(q, m, f) @ turned(k, n, f)
    assert abs(ours - score) < 1e-12
    assert m == n or abs(ours - flipped) > 1e-2


@pytest.mark.equation("eq-rope-generator")
@pytest.mark.parametrize("position", (1, -1, 3, 40))
def test_one_antisymmetric_matrix_makes_every_rotation(position):
    """Catches a generator of the other sign or of other frequencies: matrix exponential, mpmath."""
    G = mpmath.zeros(8)
    with mpmath.workdps(60):
        for i, w in enumerate(exact_omega(8, 10000)):
            G[2 * i, 2 * i + 1], G[2 * i + 1, 2 * i] = -w, w
        assert G.T == -G
        exact = np.array(mpmath.expm(position * G).tolist(), dtype=float)
    assert abs(matrix(position, frequencies(8)) - exact).max() < 1e-15


@pytest.mark.equation("eq-rope-decay")
@pytest.mark.parametrize("rho", (0.0, 0.6, 1.0))
@pytest.mark.parametrize(("m", "n"), ((0, 0), (40, 39), (0, 100), (5000, 1000)))
def test_mean_scores_are_correlation_times_a_sum_of_cosines(rng, rho, m, n):
    """Catches a factor of two, another base, and a decay where contents are unrelated."""
    dim, draws = 128, 4000
    f = frequencies(dim)
    with mpmath.workdps(40):
        mean = 2 * rho * float(mpmath.fsum(mpmath.cos(w * (m - n)) for w in exact_omega(dim, 1e4)))
    R = matrix(n - m, f)
    assert abs(rho * np.trace(R) - mean) < 1e-12
    q, other = rng.normal(size=(2, draws, dim))
    k = rho * q + np.sqrt(1 - rho**2) * other
    scores = ((q @ matrix(m, f).T) * (k @ matrix(n, f).T)).sum(axis=1)
    assert abs(scores.mean() - mean) < 5 * scores.std() / np.sqrt(draws)
    if rho == 0:
        assert abs((R**2).sum() - dim) < 1e-12  # the variance of q . R k, at any distance
        assert abs(scores.std() / np.sqrt(dim) - 1) < 0.06


def test_the_abel_bound_holds_and_is_met_by_contents_that_change_slowly(rng):
    """Catches a bound with a sum or a step left out, which smooth contents would break."""
    omega, dim = frequencies(128).omega, 128
    smooth = 1 - np.arange(64) / 64 + 0j
    for h in (*((rng.normal(size=(20, dim)).view(complex)) ** 2), smooth):
        step = abs(np.diff(np.append(h, 0))).max()
        for r in (0, 1, 50, 1000):
            factors = np.exp(-1j * omega * r)
            bound = step * abs(np.cumsum(factors)).sum()
            assert abs((h * factors).sum()) <= bound + 1e-9
    assert (
        abs((smooth * np.exp(-100j * omega)).sum())
        > 0.5 * abs(np.cumsum(np.exp(-100j * omega))).sum() / 64
    )


def test_a_key_made_for_fifty_tokens_scores_highest_there(rng):
    """Catches a peak on the wrong side, and one that a distance of 0 outdoes."""
    f, q = frequencies(128), rng.normal(size=128)
    k = turned(q, 50, f)
    scores = [turned(q, m, f) @ k for m in range(-200, 5000)]
    assert int(np.argmax(scores)) - 200 == 50
    assert abs(max(scores) - q @ q) < 1e-12 * (q @ q)
