"""Matplotlib in the book's one style, drawn from rounded values, stored as repeatable SVG."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
from cycler import cycler
from IPython import get_ipython
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.projections import register_projection
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "FAST",
    "MAGNITUDE",
    "SEEN",
    "SIGNED",
    "SLOW",
    "figure",
    "label",
    "rounded",
    "subplots",
    "use",
]

# Three colours of meaning. Each has contrast 3 on white, and they differ as greys.
FAST = "#b83a0c"  # hands that turn fast: the first pairs
SLOW = "#1b2a5e"  # hands that turn slowly: the last pairs
SEEN = "#2a9d8f"  # what training has seen
MAGNITUDE = "viridis"  # a colour map for sizes
SIGNED = "RdBu_r"  # a colour map for signed values: give vmin=-bound, vmax=bound

INCHES = {"wide": 5.0, "narrow": 3.4}  # on a phone the wide one shrinks to 0.6: 12 pt to 9.6 px
STYLE: dict[Any, Any] = {
    "axes.linewidth": 0.8,
    "axes.prop_cycle": cycler(color=[FAST, SLOW, SEEN]),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "figure.constrained_layout.use": True,
    "figure.dpi": 100,
    "figure.facecolor": "white",
    "figure.figsize": (5.0, 2.9),
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same glyphs everywhere
    "font.size": 12.0,
    "axes.titlesize": 12.0,
    "xtick.labelsize": 11.0,
    "ytick.labelsize": 11.0,
    "image.cmap": MAGNITUDE,
    "image.interpolation": "none",  # cells stay cells, whatever the size of the picture
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "savefig.facecolor": "white",
    "svg.fonttype": "path",
    "svg.hashsalt": "waves that count",
}
# What Axes draws or bounds with numbers. What is built by hand and added (a patch, a collection)
# is not in this list: give it `rounded` values.
DRAWING = """
    annotate arrow axhline axhspan axline axvline axvspan bar barh boxplot contour contourf
    errorbar eventplot fill fill_between fill_betweenx hexbin hist hlines imshow loglog matshow
    pcolor pcolormesh plot quiver scatter semilogx semilogy set_xlim set_ylim set_xticks
    set_yticks stackplot stairs stem step text violinplot vlines
"""


def use() -> None:
    """Switch this session to the book's style; the first cell of a notebook calls it once.

    Pictures are stored as SVG without a date and with fixed ids: the same data give the same
    bytes, and the test that compares outputs compares pictures too.
    """
    mpl.rcParams.update(STYLE)
    if get_ipython() is not None:
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        # bbox_inches: a figure keeps the size it asked for, whatever stands at its edges
        bare = {"Date": None, "Creator": None}
        set_matplotlib_formats(  # type: ignore[no-untyped-call]
            "svg", metadata=bare, bbox_inches=None
        )


def rounded(values: ArrayLike, digits: int = 4) -> NDArray[np.float64]:
    """Return the values rounded to so many significant decimal digits, as float64.

    Two machines may differ in the last bit of a sine; after rounding they draw one picture.
    Rounding twice changes nothing, and no result is a negative zero.

    Parameters
    ----------
    values
        Numbers of any shape, torch tensors on any device too.
    digits
        Significant decimal digits to keep: 4, and after training 2.

    Returns
    -------
    numpy.ndarray
        float64, of the shape of `values`.

    Examples
    --------
    >>> rounded([3.14159, 60611.48, -0.0])
    array([3.142e+00, 6.061e+04, 0.000e+00])
    """
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    exact = np.asarray(values, dtype=np.float64)
    short = [float(f"{value:.{digits - 1}e}") for value in exact.ravel().tolist()]
    return np.array(short, dtype=np.float64).reshape(exact.shape) + 0.0


def _rounded_within(value: Any) -> Any:
    """Round every float inside an argument; leave integers, words and all else as they are."""
    if isinstance(value, np.ma.MaskedArray):
        return np.ma.array(rounded(value.filled(0.0)), mask=value.mask)
    if isinstance(value, float | np.floating):
        return float(rounded(value))
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return rounded(value)
    if isinstance(value, list | tuple):
        return type(value)(map(_rounded_within, value))
    return value


def _rounding(drawn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(drawn)
    def method(self: Axes, *args: Any, **kwargs: Any) -> Any:
        short = {key: _rounded_within(value) for key, value in kwargs.items()}
        return drawn(self, *map(_rounded_within, args), **short)

    return method


class RoundedAxes(Axes):
    """Axes that round whatever they are given to draw to 4 significant digits."""

    name = "rounded"


for _name in DRAWING.split():
    setattr(RoundedAxes, _name, _rounding(getattr(Axes, _name)))
register_projection(RoundedAxes)


def figure(
    width: Literal["wide", "narrow"] = "wide", *, ratio: float = 0.58
) -> tuple[Figure, Axes]:
    """Return a figure of the book's width and its one pair of (rounding) axes.

    Parameters
    ----------
    width
        ``"wide"`` fills the column of text, ``"narrow"`` is for a square or a small picture.
    ratio
        Height over width.

    Raises
    ------
    ValueError
        If `width` is another word.
    """
    return subplots(width=width, ratio=ratio)


def subplots(
    rows: int = 1,
    cols: int = 1,
    *,
    width: Literal["wide", "narrow"] = "wide",
    ratio: float = 0.58,
    **options: Any,
) -> tuple[Figure, Any]:
    """Return a figure of the book's width and a grid of (rounding) axes.

    Parameters
    ----------
    rows, cols
        The grid; the axes come as `matplotlib.pyplot.subplots` returns them.
    width, ratio
        As for `figure`; the ratio is that of the whole figure.
    **options
        Whatever else `matplotlib.pyplot.subplots` takes (``sharex``, ``width_ratios``).

    Raises
    ------
    ValueError
        If `width` is another word.
    """
    if width not in INCHES:
        raise ValueError(f"width must be 'wide' or 'narrow', got {width!r}")
    size = (INCHES[width], INCHES[width] * ratio)
    kinds = {"projection": RoundedAxes.name, **options.pop("subplot_kw", {})}
    return plt.subplots(rows, cols, figsize=size, subplot_kw=kinds, **options)


def label(
    ax: Axes,
    x: float,
    y: float,
    text: str,
    *,
    side: Literal["right", "left", "above", "below"] = "right",
    color: str = "black",
    gap: float = 4.0,
) -> None:
    """Write a name beside the point it names: a direct label instead of a legend.

    Parameters
    ----------
    ax
        The axes to write on.
    x, y
        The point, in data coordinates.
    text
        The name.
    side
        Where the name stands, seen from the point.
    color
        That of the named line: one of the three colours of meaning, or black.
    gap
        Distance from the point in printer's points.

    Raises
    ------
    ValueError
        If `side` is another word.
    """
    ways = {
        "right": (gap, 0.0, "left", "center"),
        "left": (-gap, 0.0, "right", "center"),
        "above": (0.0, gap, "center", "bottom"),
        "below": (0.0, -gap, "center", "top"),
    }
    if side not in ways:
        raise ValueError(f"side must be one of {', '.join(ways)}, got {side!r}")
    dx, dy, ha, va = ways[side]
    ax.annotate(text, (x, y), (dx, dy), textcoords="offset points", ha=ha, va=va, color=color)
