"""One style for every picture of the book, and pictures that repeat byte for byte.

Matplotlib figures come from `figure` and `subplots`, which round what they draw; sliders come
from `slider`, which needs neither a kernel nor the network.
"""

from posenc.lab.figures.marks import Mark, arc, bars, cells, circle, dots, line, segment, text
from posenc.lab.figures.plots import (
    FAST,
    MAGNITUDE,
    SEEN,
    SIGNED,
    SLOW,
    figure,
    label,
    rounded,
    subplots,
    use,
)
from posenc.lab.figures.sliders import Frame, slider

__all__ = [
    "FAST",
    "MAGNITUDE",
    "SEEN",
    "SIGNED",
    "SLOW",
    "Frame",
    "Mark",
    "arc",
    "bars",
    "cells",
    "circle",
    "dots",
    "figure",
    "label",
    "line",
    "rounded",
    "segment",
    "slider",
    "subplots",
    "text",
    "use",
]
