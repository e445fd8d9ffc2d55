"""What a slider draws: lines, dots, bars, cells, words, circles, arcs and segments, as SVG.

A mark is a function from a `View` (which numbers are shown, on how many units of paper) to SVG
text. Coordinates are the reader's: x to the right, y upwards, in whatever unit the view has.
Every number is rounded to one decimal, so that the text repeats on every machine, and the text is
short, since a page stores every frame: quotes that JSON need not escape, no `.0`, one path for many
dots.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["Mark", "View", "arc", "bars", "cells", "circle", "dots", "line", "segment", "text"]

Kind: TypeAlias = Literal["ink", "fast", "slow", "seen", "muted", "paper"]
KINDS = ("ink", "fast", "slow", "seen", "muted", "paper")
WIDTH = 320  # units of paper across: about one pixel each on a phone


@dataclass(frozen=True)
class View:
    """The window of coordinates that a slider shows, on 320 by `height` units of paper."""

    left: float
    right: float
    bottom: float
    top: float
    height: int

    def x(self, value: float) -> float:
        """Return how far to the right of the paper's left edge a value lies."""
        return (value - self.left) / (self.right - self.left) * WIDTH

    def y(self, value: float) -> float:
        """Return how far below the paper's upper edge a value lies."""
        return (self.top - value) / (self.top - self.bottom) * self.height

    def length(self, value: float) -> float:
        """Return a length, measured along x, on paper: circles stay round in any view."""
        return value / abs(self.right - self.left) * WIDTH


Mark: TypeAlias = Callable[[View], str]


def number(value: float) -> str:
    """Write a length on paper to one decimal: noise below 1e-4 cannot change it."""
    if not math.isfinite(value):
        raise ValueError(f"a mark must lie at finite coordinates, got {value}")
    short = f"{round(float(value), 4):.1f}".removesuffix(".0")
    return "0" if short == "-0" else short


def _class(kind: str, *more: str) -> str:
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    return f"class='{' '.join([kind, *more])}'"


def _pairs(xs: ArrayLike, ys: ArrayLike) -> list[tuple[float, float]]:
    across = np.asarray(xs, dtype=np.float64).ravel().tolist()
    up = np.asarray(ys, dtype=np.float64).ravel().tolist()
    if len(across) != len(up):
        raise ValueError(f"xs and ys must be equally many, got {len(across)} and {len(up)}")
    return list(zip(across, up, strict=True))


def line(xs: ArrayLike, ys: ArrayLike, *, kind: Kind = "ink") -> Mark:
    """Draw one line through the points, in their order."""
    points, style = _pairs(xs, ys), _class(kind)

    def mark(view: View) -> str:
        corners: list[tuple[str, str]] = []
        for x, y in points:
            place = number(view.x(x)), number(view.y(y))
            # A point amid a level stretch, which goes on in the same direction, draws nothing.
            if len(corners) > 1 and _level(corners[-2], corners[-1], place):
                corners.pop()
            corners.append(place)
        return f"<polyline {style} points='{' '.join(map(','.join, corners))}'/>"

    return mark


def _level(first: tuple[str, str], middle: tuple[str, str], last: tuple[str, str]) -> bool:
    """Whether three places lie on one level from left to right."""
    across = float(first[0]) <= float(middle[0]) <= float(last[0])
    return first[1] == middle[1] == last[1] and across


def dots(xs: ArrayLike, ys: ArrayLike, *, size: float = 3.0, kind: Kind = "ink") -> Mark:
    """Draw a dot at each point, its radius `size` in units of paper."""
    points, style = _pairs(xs, ys), _class(kind)

    def mark(view: View) -> str:
        # The round cap of a stroke without length is a dot.
        path = "".join(f"M{number(view.x(x))} {number(view.y(y))}h0" for x, y in points)
        return f"<path {style} style='stroke-width:{number(2 * size)}' d='{path}'/>"

    return mark


def _box(view: View, style: str, x0: float, x1: float, y0: float, y1: float) -> str:
    left, right = sorted((view.x(x0), view.x(x1)))
    top, bottom = sorted((view.y(y0), view.y(y1)))
    return (
        f"<rect {style} x='{number(left)}' y='{number(top)}'"
        f" width='{number(right - left)}' height='{number(bottom - top)}'/>"
    )


def bars(
    xs: ArrayLike, heights: ArrayLike, *, width: float = 0.8, base: float = 0.0, kind: Kind = "ink"
) -> Mark:
    """Draw a bar around each x, from `base` to its height; `width` is measured along x."""
    points, style = _pairs(xs, heights), _class(kind, "full")

    def mark(view: View) -> str:
        return "".join(_box(view, style, x - width / 2, x + width / 2, base, y) for x, y in points)

    return mark


