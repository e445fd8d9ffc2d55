"""What the chapter on the base says, held to computations that share no code with it."""

import itertools

import mpmath
import numpy as np
import pytest

from posenc import Frequencies, apply_rope, context, frequencies, phases, rope_tables, wavelengths

FIRST = {10**4: 1707, 10**5: 7757, 5 * 10**5: 18438, 10**6: 27115}  # base: first negative, d = 128


def exact_sum(m, base, dim):
    """Return the sum of cos(omega_i m) over the pairs, to 40 digits."""
    with mpmath.workdps(40):
        omega = [mpmath.power(base, -mpmath.mpf(2 * i) / dim) for i in range(dim // 2)]
        return float(mpmath.fsum(mpmath.cos(w * m) for w in omega))


def plain_sums(omega, length):
    """Return the sums at all distances below the length, by cosines of products in float64."""
    return np.cos(np.arange(length)[:, None] * omega).sum(axis=1)


def library_sums(omega, length):
    """Return the sums at all distances below the length, from the library's phases."""
    return phases(np.arange(length), omega, dtype=np.float64)[0].sum(axis=1)


def turned(x, m, omega):
    """Return the rows of x, all turned to position m."""
    tables = rope_tables([m], omega, dtype=np.float64)
    return apply_rope(x[:, None], *tables, interleaved=True)[:, 0]


@pytest.mark.equation("eq-base-sum")
@pytest.mark.parametrize("m", (0, 1, 7, 1000, 10**9 + 7))
def test_a_copy_beats_a_stranger_by_twice_the_sum_of_cosines(m):
    """Catches a rotation by other angles: the expectation is taken exactly, over all draws.

    Components are 0 or 2 with equal chance: mean 1, variance 1. All 16 queries meet all 16 keys.
    """
    draws = np.array(list(itertools.product([0.0, 2.0], repeat=4)))
    omega = frequencies(4, 100.0)
    copies = (draws * turned(draws, m, omega)).sum(axis=1).mean()
    strangers = (draws @ turned(draws, m, omega).T).mean()
    assert abs(copies - strangers - 2 * exact_sum(m, 100, 4)) < 1e-12


@pytest.mark.equation("eq-base-sum")
@pytest.mark.parametrize(("base", "dim"), ((10000, 128), (500000, 128), (10000, 64)))
def test_trace_of_the_rotation_is_twice_the_sum(base, dim):
    """Catches frequencies of another base or width, and a rotation whose blocks do not turn."""
    omega = frequencies(dim, float(base))
    for m in (0, 1, 100, 1707, 131_071):
        trace = np.trace(turned(np.eye(dim), m, omega))
        assert abs(trace - 2 * exact_sum(m, base, dim)) < 1e-11


@pytest.mark.equation("eq-base-criterion")
@pytest.mark.parametrize(("base", "first"), FIRST.items())
def test_first_negative_distance_is_the_one_that_the_chapter_prints(base, first):
    """Catches frequencies that move a sign, and a count that starts elsewhere."""
    f = library_sums(frequencies(128, float(base)), first + 1)
    assert np.flatnonzero(f < 0).tolist() == [first]
    assert exact_sum(first, base, 128) < 0 < exact_sum(first - 1, base, 128)
    direct = plain_sums(float(base) ** (-np.arange(0, 128, 2) / 128), first)
    assert direct.min() > 0.01  # far from rounding, so that the sign is certain


@pytest.mark.equation("eq-base-criterion")
def test_larger_bases_may_be_worse():
    """Catches a search that takes the sound bases for an interval without an end."""
    for base, sound in [(4290, False), (4300, True), (4330, True), (4340, False), (5000, False),
                        (5600, False), (5610, True), (5640, True), (5650, False), (6010, False),
                        (6020, True)]:  # fmt: skip
        f = library_sums(frequencies(128, float(base)), 1024)
        assert (f.min() >= 0) == sound, base
        if not sound:
            assert exact_sum(int(f.argmin()), base, 128) < 0


@pytest.mark.equation("eq-base-criterion")
@pytest.mark.parametrize(
    ("base", "reach"),
    ((4300, 1077), (16000, 2724), (12000, 1554), (27000, 4079), (84000, 8592), (310000, 12223)),
)
def test_published_bounds_reach_as_far_as_the_chapter_says(base, reach):
    """Catches a reach that depends on how the sums are formed."""
    omega = frequencies(128, float(base))
    for f in (library_sums(omega, reach + 1), plain_sums(omega.omega, reach + 1)):
        assert np.flatnonzero(f < 0).tolist() == [reach]
    assert exact_sum(reach, base, 128) < 0


@pytest.mark.equation("eq-base-criterion")
@pytest.mark.parametrize(("dim", "first"), ((64, 725), (80, 1159), (96, 1046), (256, 2653)))
def test_first_negative_distance_depends_on_the_width_of_the_head(dim, first):
    """Catches a bound that is carried from one head width to another."""
    f = library_sums(frequencies(dim), first + 1)
    assert np.flatnonzero(f < 0).tolist() == [first]
    assert exact_sum(first, 10000, dim) < 0


@pytest.mark.equation("eq-base-criterion")
def test_llama_31_violates_the_criterion_from_85133_on():
    """Catches a scaled table that differs from the rule, written out here once more."""
    scaled = context.llama3(
        128,
        base=5e5,
        factor=8,
        low_freq_factor=1,
        high_freq_factor=4,
        original_max_position_embeddings=8192,
    )
    omega = 5e5 ** (-np.arange(0, 128, 2) / 128)
    keep = np.clip((8192 * omega / (2 * np.pi) - 1) / 3, 0, 1)
    by_hand = keep * omega + (1 - keep) * omega / 8
    direct, ours = plain_sums(by_hand, 85_134), library_sums(scaled, 85_134)
    assert np.flatnonzero(direct < 0).tolist() == np.flatnonzero(ours < 0).tolist() == [85_133]


@pytest.mark.equation("eq-base-criterion")
@pytest.mark.parametrize("base", (3.0, 100.0, 10000.0))
def test_with_half_of_the_pairs_at_rest_no_sum_is_negative(base):
    """Catches a p-RoPE that stops too few pairs, and one that stops none."""
    rng = np.random.default_rng(21)
    for p, dim in ((0.5, 128), (0.25, 64)):
        omega = context.proportional(dim, base=base, partial_rotary_factor=p)
        f = phases(rng.integers(0, 2**40, 20_000), omega, dtype=np.float64)[0].sum(axis=1)
        assert f.min() >= dim / 2 - 2 * int(p * dim // 2) - 1e-12
        assert np.sum(omega.omega > 0) == p * dim // 2
    less = Frequencies(np.r_[np.ones(40), np.zeros(24)])
    assert library_sums(less, 10).min() < 0  # more than half may be


@pytest.mark.equation("eq-critical-dimension")
@pytest.mark.parametrize(
    ("length", "base", "channels"),
    ((4096, 1e4, 92), (2048, 1e4, 82), (16384, 1e4, 110), (8192, 5e5, 70), (4, 1e4, 0),
     (10**6, 1e4, 128)),
)  # fmt: skip
def test_critical_dimension_counts_the_channels_that_come_round(length, base, channels):
    """Catches wavelengths of another spacing, and a ceiling taken for a floor."""
    omega = frequencies(128, base)
    assert 2 * np.sum(wavelengths(omega) <= length) == channels
    pairs = mpmath.ceil(64 * mpmath.log(length / (2 * mpmath.pi), base))
    assert 2 * min(max(int(pairs), 0), 64) == channels
    angle = length * omega.omega  # in one length, without wavelengths
    assert 2 * np.sum(angle >= 2 * np.pi) == channels


@pytest.mark.equation("eq-critical-dimension")
def test_no_base_of_the_grid_meets_both_wishes():
    """Catches a longest wave or a first negative distance that is off by a factor of ten."""
    for base in np.geomspace(100, 1e5, 25):
        omega = frequencies(128, float(base))
        wave = wavelengths(omega)[-1]
        assert library_sums(omega, int(wave / 9)).min() < 0


def mean_of(function, base):
    """Return the mean of a function of the frequency over an endless head, by quadrature."""
    with mpmath.workdps(20):
        steps = mpmath.linspace(0, 1, 9)
        return float(mpmath.quad(lambda s: function(mpmath.power(base, -s)), steps))


@pytest.mark.equation("eq-abf-limit")
@pytest.mark.parametrize(("alpha", "base"), ((0.25, 10**4), (1.0, 5 * 10**5), (1.0, 10**4)))
def test_mean_sine_has_the_limit_of_the_sine_integral(alpha, base):
    """Catches a limit without its factor 2/d, or with other ends of the integral."""
    integrals = mpmath.si(alpha) - mpmath.si(mpmath.mpf(alpha) / base)
    limit = float(integrals / mpmath.log(base))
    assert abs(limit - mean_of(lambda u: mpmath.sin(alpha * u), base)) < 1e-12
    errors = [abs(np.sin(alpha * frequencies(d, float(base)).omega).mean() - limit)
              for d in (128, 1280, 12800)]  # fmt: skip
    assert errors[0] < 0.02
    assert 9.5 < errors[0] / errors[1] < 10.5  # the sum counts its upper end half too much
    assert 9.5 < errors[1] / errors[2] < 10.5


@pytest.mark.equation("eq-abf-limit")
@pytest.mark.parametrize("m", (1, 10, 300))
def test_mean_cosine_has_the_limit_of_the_cosine_integral(m):
    """Catches a sign, and ends of the integral that are exchanged."""
    integrals = mpmath.ci(m) - mpmath.ci(mpmath.mpf(m) / 10**4)
    limit = float(integrals / mpmath.log(10**4))
    assert abs(limit - mean_of(lambda u: mpmath.cos(m * u), 10**4)) < 1e-9
    wide = phases(m, frequencies(2**15), dtype=np.float64)[0].mean()
    assert abs(wide - limit) < 1e-4


@pytest.mark.equation("eq-abf-limit")
def test_mean_sine_of_a_head_has_the_values_that_the_chapter_prints():
    """Catches interpolation by another factor, and another base."""
    interpolated = context.linear(128, base=1e4, factor=4)
    larger = frequencies(128, 5e5)
    for omega, value in ((interpolated, "0.0290"), (larger, "0.0788")):
        x = np.ones((1, 128))
        here, beside = (turned(x, m, omega).view(complex)[0] for m in (5, 6))
        sine = np.vdot(here, beside).imag / 128
        assert f"{sine:.4f}" == value
        assert sine > 1.9 * np.sin(omega.omega).sum() / 128  # the upper bound as printed
