"""What the chapter on scores says, held to computations that share no code with it."""

import itertools
import math

import mpmath
import numpy as np
import pytest

from posenc import shift_matrix, sinusoidal_encoding
from posenc.lab.attention import attention


@pytest.fixture
def rng():
    return np.random.default_rng(20)


def cosines(k, dim, base=10000, pairs=None):
    """Return the sum of cos(omega_i k) over the pairs (all of them unless said), to 40 digits."""
    with mpmath.workdps(40):
        chosen = range(dim // 2) if pairs is None else pairs
        omega = [mpmath.power(base, -mpmath.mpf(2 * i) / dim) for i in chosen]
        return float(mpmath.fsum(mpmath.cos(w * k) for w in omega))


def rows(positions, dim, **options):
    return sinusoidal_encoding(positions, dim, dtype=np.float64, **options)


def relative_dimension(steps):
    """Count the independent W with W M = M W for all of these matrices, by a rank."""
    dim = len(steps[0])
    basis = np.eye(dim * dim).reshape(-1, dim, dim)  # every matrix with a single 1
    system = np.concatenate([(basis @ M - M @ basis).reshape(dim * dim, -1).T for M in steps])
    return dim * dim - np.linalg.matrix_rank(system)


def blocks(a, b):
    """Return the block-diagonal matrix with blocks a_i I + b_i J."""
    W = np.zeros((2 * len(a), 2 * len(a)))
    for i, (near, turn) in enumerate(zip(a, b, strict=True)):
        W[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[near, turn], [-turn, near]]
    return W


@pytest.mark.equation("eq-kernel")
@pytest.mark.parametrize("layout", ("interleaved", "concatenated"))
@pytest.mark.parametrize(("dim", "base"), ((8, 10000), (64, 10000), (512, 10000), (64, 500000)))
def test_dot_product_of_two_encodings_is_a_sum_of_cosines_of_their_distance(dim, base, layout):
    """Catches cosines of other frequencies than the sines, and angles that err far out."""
    for m, n in [(0, 0), (3, 8), (8, 3), (100, 57), (10**12 + 300, 10**12), (-40, 2)]:
        row_m, row_n = (rows(p, dim, base=float(base), layout=layout) for p in (m, n))
        assert abs(row_m @ row_n - cosines(m - n, dim, base)) < 1e-12


@pytest.mark.equation("eq-kernel")
@pytest.mark.parametrize(("dim", "rise"), ((8, 3), (64, 5), (128, 11), (512, 43)))
def test_kernel_falls_to_the_distance_that_the_chapter_prints_and_then_rises(dim, rise):
    """Catches another first rise: of other frequencies, or counted from another step."""
    g = [cosines(k, dim) for k in range(rise + 2)]
    assert all(after < before for before, after in itertools.pairwise(g[:-1]))
    assert g[rise + 1] > g[rise]
    table = rows(np.arange(rise + 2), dim)
    assert np.flatnonzero(np.diff(table @ table[0]) > 0).tolist() == [rise]


@pytest.mark.equation("eq-kernel")
def test_kernel_has_the_values_that_the_chapter_prints():
    """Catches a kernel of other frequencies: relative values, first negative, larger bases."""
    g = rows(np.arange(5000), 512) @ rows(0, 512)
    assert [f"{g[k] / 256:.4f}" for k in (1, 5, 100)] == ["0.9731", "0.7406", "0.4373"]
    assert (np.diff(g[:101]) > 0).sum() == 14
    assert (np.argmax(g < 0), g.argmin(), round(g.min(), 2)) == (3284, 4878, -13.0)
    for base, rise in [(1e2, 37), (1e3, 43), (1e5, 24), (1e6, 24), (1e8, 24)]:
        larger = rows(np.arange(100), 512, base=base) @ rows(0, 512, base=base)
        assert np.argmax(np.diff(larger) > 0) == rise


@pytest.mark.equation("eq-kernel")
def test_kernel_shifted_by_a_matrix_has_its_peak_behind_the_query():
    """Catches M_k and its transpose exchanged: the head would look ahead."""
    table = rows(np.arange(60), 128)
    scores = table @ shift_matrix(3, 128) @ table.T
    g = {k: cosines(k - 3, 128) for k in range(-59, 60)}
    right = [[g[m - n] for n in range(60)] for m in range(60)]
    assert np.abs(scores - right).max() < 1e-12
    assert (scores[3:].argmax(axis=1) == np.arange(57)).all()


@pytest.mark.equation("eq-four-terms")
def test_four_terms_sum_to_the_score_of_the_head_and_each_is_needed(rng):
    """Catches a head that scales, transposes or drops a term of (x + p) W (x' + p')."""
    x = rng.normal(size=(7, 16))
    p = rows(np.arange(7) + 20, 16)
    w_q, w_k = rng.normal(size=(2, 16, 4))
    scores = attention(x + p, w_q, w_k, np.eye(16))[2]
    terms = np.zeros((4, 7, 7))
    for m in range(7):
        for n in range(7):
            for t, (left, right) in enumerate([(x, x), (x, p), (p, x), (p, p)]):
                query = [math.fsum(left[m] * w_q[:, c]) for c in range(4)]
                key = [math.fsum(right[n] * w_k[:, c]) for c in range(4)]
                terms[t, m, n] = math.fsum(np.multiply(query, key)) / 2  # sqrt of 4 channels
    assert np.abs(scores - terms.sum(axis=0)).max() < 1e-12
    for t in range(4):
        assert np.abs(scores - np.delete(terms, t, axis=0).sum(axis=0)).max() > 0.1


@pytest.mark.equation("eq-commutant")
@pytest.mark.parametrize("dim", (2, 4, 6, 8, 12, 16))
def test_commutant_of_the_shifts_has_as_many_dimensions_as_there_are_channels(dim):
    """Catches a shift with two equal frequencies, or whose blocks are not rotations."""
    assert relative_dimension([shift_matrix(1, dim)]) == dim
    assert relative_dimension([shift_matrix(k, dim) for k in (1, 2, 7)]) == dim


@pytest.mark.equation("eq-commutant")
def test_512_of_262144_numbers_are_free_in_512_channels():
    """Catches a wrong count: W is cut into 4-by-4 systems, one for each two pairs."""
    M, pairs = shift_matrix(1, 512), np.arange(256)
    cut = M.reshape(256, 2, 256, 2)[pairs, :, pairs]  # [256, 2, 2]
    eye = np.eye(2)
    left = np.einsum("iab,cd->iacbd", cut, eye).reshape(256, 1, 4, 4)
    right = np.einsum("ab,jdc->jacbd", eye, cut).reshape(1, 256, 4, 4)
    singular = np.linalg.svd(left - right, compute_uv=False)  # X -> T_i X - X T_j
    free = singular < 1e-9
    assert free.sum() == 512
    assert (free.sum(axis=-1) == 2 * np.eye(256)).all()  # two for each pair, on the diagonal
    assert (free.size, f"{free.mean():.3%}") == (262144, "0.195%")


@pytest.mark.equation("eq-commutant")
def test_scores_are_relative_with_two_knobs_a_pair_and_with_nothing_else(rng):
    """Catches a wrong sign of the sine, and a member outside the blocks that is relative too."""
    a, b = rng.normal(size=(2, 4))
    W, table = blocks(a, b), rows(np.arange(-30, 90), 8)
    omega = 10000.0 ** (-np.arange(4) / 4)
    distance = np.subtract.outer(np.arange(120), np.arange(120))[..., None] * omega
    right = (a * np.cos(distance) + b * np.sin(distance)).sum(axis=-1)
    assert np.abs(table @ W @ table.T - right).max() < 1e-12
    for row in range(8):
        for column in range(8):
            other = W.copy()
            other[row, column] += 1.0
            assert np.ptp(np.diagonal(table @ other @ table.T, -5)) > 1e-3


@pytest.mark.equation("eq-commutant")
def test_direction_lives_in_the_antisymmetric_part(rng):
    """Catches a head with W_q = W_k that tells before from after."""
    x = rows(np.arange(20), 16) + rng.normal(size=(20, 16))
    w_q, w_k = rng.normal(size=(2, 16, 4))
    same = attention(x, w_q, w_q, w_q)[2]
    apart = attention(x, w_q, w_k, w_q)[2]
    assert np.abs(same - same.T).max() < 1e-12
    W = w_q @ w_k.T / 2
    assert np.abs(apart - apart.T - x @ (W - W.T) @ x.T).max() < 1e-12
    assert np.abs(apart - apart.T).max() > 0.1


@pytest.mark.equation("eq-commutant")
def test_a_positive_root_is_absorbed_only_if_it_commutes_with_the_shifts(rng):
    """Catches the short cut that any positive semidefinite H may be taken into the encoding."""
    table, draw = rows(np.arange(200), 16), rng.normal(size=(16, 16))
    commuting = np.kron(np.diag(np.arange(1.0, 9.0)), np.eye(2))
    for H, relative in [(draw @ draw.T, False), (commuting, True)]:
        new = table @ np.linalg.cholesky(H)  # any root: L L^T = H
        norms, at_5 = np.linalg.norm(new, axis=1), np.diagonal(new @ new.T, -5)
        assert bool(np.ptp(norms) < 1e-9) is relative
        assert bool(np.ptp(at_5) < 1e-9) is relative


@pytest.mark.equation("eq-rank-residual")
@pytest.mark.parametrize(("dim", "width"), ((512, 64), (64, 8), (16, 15)))
def test_no_narrow_head_comes_nearer_to_a_shift_than_its_rank_allows(dim, width, rng):
    """Catches a shift that is not orthogonal, and a bound that some head beats."""
    M, bound = shift_matrix(17, dim), math.sqrt(1 - width / dim)
    u, stretch, v = np.linalg.svd(M)
    best = (u[:, :width] * stretch[:width]) @ v[:width]
    residual = np.linalg.norm(best - M) / np.linalg.norm(M)
    assert abs(residual - bound) < 1e-12
    for _ in range(3):  # any queries, then the best keys for them
        w_q = rng.normal(size=(dim, width))
        w_k = np.linalg.lstsq(w_q, M, rcond=None)[0]
        assert abs(np.linalg.norm(w_q @ w_k - M) / np.linalg.norm(M) - bound) < 1e-9
        w_k += 0.01 * rng.normal(size=w_k.shape)
        assert np.linalg.norm(w_q @ w_k - M) / np.linalg.norm(M) > bound
    if (dim, width) == (512, 64):
        assert f"{residual:.4f}" == "0.9354"


def constructed(gain, pairs, step=1, dim=512):
    """Return queries and keys of the head, channel by channel, without a matrix of the shift."""
    w_q, w_k = np.zeros((2, dim, 2 * len(pairs)))
    for column, i in enumerate(pairs):
        angle = step * 10000.0 ** (-2 * i / dim)
        c, s = math.cos(angle), math.sin(angle)
        w_q[[2 * i, 2 * i + 1], [2 * column, 2 * column + 1]] = gain
        w_k[2 * i, [2 * column, 2 * column + 1]] = c, -s
        w_k[2 * i + 1, [2 * column, 2 * column + 1]] = s, c
    return w_q, w_k


@pytest.mark.equation("eq-previous-token")
@pytest.mark.parametrize(
    ("gain", "fastest", "slowest"),
    ((1, "0.234", "0.0078"), (2, "0.677", "0.0078"), (4, "0.917", "0.0078")),
)
def test_constructed_head_gives_the_previous_token_the_weight_that_the_chapter_prints(
    gain, fastest, slowest
):
    """Catches a head of other pairs, of another scale, or that looks to the other side."""
    for first, printed in [(0, fastest), (224, slowest)]:
        pairs, digits = range(first, first + 32), len(printed) - 2
        w_q, w_k = constructed(gain, pairs)
        weights, scores = attention(rows(np.arange(128), 512), w_q, w_k, w_q)[1:]
        right = [gain / 8 * cosines(127 - n - 1, 512, pairs=pairs) for n in range(128)]
        assert np.abs(scores[127] - right).max() < 1e-11
        share = math.exp(right[126]) / math.fsum(math.exp(s) for s in right)
        assert abs(weights[127, 126] - share) < 1e-12
        assert f"{share:.{digits}f}" == printed


@pytest.mark.equation("eq-previous-token")
@pytest.mark.parametrize("step", (1, 7, -1))
def test_constructed_head_is_the_shift_seen_through_64_channels(step):
    """Catches keys that are shifted the wrong way: then the query looks ahead."""
    S = np.eye(512)[:, :64]
    w_q, w_k = constructed(1, range(32), step)
    assert np.abs(w_q @ w_k.T - S @ S.T @ shift_matrix(step, 512)).max() < 1e-15
    weights = attention(rows(np.arange(128), 512), 4 * w_q, w_k, w_q)[1]
    assert (weights[10:110].argmax(axis=1) == np.arange(10, 110) - step).all()


def test_first_gradient_is_the_sum_that_the_chapter_writes():
    """Catches a gradient of another loss: the chapter's share of the commutant rests on it."""
    import torch

    table = torch.from_numpy(rows(np.arange(40), 16))
    W = torch.zeros(16, 16, dtype=torch.float64, requires_grad=True)
    scores = table @ W @ table.T
    scores.log_softmax(dim=1)[torch.arange(1, 40), torch.arange(39)].sum().backward()
    written = table[1:].T @ (table[:-1] - table.mean(dim=0))
    assert (W.grad - written).abs().max() < 1e-10
