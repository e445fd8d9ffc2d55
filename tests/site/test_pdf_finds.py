"""The checks of the printed book themselves: a small book with one fault of each kind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from leaves import CHECKS, SOURCE, Leaves
from printing.book import Book, Cover, Page, Part
from printing.front import SHARED, contents
from printing.markup import parsed
from printing.press import Unfit, bind
from printing.whole import written

CHAPTER = """<section id="{0}-top"><h1>Chapter {0}</h1><p>Words before the formula.</p>
<div class="math" id="eq-{0}"><span class="eqno">({0}.1)</span>\\[ a = b \\]</div>
<figure><svg role="img" aria-label="A disc, {0}" width="200" height="90">
<circle r="40" cx="99" cy="45"/></svg><figcaption><span class="caption-number">Fig. {0}.1 </span>A
disc for {0}.</figcaption></figure>
<p>The same as <a href="#document-{1}#{1}-top"><span class="doc">Chapter {1}</span></a> has.</p>
<section id="{0}-more"><h2>More of {0}</h2><p>Less.</p><div class="highlight"><pre>if x:
    y = 1</pre></div></section>
<div class="exercise admonition" id="ex-{0}"><p class="admonition-title">Exercise {0}.1</p>
<p>Why?</p></div>
<div class="solution admonition" id="sol-{0}"><p class="admonition-title">Solution to
<a href="#ex-{0}"> Exercise {0}.1</a></p><p>Because of {0}.</p></div></section>"""
SOUND = [CHAPTER.format("one", "two"), CHAPTER.format("two", "one")]

WRONG = 'data-of="one">000</span></a>'
ALONE = '<div class="solution" id="alone"><p class="admonition-title">Alone</p></div>'
UNSEEN = ' style="display: none">More of two<'
SPACED = ".part .what { letter-spacing: 9mm } .highlight pre { white-space: pre-line }"
NARROW = ".cover svg, .cover ~ section { width: 120mm !important }"

# Put before this sentence of the first chapter, or in place of other words.
LESS = "<p>Less."

# The kind of fault, a part of its report, and how it is put into the page.
PLANTED = [
    ("raw TeX", r"\(", LESS, r"<p>\(p</p>"),
    ("copying", "falls into letters: Chapter two", "</style>", SPACED + "</style>"),
    ("copying", "code:     y = 1", "</style>", "</style>"),
    ("captions", "Adiscforone", "<figcaption>", '<figcaption style="break-before: page">'),
    ("captions", "Adiscfortwo", "A\ndisc for two.", '<span class="no">A disc for two.</span>'),
    ("equation numbers", "(one.1)", '<span class="eqno">', '<span class="eqno no">'),
    ("contents", "Moreofone: the contents say", 'data-of="one:one-more"', 'data-of="two"'),
    ("contents", "not in the contents: Moreoftwo", ">More of two<", UNSEEN),
    ("links", "no link left to nowhere", "Words before", '<a href="#nowhere">Words</a> before'),
    ("page numbers", "Solutiononpage", 'data-of="two:sol-two">000</span></a>', WRONG),
    ("solutions", "no solution to stray", LESS, '<div class="exercise" id="stray">Why?</div>'),
    ("solutions", "no way back from alone", LESS, ALONE),
    ("folded", "on paper: input", LESS, '<input type="range">'),
    ("folded", "an empty box: answer", LESS, '<div class="answer"><p>Answer</p></div>'),
    ("outline", "not in the outline: Chaptertwo", "<h2>Chapter two", '<h2 class="no">Chapter two'),
    ("blank", "nothing on it", LESS, '<p class="new"></p><p class="new"></p>'),
    ("margins", "ink in the left margin", "@page leaf-1 {", "@page leaf-1 { margin-left: 9mm;"),
    ("margins", "all is printed smaller", "</style>", NARROW + "</style>"),
    ("boxes", "a box without ink", LESS, '<div style="background: #f5f6f8; height: 20mm"></div>'),
]


def small_book():
    """Return two chapters as the builder would hand them over, bound."""
    strict = {"packages": {"[-]": ["noundefined", "noerrors"]}}
    mathjax = {"path": "_static/mathjax/tex-svg-full.js", "tex": strict}
    pages = [Page(*named) for named in zip(("one", "two"), SOUND, strict=True)]
    cover = Cover("A title", "a subtitle", "An author", "2026", "<p>Free.</p>")
    parts = [Part(None, pages[:1]), Part("A part", pages[1:])]
    html, faults = written(Book(cover, parts, [], mathjax, "en"))
    assert faults == []
    style = ".no { display: none } .new { break-before: page; height: 9mm }"
    return html.replace("</style>", f"{style}</style>", 1)


def test_a_title_of_many_chapters_is_not_in_the_contents():
    """Catches contents in which every chapter ends with the same lines, and ones without a line."""
    heads = '<h2>{0}</h2><h3 id="{0}-a">Exercises</h3><h3 id="{0}-b">{0}</h3>'
    heads = [heads.format(f"Chapter {n}") for n in range(SHARED + 1)]
    leaves = [parsed(f'<section id="{n}">{head}</section>') for n, head in enumerate(heads)]
    lines = contents([(None, leaves)]).select(".section .what")
    assert [line.text for line in lines] == [f"Chapter {n}" for n in range(SHARED + 1)]


def printed(browser, html, name):
    """Print a page that lies beside the book's, with its styles and its MathJax."""
    source, target = SOURCE.with_name(f"{name}.html"), SOURCE.with_name(f"{name}.pdf")
    source.write_text(html, encoding="utf-8")
    bind(browser, source, target)
    return Leaves(source, target)