def cells(values: ArrayLike, *, x: float = 0.0, y: float = 0.0, size: float = 1.0) -> Mark:
    """Draw a matrix with entries from -1 to 1 as square cells, its upper left corner at (x, y).

    The fuller the cell, the larger the size of the entry. Positive cells have the colour of
    ``"fast"``, negative ones that of ``"slow"`` and a minus sign, so that they differ in grey too.
    """
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or not np.all(np.abs(table) <= 1 + 1e-9):
        raise ValueError(f"values must be a matrix with entries in [-1, 1], got {table.shape}")

    def mark(view: View) -> str:
        squares: dict[str, str] = {}  # cells that look alike are one path
        minus = []
        for (row, column), value in np.ndenumerate(table):
            strength = round(min(abs(float(value)), 1.0), 2)
            if strength == 0:
                continue
            style = _class("fast" if value > 0 else "slow", "full")
            if strength < 1:
                style += f" fill-opacity='{strength}'"
            x0, y0 = x + column * size, y - row * size
            left, right = sorted((view.x(x0), view.x(x0 + size)))
            top, bottom = sorted((view.y(y0), view.y(y0 - size)))
            across, down = number(right - left), number(bottom - top)
            square = f"M{number(left)} {number(top)}h{across}v{down}h-{across}z"
            squares[style] = squares.get(style, "") + square
            if value < 0:
                x1, x2, middle = x0 + 0.3 * size, x0 + 0.7 * size, y0 - 0.5 * size
                kind: Kind = "paper" if strength > 0.5 else "ink"
                minus.append(segment(x1, middle, x2, middle, kind=kind)(view))
        paths = [f"<path {style} d='{path}'/>" for style, path in squares.items()]
        return "".join(paths + minus)

    return mark


def text(
    x: float,
    y: float,
    content: str,
    *,
    anchor: Literal["start", "middle", "end"] = "middle",
    size: float = 12.0,
    kind: Kind = "ink",
) -> Mark:
    """Write words at a point: `anchor` says which part of them stands there, `size` is on paper."""
    style, words = _class(kind), escape(content)

    def mark(view: View) -> str:
        place = f"x='{number(view.x(x))}' y='{number(view.y(y))}'"
        look = f"text-anchor='{anchor}' font-size='{number(size)}'"
        return f"<text {style} {place} {look}>{words}</text>"

    return mark


def circle(x: float, y: float, r: float, *, full: bool = False, kind: Kind = "ink") -> Mark:
    """Draw a circle of radius `r`, measured along x; `full` fills it."""
    style = _class(kind, *["full"] * full)

    def mark(view: View) -> str:
        place = f"cx='{number(view.x(x))}' cy='{number(view.y(y))}'"
        return f"<circle {style} {place} r='{number(view.length(r))}'/>"

    return mark


def segment(x0: float, y0: float, x1: float, y1: float, *, kind: Kind = "ink") -> Mark:
    """Draw a straight segment: the hand of a clock, an axis, a tick."""
    return line([x0, x1], [y0, y1], kind=kind)


def arc(
    x: float,
    y: float,
    r: float,
    start: float,
    end: float,
    *,
    full: bool = False,
    kind: Kind = "ink",
) -> Mark:
    """Draw the arc around (x, y) from angle `start` to `end`, in radians, `end` not below `start`.

    Angles are counted anticlockwise from the x axis; from one whole turn on it is the circle.
    `full` fills the sector between the arc and the centre.
    """
    if end < start:
        raise ValueError(f"end must not be below start, got {start} and {end}")
    if end - start >= 2 * math.pi - 1e-9:
        return circle(x, y, r, full=full, kind=kind)
    style = _class(kind, *["full"] * full)

    def mark(view: View) -> str:
        def place(angle: float) -> str:
            across = view.x(x) + view.length(r) * math.cos(angle)
            down = view.y(y) - view.length(r) * math.sin(angle)
            return f"{number(across)} {number(down)}"

        size, wide = number(view.length(r)), int(end - start > math.pi)
        path = f"M {place(start)} A {size} {size} 0 {wide} 0 {place(end)}"
        if full:
            path += f" L {number(view.x(x))} {number(view.y(y))} Z"
        return f"<path {style} d='{path}'/>"

    return mark


def drawn(marks: Sequence[Mark], view: View) -> str:
    """Return the SVG text of these marks, in their order: later ones lie on top."""
    return "".join(mark(view) for mark in marks)
