"""A slider on paper: some of its frames, each with its sentence."""

import json
from html import escape

from bs4 import BeautifulSoup

from .markup import parsed


def strip(slider):
    """Return up to three of a slider's frames: the first, the middle and the last."""
    frames = json.loads(slider.find("script", type="application/json").string)
    picture, label = slider.svg, slider.label.span.get_text()
    shown = sorted({0, (len(frames) - 1) // 2, len(frames) - 1})
    style = str(slider.style).replace("<style>", '<style class="of-slider">')
    pieces = []
    for n in shown:
        value, says, marks = frames[n]
        picture.g.clear()
        picture.g.append(BeautifulSoup(marks, "html.parser"))
        pieces.append(
            f"<figure>{picture}<figcaption><b>{escape(label)}: {escape(value)}</b> "
            f"{escape(says)}</figcaption></figure>"
        )
    strip = f'<div class="posenc-slider strip">{style}{"".join(pieces)}</div>'
    return parsed(strip)