@pytest.fixture(scope="session")
def one_page(cannot):
    if not SOURCE.is_file():
        cannot("the book is not ready to be printed: make one-page")


@pytest.fixture(scope="session")
def found(browser, one_page):
    """What every check finds in the small book with all faults in it."""
    html = small_book()
    for _, _, old, new in PLANTED:
        assert old in html, f"nothing to break: {old}"
        html = html.replace(old, new + old if old == LESS else new, 1)
    leaves = printed(browser, html, "planted")
    return {name: check(leaves) for name, check in CHECKS.items()}


@pytest.mark.parametrize(("kind", "report"), [planted[:2] for planted in PLANTED])
def test_planted_fault_is_found(found, kind, report):
    assert any(report in fault for fault in found[kind]), found[kind]


def test_sound_book_has_no_fault(browser, one_page):
    """Catch a check that finds a fault where none is."""
    leaves = printed(browser, small_book(), "sound")
    assert {name: f for name, check in CHECKS.items() if (f := check(leaves))} == {}


@pytest.mark.parametrize(
    ("fault", "report"),
    [
        (r'<div class="math">\[\nosuchmacro\]</div>', "formula: "),
        ('<div class="math">2x</div>', "formula not rendered: 2x"),
        ('<img src="lost.svg">', "picture: .*lost.svg"),
        ('<p style="margin-left: -15mm">Cut</p>', "too wide: p Cut"),
        ('<p style="white-space: nowrap">' + "long " * 60 + "</p>", "too wide: p long"),
    ],
)
def test_unfit_page_is_not_printed(browser, one_page, fault, report):
    with pytest.raises(Unfit, match=report):
        printed(browser, small_book().replace(LESS, fault + LESS, 1), "unfit")


def test_a_browser_that_is_not_there_is_said_in_one_sentence(tmp_path):
    """Catches a traceback where somebody has misspelt the program's name."""
    rooms = str(Path(__file__).parents[2] / "_ext")
    done = subprocess.run(
        [sys.executable, "-m", "printing", tmp_path / "book.html", tmp_path / "book.pdf"],
        env={**os.environ, "PYTHONPATH": rooms, "CHROMIUM": "no-such-browser"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    said = "The book is not printed: CHROMIUM names no program: no-such-browser\n"
    assert done.stderr == said
    assert not list(tmp_path.iterdir())
