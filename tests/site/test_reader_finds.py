"""The checks themselves: a page of the book with one fault of each kind, and each is found."""

import pytest
from reader import dead_links, parsed, remote_parts, repeated_ids

ELSEWHERE = '<img src="https://example.org/a.png" alt="A picture from elsewhere">'
DEAD_SLIDER = """<div id="stuck"><svg role="img" aria-label="A picture that never moves"></svg>
<input type="range" aria-label="offset"><output>0</output></div>"""

UNREACHED = """<div onkeydown="if (event.key === 'Tab') event.preventDefault()">
<button>last</button></div><button>behind it</button>"""
STIFF = '<details id="stiff"><summary onclick="return false">open me</summary>inside</details>'
MOTION = '<p class="planted-motion" style="transition: color 1s !important">fades</p>'
BOX = """<div class="planted-box" style="width: 6em; height: 1.2em; overflow: hidden">four words
 here</div>"""

# The kind of fault, a part of its report, and what is planted.
PLANTED = [
    ("network", "https://example.org/a.png", ELSEWHERE),
    ("errors", "noSuchFunction", "<script>noSuchFunction()</script>"),
    ("files", "nowhere.svg", '<img src="nowhere.svg" alt="A picture that was lost">'),
    ("formulas", r"\wavelenght", r'<div class="math">\[\wavelenght\]</div>'),
    ("formulas", "not rendered: 2x", '<div class="math">2x</div>'),
    ("raw TeX", r"text: \(p", r"<p>\(p</p>"),
    ("raw TeX", r"said aloud: A wave of $\omega$", r'<img src="data:," alt="A wave of $\omega$">'),
    ("sideways", "phone, ", '<div style="width: 900px">wide</div>'),
    ("pictures", 'alt ""', '<img src="data:,">'),
    ("pictures", 'alt "a figure.svg"', '<img src="data:," alt="a figure.svg">'),
    ("pictures", "svg without role", '<svg width="9" height="9"></svg>'),
    ("accessibility", "light: button-name", '<button class="planted"></button>'),
    ("accessibility", "dark: color-contrast", '<p style="color: #222">legible by day</p>'),
    ("sliders", "stuck: the picture does not follow", DEAD_SLIDER),
    ("sliders", "stuck: an arrow key does not change", ""),
    ("keyboard", "tabindex 3: <a", '<a tabindex="3" href="#">first</a>'),
    ("keyboard", "no focus ring: <a", '<a class="b" style="outline: 0 !important" href="#">b</a>'),
    ("keyboard", "focused and not seen: <button", '<button style="opacity: 0">c</button>'),
    ("keyboard", "Tab does not reach: <button", UNREACHED),
    ("keyboard", "no way round", ""),
    ("keyboard", "Enter does not open a folded part: stiff", STIFF),
    ("motion", "p.planted-motion", MOTION),
    ("print", "on paper: <button", ""),
    ("print", 'stays folded: <div class="toggle-hidden', '<div class="toggle-hidden">away</div>'),
    (
        "print",
        "cut at the right",
        '<div style="overflow: auto; width: 9em">' + "wide" * 9 + "</div>",
    ),
    ("print", "on rgb(0, 0, 0)", '<p style="background: black; color: white">night</p>'),
    ("spacing", "planted-box", BOX),
    (
        "zoom",
        "wide on a large screen",
        '<div style="width: 700px">wide on a large screen too</div>',
    ),
    ("links", "no such file: lost.html", '<a href="lost.html">lost</a>'),
    ("links", "no such anchor: #lost", '<a href="#lost">lost</a>'),
    ("remote", "//example.org/late.js", '<script defer src="//example.org/late.js"></script>'),
    ("ids", "twice", '<i id="twice"></i><i id="twice"></i>'),
]


@pytest.fixture(scope="session")
def found(html, read):
    """Read a copy of a page with everything planted in it; it lies beside its original."""
    pages = [file for file in html.glob("book/*/*.html") if parsed(file).select(".math")]
    original = min(pages, key=lambda file: file.stat().st_size)
    source = original.read_text(encoding="utf-8")
    head, article, rest = source.partition('<article class="bd-article">')
    assert article, "the theme's markup has changed: no article to plant in"
    copy = original.with_name("planted.html")
    copy.write_text(head + article + "".join(p for _, _, p in PLANTED) + rest, encoding="utf-8")
    try:
        seen = read(copy)
        seen["links"] = dead_links(copy, html)
        seen["remote"] = remote_parts(copy)
        seen["ids"] = repeated_ids(copy)
    finally:
        copy.unlink()
    return seen


@pytest.mark.parametrize(("kind", "report"), [planted[:2] for planted in PLANTED])
def test_planted_fault_is_found(found, kind, report):
    assert any(report in fault for fault in found[kind]), found[kind]
