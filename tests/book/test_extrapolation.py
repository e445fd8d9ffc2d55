"""What the chapter on extrapolation defines, states as data and claims, done another way."""

import ast
import math

import numpy as np
import pytest
import torch
from mpmath import mp, mpf
from reading import BOOK, Page

from posenc import frequencies, wavelengths
from posenc.lab import claims
from posenc.lab.experiments import Trained
from posenc.lab.tasks import UNSCORED
from posenc.lab.training import loss_of

PAGE = Page(BOOK / "3-biases" / "extrapolation.ipynb")


def chapter(*names):
    """Return what the chapter's own cells define, so that a change there is seen here."""
    found = {"np": np, "frequencies": frequencies, "wavelengths": wavelengths}
    for cell in PAGE.code:
        for node in ast.parse(cell.source).body:
            name = getattr(node, "name", None)
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
            if name in names:
                exec(ast.unparse(node), found)
    return [found[name] for name in names]


@pytest.mark.equation("eq-unseen")
@pytest.mark.parametrize("base", [5.0, 10_000.0, 500_000.0])
@pytest.mark.parametrize("dim", [16, 128, 512])
@pytest.mark.parametrize("length", [32, 512, 1024, 4096])
def test_both_forms_count_the_pairs_without_a_whole_turn(length, dim, base):
    """Catches a count off by one, an index from 1, and a wavelength without its 2 pi."""
    unseen, solved = chapter("unseen", "solved")
    with mp.workdps(40):
        turned = [length * mpf(base) ** (mpf(-2 * i) / dim) / (2 * mp.pi) for i in range(dim // 2)]
    count = sum(turn < 1 for turn in turned)
    assert unseen(length, dim, base) == count
    if 0 <= solved(length, dim, base) <= dim // 2:
        assert solved(length, dim, base) == count
    else:
        assert count == 0


@pytest.mark.equation("eq-unseen")
def test_the_pairs_that_are_not_counted_show_no_new_phase():
    """Catches a count of another thing: by brute force, what the second half of a text adds."""
    (unseen,) = chapter("unseen")
    length, step = 512, 2 * np.pi / 360
    new = 0
    for omega in frequencies(64).omega:
        # a real-valued walk: the arc that is swept, degree by degree
        once = np.floor(np.arange(0, length, 0.005) * omega % (2 * np.pi) / step)
        twice = np.floor(np.arange(length, 2 * length, 0.005) * omega % (2 * np.pi) / step)
        new += bool(set(twice) - set(once))
    assert new == unseen(length, 64)


@pytest.mark.equation("eq-cross-entropy")
def test_the_loss_is_the_mean_surprise_in_nats_of_what_is_scored():
    """Catches a sum for a mean, another logarithm, and unscored places that count."""
    drawn = torch.Generator().manual_seed(0)
    logits = torch.randn(3, 5, 7, generator=drawn, dtype=torch.float64)
    targets = torch.randint(7, (3, 5), generator=drawn)
    targets[:, 0] = UNSCORED
    surprise = []
    for b in range(3):
        for t in range(1, 5):
            row = logits[b, t].numpy()
            surprise.append(-math.log(math.exp(row[targets[b, t]]) / np.exp(row).sum()))
    assert float(loss_of(logits, targets)) == pytest.approx(np.mean(surprise), rel=1e-12)
    even = torch.zeros(1, 1, 29)
    assert math.exp(loss_of(even, torch.zeros(1, 1, dtype=int))) == pytest.approx(29, rel=1e-6)


def test_the_published_table_is_copied_right():
    """Catches a slip in a number that no computation can hold to anything."""
    (published,) = chapter("published")
    assert published["waves", 512] == {
        512: 20.05, 532: 19.91, 562: 19.91, 582: 20.13, 712: 24.86, 1012: 43.54, 15512: 406.01,
    }  # fmt: skip
    rest = {key: row for key, row in published.items() if key != ("waves", 512)}
    assert rest == {
        ("waves", 1024): {1074: 19.19, 16024: 453.32},
        ("waves", 3072): {3072: 18.67, 16072: 231.29},
        ("RoPE", 512): {712: 19.79, 15512: 79.25},
        ("ALiBi", 512): {512: 19.73, 3512: 18.40, 15512: 18.31},
        ("ALiBi", 3072): {3072: 17.60, 16072: 17.22},
    }


# --- the sentences: each must be able to be false ---------------------------------------------

SHIFT = {
    "none": (0.6, 0.27, 0.17, 0.12),
    "index": (0.9, 0.13, 0.07, 0.06),
    "normalised": (1.0, 0.89, 0.56, 0.33),
    "sinusoidal": (1.0, 0.11, 0.07, 0.07),
    "learned": (1.0, 0.08, 0.07, 0.07),
    "alibi": (0.99, 0.99, 0.99, 0.99),
    "rope": (1.0, 0.95, 0.7, 0.2),
}
GEARS = {
    "linear": (1.0, 0.29, 0.09, 0.07),
    "ntk": (1.0, 0.99, 0.72, 0.49),
    "yarn": (1.0, 1.0, 0.94, 0.83),
    "yarn, 32 turns": (1.0, 0.42, 0.12, 0.08),
}
TEXT = {
    "none": (2.287, 2.31, 2.32, 2.33),
    "sinusoidal": (2.19, 2.4, 2.45, 2.5),
    "alibi": (1.95, 1.954, 1.956, 1.957),
    "rope": (1.8, 1.95, 2.55, 2.8),
}
TEXT_GEARS = {
    "linear": (1.8, 2.25, 2.6, 2.75),
    "ntk": (1.8, 1.86, 2.05, 2.7),
    "yarn": (1.8, 1.87, 2.1, 2.35),
}
FAULTS = {
    name: {"full": 1.0, "right": (1e-5, 1.0), "zero": (15.0, 0.15), "restart": (15.0, 0.6),
           "moved": (16.0, 0.3)}
    for name in claims.CACHED
}  # fmt: skip
FAULTS["rope"]["moved"] = (1e-5, 1.0)
FAULTS["alibi"]["zero"] = FAULTS["alibi"]["moved"] = (1e-5, 0.99)


def made(rows, gears, lengths):
    def scores(row):
        return dict(zip(lengths, row, strict=True))

    done = {name: Trained(None, [], scores(row)) for name, row in rows.items()}
    done["rope"].geared = {name: scores(row) for name, row in gears.items()}
    return done


def shifted(scale):
    """The measured rows with every accuracy moved by the same share of its distance to 1 or 0."""
    lengths = (32, 64, 128, 256)
    moved = {name: tuple(scale(a) for a in row) for name, row in SHIFT.items()}
    return made(moved, {name: tuple(map(scale, row)) for name, row in GEARS.items()}, lengths)


def test_the_sentences_hold_of_the_measured_means():
    """Catches a sentence whose sign or length was mistyped."""
    shift = shifted(lambda a: a)
    for about in (claims.absolute, claims.relative, claims.regeared):
        assert all(about(shift).values())
    text = made(TEXT, TEXT_GEARS, (64, 128, 256, 512))
    assert all(claims.text(text).values())
    assert all(claims.cache(FAULTS).values())
    fast = made(
        {"sinusoidal": (1, 0.15, 0.1, 0.1), "rope": (1, 1, 1, 0.99)}, {}, (32, 64, 128, 256)
    )
    assert all(claims.fast(fast).values())


def test_every_sentence_can_be_false():
    """Catches a sentence that is true of any numbers: each fails if its world is turned round."""
    worst, best = shifted(lambda a: 0.0), shifted(lambda a: 1.0)
    for about in (claims.absolute, claims.relative, claims.regeared):
        one, other = about(worst), about(best)
        assert not [words for words in one if one[words] and other[words]]
    upside = {name: tuple(4 - a for a in row) for name, row in TEXT.items()}
    gears = {name: tuple(4 - a for a in row) for name, row in TEXT_GEARS.items()}
    gears["ntk"], gears["linear"] = (2.2, 2.0, 2.6, 1.2), (2.2, 1.0, 1.0, 1.0)
    turned = claims.text(made(upside, gears, (64, 128, 256, 512)))
    held = {words for words, true in turned.items() if true}
    assert held <= {"ALiBi: rises by less than .02 to 512", "YaRN at 512: rises less than NTK"}
    climbing = dict(TEXT, alibi=(1.95, 2.0, 2.1, 2.2))
    worse = dict(TEXT_GEARS, yarn=(1.8, 2.0, 2.5, 2.9))
    turned = claims.text(made(climbing, worse, (64, 128, 256, 512)))
    assert not turned["ALiBi: rises by less than .02 to 512"]
    assert not turned["YaRN at 512: rises less than NTK"]
    swapped = {
        name: {
            way: (1.0 - 1e-3 * (value[0] > 1), 0.5) for way, value in found.items() if way != "full"
        }
        for name, found in FAULTS.items()
    }
    assert not any(claims.cache(swapped).values())


def test_what_holds_must_hold_of_every_seed():
    """Catches an any for an all."""
    assert claims.holds([{"a": True, "b": True}, {"a": True, "b": False}]) == {
        "a": True,
        "b": False,
    }


def test_every_sentence_is_printed_and_true_on_the_page():
    """Catches a claim that the page does not show, and one stored as false."""
    printed = "".join(o.text for cell in PAGE.code for o in cell.outputs if "text" in o)
    shift = shifted(lambda a: a)
    words = [*claims.absolute(shift), *claims.relative(shift), *claims.regeared(shift)]
    words += [*claims.text(made(TEXT, TEXT_GEARS, (64, 128, 256, 512))), *claims.cache(FAULTS)]
    for sentence in words:
        assert f"True | {sentence}" in printed
    assert "False |" not in printed
