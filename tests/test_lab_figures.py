"""Figures draw rounded values in one style and repeat byte for byte."""

import io
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest
import torch
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb

from posenc.lab import figures


@pytest.fixture(autouse=True)
def style():
    """Draw in the book's style, on no screen, and leave no figure open."""
    with mpl.rc_context():
        plt.switch_backend("agg")
        figures.use()
        yield
        plt.close("all")


def svg(fig):
    """Return the picture as a notebook stores it."""
    text = io.StringIO()
    fig.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()


@pytest.mark.parametrize(
    ("value", "digits", "short"),
    [(3.14159, 4, 3.142), (-60611.48, 4, -60610.0), (1.25e-7, 2, 1.2e-7), (1707, 4, 1707.0)],
)
def test_rounded_keeps_significant_digits(value, digits, short):
    """Catches rounding to decimals, which would flatten what is small."""
    assert figures.rounded(value, digits) == short


def test_rounding_twice_changes_nothing_and_forgets_the_sign_of_zero():
    """Catches a rounding whose own error moves the value, and -0 in a picture."""
    values = np.random.default_rng(0).normal(size=(50, 20)) * 10.0 ** np.arange(-10, 10)
    once = figures.rounded(values)
    assert once.shape == values.shape
    assert np.array_equal(figures.rounded(once), once)
    assert np.allclose(once, values, rtol=5.01e-4, atol=0)
    assert not np.signbit(figures.rounded([-0.0, 0.0])).any()
    assert np.isnan(figures.rounded(np.nan))
    assert np.array_equal(figures.rounded(torch.tensor([0.12344])), [0.1234])


DRAWN = {
    "plot": lambda ax, noise: ax.plot(np.arange(5), 1 / 3 + noise * np.arange(5)),
    "plot lists": lambda ax, noise: ax.plot([0.5, 1 + noise], [1 / 3 + noise, 2.0]),
    "plot torch": lambda ax, noise: ax.plot(torch.arange(1, 4) / 3 + noise),
    "scatter": lambda ax, noise: ax.scatter([1 + noise, 2], [3, 4 + noise]),
    "bar": lambda ax, noise: ax.bar([1, 2], [1 / 3 + noise, 1], width=0.5 + noise),
    "fill": lambda ax, noise: ax.fill_between([0, 1], 1 / 3 + noise, y2=1 + noise),
    "span": lambda ax, noise: ax.axvspan(1 / 3 + noise, 1),
    "image": lambda ax, noise: ax.imshow(np.eye(3) / 3 + noise),
    "mesh": lambda ax, noise: ax.pcolormesh(np.eye(3) / 3 + noise),
    "log": lambda ax, noise: ax.loglog([1, 10], [1 / 3 + noise, 30]),
    "text": lambda ax, noise: ax.text(0.5 + noise, 1 / 3, "here"),
    "label": lambda ax, noise: figures.label(ax, 0.5 + noise, 1 / 3, "here"),
    "limits": lambda ax, noise: ax.set_xlim(-1 / 3 - noise, 1 + noise),
}


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)
def test_noise_of_another_machine_does_not_reach_the_picture(draw):
    """Catches a way of drawing that passes the last bits of a number on to the file."""
    pictures = []
    for noise in (0.0, 1e-7):
        fig, ax = figures.figure()
        draw(ax, noise)
        pictures.append(svg(fig))
    assert pictures[0] == pictures[1]


def test_a_curve_that_is_wrong_is_another_picture():
    """Catches a rounding so coarse that a wrong figure would pass."""
    pictures = []
    for slope in (1.0, 1.002):
        fig, ax = figures.figure()
        ax.plot([0, 1], [0, slope])
        ax.set_ylim(0, 2)
        pictures.append(svg(fig))
    assert pictures[0] != pictures[1]


def test_a_masked_cell_stays_masked():
    """Catches a rounding that fills what a picture leaves out."""
    _, ax = figures.figure()
    image = ax.imshow(np.ma.masked_greater([[0.5, 2.0]], 1.0))
    assert image.get_array().mask.tolist() == [[False, True]]


def test_grids_come_in_the_books_two_widths():
    """Catches a figure of its own size, and axes that do not round."""
    for width, inches in (("wide", 5.0), ("narrow", 3.4)):
        fig, axes = figures.subplots(1, 2, width=width, ratio=0.5, sharey=True)
        assert fig.get_size_inches().tolist() == [inches, inches / 2]
        assert {ax.name for ax in axes} == {"rounded"}
    with pytest.raises(ValueError, match="width must be 'wide' or 'narrow', got 'huge'"):
        figures.figure("huge")


@pytest.mark.parametrize("side", ["right", "left", "above", "below"])
def test_a_label_stands_on_its_side_of_the_point(side):
    """Catches a name that covers the line it names."""
    fig, ax = figures.figure()
    figures.label(ax, 0.5, 0.5, "name", side=side, color=figures.SLOW)
    fig.canvas.draw()
    box = ax.texts[0].get_window_extent()
    x, y = ax.transData.transform((0.5, 0.5))
    beside = {"right": box.x0 > x, "left": box.x1 < x, "above": box.y0 > y, "below": box.y1 < y}
    assert beside.pop(side)
    assert not any(beside.values())


def test_an_unknown_side_is_refused():
    """Catches a misspelt side that would fall back to another."""
    _, ax = figures.figure()
    with pytest.raises(ValueError, match="side must be one of right, left, above, below, got 'up'"):
        figures.label(ax, 0, 0, "name", side="up")


def luminance(color):
    """Return the relative luminance of WCAG 2."""
    channels = np.array(to_rgb(color))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_the_three_colours_are_seen_on_white_and_told_apart_in_grey():
    """Catches a colour that fades on paper, or two that print as one grey."""
    levels = sorted(luminance(color) for color in (figures.FAST, figures.SLOW, figures.SEEN))
    assert all(1.05 / (level + 0.05) >= 3 for level in levels)
    assert all((b + 0.05) / (a + 0.05) >= 1.5 for a, b in pairwise(levels))
