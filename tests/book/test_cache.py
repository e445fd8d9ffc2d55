"""What the chapter on the cache says, held to complex numbers and to counting by hand."""

import itertools
import math

import mpmath
import numpy as np
import pytest

from posenc import Frequencies, apply_rope, frequencies, phases, positions, rope_tables

PAIRINGS = pytest.mark.parametrize("interleaved", (True, False))
WIDTHS = pytest.mark.parametrize("rotary_dim", (16, 8))


@pytest.fixture
def rng():
    return np.random.default_rng(38)


def by_complex_numbers(x, at, rotary_dim, interleaved, factor=1.0):
    """Turn each row of x by its position, pair by pair, with 40 digits of the angle."""
    y = np.array(x, dtype=np.float64)
    for row, p in enumerate(at):
        for i in range(rotary_dim // 2):
            one, two = (2 * i, 2 * i + 1) if interleaved else (i, i + rotary_dim // 2)
            with mpmath.workdps(40):
                angle = mpmath.mpf(int(p)) * mpmath.power(10000, -mpmath.mpf(2 * i) / rotary_dim)
                turn = complex(mpmath.cos(angle), mpmath.sin(angle))
            z = factor * complex(x[row][one], x[row][two]) * turn
            y[row][one], y[row][two] = z.real, z.imag
    return y


def rotated(x, at, rotary_dim, interleaved):
    cos, sin = rope_tables(at, frequencies(rotary_dim), dtype=np.float64)
    return apply_rope(x, cos, sin, interleaved=interleaved)


def splits(n):
    """Return every way to read n tokens in parts, as lists of their lengths."""
    found = []
    for count in range(n):
        for cuts in itertools.combinations(range(1, n), count):
            found.append([b - a for a, b in itertools.pairwise([0, *cuts, n])])
    return found


@pytest.mark.equation("eq-cache")
@PAIRINGS
@WIDTHS
def test_every_split_of_a_text_gives_the_rows_of_the_whole(rng, interleaved, rotary_dim):
    """Catches a part that starts at 0, at n - 1 or n + 1, or counts the parts before it twice.

    Keys are compared besides scores: one constant in all positions leaves the scores as they are.
    """
    q, k = rng.normal(size=(2, 6, 16))
    turned = [by_complex_numbers(z, range(6), rotary_dim, interleaved) for z in (q, k)]
    right = np.tril(np.einsum("qc,kc->qk", *turned)) / math.sqrt(16)
    assert len(splits(6)) == 32
    for parts in splits(6):
        cache, seen, rows = np.empty((0, 16)), 0, []
        for size in parts:
            at = positions.decode(seen, new_tokens=size)
            new_q, new_k = (
                rotated(z[seen : seen + size], at, rotary_dim, interleaved) for z in (q, k)
            )
            cache = np.concatenate([cache, new_k])
            for own, query in enumerate(new_q, start=seen):
                row = [query @ key / 4 for key in cache[: own + 1]]
                rows.append(row + [0.0] * (5 - own))
            seen += size
        assert np.abs(np.array(rows) - right).max() < 1e-13
        assert np.abs(cache - turned[1]).max() < 1e-13


@pytest.mark.equation("eq-positions-mask")
def test_positions_of_a_padded_row_count_its_tokens(rng):
    """Catches a count that starts at 1, includes padding, or becomes negative before the text."""
    for _ in range(200):
        mask = rng.integers(0, 2, size=(3, 9))
        at, following = positions.from_attention_mask(mask), positions.decode(mask=mask)
        for row, marks in enumerate(mask.tolist()):
            right, seen = [], 0
            for mark in marks:
                seen += mark
                right.append(seen - 1 if seen else 0)
            assert at[row].tolist() == right
            assert following[row].tolist() == [seen]


@pytest.mark.equation("eq-positions-packed")
def test_positions_of_packed_documents_are_places_behind_the_last_end(rng):
    """Catches documents counted on, and an end that belongs to the document before it."""
    for _ in range(200):
        lengths = rng.integers(0, 5, size=rng.integers(1, 7)).tolist()
        ends = [0, *itertools.accumulate(lengths)]
        right = [place for length in lengths for place in range(length)]
        assert positions.packed(ends).tolist() == right
        assert positions.packed(np.array(ends)).tolist() == right


@pytest.mark.equation("eq-re-rotation")
@PAIRINGS
@WIDTHS
@pytest.mark.parametrize(("a", "b"), ((1000, 993), (3, 10), (10**15, 993), (5, -4)))
def test_a_turned_key_is_moved_by_the_difference(rng, interleaved, rotary_dim, a, b):
    """Catches a second turn of the wrong sign, of another pairing, or of the wrong amount."""
    key, f = rng.normal(size=(1, 16)), frequencies(rotary_dim)
    stored = by_complex_numbers(key, [a], rotary_dim, interleaved)
    right = by_complex_numbers(key, [b], rotary_dim, interleaved)
    tables = phases([b - a], f, dtype=np.float64)
    moved = apply_rope(stored, *tables, interleaved=interleaved)
    assert np.abs(moved - right).max() < 1e-14
    assert np.abs(apply_rope(stored, *tables, interleaved=not interleaved) - right).max() > 0.01


@pytest.mark.equation("eq-re-rotation")
@PAIRINGS
def test_moving_a_key_takes_phases_if_there_is_an_attention_factor(rng, interleaved):
    """Catches phases that bear the factor, and rope tables that lost it."""
    key = rng.normal(size=(1, 16))
    g = Frequencies(frequencies(16).omega, attention_factor=1.25)
    stored = apply_rope(key, *rope_tables([40], g, dtype=np.float64), interleaved=interleaved)
    right = by_complex_numbers(key, [33], 16, interleaved, factor=1.25)
    moved, longer = (
        apply_rope(stored, *tables([-7], g, dtype=np.float64), interleaved=interleaved)
        for tables in (phases, rope_tables)
    )
    assert np.abs(moved - right).max() < 1e-14
    assert np.abs(longer - 1.25 * right).max() < 1e-14
    back = apply_rope(
        stored, *rope_tables([7], g, dtype=np.float64), interleaved=interleaved, inverse=True
    )
    assert np.abs(back - 1.25 * right).max() < 1e-14


@pytest.mark.equation("eq-eviction")
@pytest.mark.parametrize("sinks", (0, 1, 4))
@pytest.mark.parametrize("window", (1, 3, 8))
@pytest.mark.parametrize("n", (1, 4, 5, 12, 13, 30))
def test_eviction_keeps_sinks_and_window_in_two_readings(n, sinks, window):
    """Catches a row too many at either end, and a shift of the wrong sign or of the sinks."""
    kept = [j for j in range(n) if j < sinks or j >= n - window]
    gone = positions.evict(n, sinks=sinks, window=window)
    assert gone.kept.tolist() == gone.true.tolist() == kept
    assert gone.close.tolist() == list(range(len(kept)))
    assert [old + turn for old, turn in zip(kept, gone.shift, strict=True)] == gone.close.tolist()
    if n > sinks + window:
        assert not gone.shift[:sinks].any()
        assert set(gone.shift[sinks:].tolist()) == {sinks + window - n}


@pytest.mark.equation("eq-eviction")
@PAIRINGS
@WIDTHS
def test_the_readings_agree_in_the_window_and_their_mixtures_do_not(rng, interleaved, rotary_dim):
    """Catches keys and queries in different readings: the offset that counts retained rows."""
    q, k = rng.normal(size=(1, 16)), rng.normal(size=(20, 16))
    stored = by_complex_numbers(k, range(20), rotary_dim, interleaved)
    full = by_complex_numbers(q, [20], rotary_dim, interleaved) @ stored.T
    gone = positions.evict(20, sinks=2, window=5)
    cos, sin = phases(gone.shift, frequencies(rotary_dim), dtype=np.float64)
    readings = {
        20: stored[gone.kept],
        len(gone.kept): apply_rope(stored[gone.kept], cos, sin, interleaved=interleaved),
    }
    for of_keys, keys in readings.items():
        for at in readings:
            query = by_complex_numbers(q, [at], rotary_dim, interleaved)
            off = np.abs(query @ keys.T - full[:, gone.kept])[:, 2:].max()
            assert off < 1e-13 if at == of_keys else off > 0.1


def test_typical_error_of_an_offset_is_what_the_chapter_prints():
    """Catches a formula that lost the factor 2, or sines of whole angles."""
    rng = np.random.default_rng(1)
    q, k = rng.normal(size=(2, 200_000, 1, 16))
    for delta, base in ((1, 10000.0), (7, 10000.0), (1000, 100.0)):
        omega = frequencies(16, base).omega
        formula = math.sqrt(2 / 16 * sum(4 * math.sin(delta * w / 2) ** 2 for w in omega))
        cos, sin = phases([0, delta], frequencies(16, base), dtype=np.float64)
        off = [
            (apply_rope(q, cos[[row]], sin[[row]], interleaved=True) * k).sum(-1) / 4
            for row in (0, 1)
        ]
        assert abs((off[1] - off[0]).std() / formula - 1) < 0.01
