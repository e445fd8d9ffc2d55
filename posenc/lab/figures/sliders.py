"""A slider that needs no kernel: every frame is drawn in advance and stored with the page."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from IPython.display import HTML

from posenc.lab.figures.marks import WIDTH, Mark, View, drawn

__all__ = ["Frame", "slider"]

# The colours of meaning as in `plots`, and their lighter sisters on a dark page, where the book's
# theme would put a light box behind any HTML.
STYLE = """\
.posenc-slider{--fast:#b83a0c;--slow:#1b2a5e;--seen:#1f7f74;--paper:#fff;\
max-width:30rem;margin:0 auto}
html[data-theme=dark] .posenc-slider,body[data-jp-theme-light=false] .posenc-slider\
{--fast:#ff9a6b;--slow:#9fb6ff;--seen:#52d1bf;--paper:#121212}
.text_html:has(>.posenc-slider){background:none!important;color:inherit!important}
.posenc-slider svg{display:block;width:100%;height:auto}
.posenc-slider svg *{fill:none;stroke:currentColor;stroke-width:1.5;stroke-linejoin:round;\
stroke-linecap:round}
.posenc-slider svg .full{fill:currentColor;stroke:none}
.posenc-slider svg text{fill:currentColor;stroke:none;font-family:sans-serif}
.posenc-slider .fast{color:var(--fast)}
.posenc-slider .slow{color:var(--slow)}
.posenc-slider .seen{color:var(--seen)}
.posenc-slider .paper{color:var(--paper)}
.posenc-slider .muted{opacity:.5}
.posenc-slider path.seen.full{fill-opacity:.3}
.posenc-slider label{display:flex;flex-wrap:wrap;justify-content:space-between;column-gap:.75rem}
.posenc-slider input{order:1;flex:1 0 100%;min-width:0;height:2.75rem;margin:0}
.posenc-slider output{font-variant-numeric:tabular-nums}
.posenc-slider p{margin:0;min-height:3em;line-height:1.5}"""

SCRIPT = """\
(() => {
  const box = document.getElementById("%s"), at = (what) => box.querySelector(what);
  const frames = JSON.parse(at("script").textContent), range = at("input");
  range.disabled = false;
  range.addEventListener("input", () => {
    const [value, says, marks] = frames[range.value];
    at("g").innerHTML = marks;
    at("output").textContent = value;
    at("p").textContent = says;
    range.setAttribute("aria-valuetext", value);
  });
})();"""


@dataclass(frozen=True)
class Frame:
    """One position of a slider.

    Parameters
    ----------
    value
        What stands beside the slider, with its unit: ``"17 tokens"``.
    says
        One sentence that says what this frame shows; it stands below the picture, and a screen
        reader speaks it.
    marks
        What is drawn, later marks on top: `line`, `dots`, `bars`, `cells`, `text`, `circle`,
        `arc`, `segment`.
    """

    value: str
    says: str
    marks: Sequence[Mark]


def slider(
    name: str,
    label: str,
    frames: Sequence[Frame],
    alt: str,
    *,
    view: tuple[float, float, float, float] = (0.0, 320.0, 0.0, 180.0),
    height: int = 180,
    fixed: Sequence[Mark] = (),
    start: int = 0,
) -> HTML:
    """Return a picture with a slider under it, as one piece of HTML that asks for nothing else.

    It is moved by mouse, finger and arrow keys, follows the page's light or dark theme, and
    without JavaScript shows its first picture. The same frames give the same bytes.

    Parameters
    ----------
    name
        Kebab case, one of its kind on the page: it makes the id.
    label
        What the slider sets: ``"offset k (tokens)"``.
    frames
        From left to right, two or more.
    alt
        What the picture shows, for a listener; what changes is said by each frame.
    view
        The coordinates shown: left, right, bottom, top. The default counts units of paper.
    height
        Of the paper, which is 320 units wide: 320 / height is the picture's ratio.
    fixed
        Marks that every frame shares, drawn below the frame's own and stored once.
    start
        Index of the frame shown first.

    Raises
    ------
    ValueError
        If the name is not kebab case, a word is missing, there is nothing to slide through, or
        a mark has no finite place.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ValueError(f"name must be in kebab case, got {name!r}")
    if len(frames) < 2:
        raise ValueError(f"frames must be at least 2, got {len(frames)}")
    if start not in range(len(frames)):
        raise ValueError(f"start must be the index of a frame, got {start} of {len(frames)}")
    for role, words in [("label", label), ("alt", alt), *(("value", f.value) for f in frames)]:
        if not words.strip():
            raise ValueError(f"{role} must say something, got {words!r}")
    for frame in frames:
        if not frame.says.strip().endswith("."):
            raise ValueError(f"says must be one sentence with its full stop, got {frame.says!r}")
    window, first, key = View(*view, height), frames[start], f"slider-{name}"
    stored = (
        json.dumps(
            [[frame.value, frame.says, drawn(frame.marks, window)] for frame in frames],
            ensure_ascii=False,
            separators=(",", ":"),
        )
        .replace("</", "<\\/")
        .replace("<!--", "\\u003c!--")
    )
    value = escape(first.value)
    return HTML(  # type: ignore[no-untyped-call]
        f'<div class="posenc-slider" id="{key}">\n<style>\n{STYLE}\n</style>\n'
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(alt)}">'
        f"{drawn(fixed, window)}<g>{drawn(first.marks, window)}</g></svg>\n"
        f"<label><span>{escape(label)}</span>"
        f'<input type="range" min="0" max="{len(frames) - 1}" value="{start}" disabled'
        f' autocomplete="off" aria-valuetext="{value}">'
        f'<output aria-live="off">{value}</output></label>\n'
        f'<p aria-live="polite">{escape(first.says)}</p>\n'
        f'<script type="application/json">{stored}</script>\n'
        f"<script>\n{SCRIPT % key}\n</script>\n</div>"
    )
