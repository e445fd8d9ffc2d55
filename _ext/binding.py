"""From the pages of the book to the leaves of one that is printed.

Nothing here knows a chapter by name: what is done to a page follows from its markup.
"""

import json
import math
import re
from dataclasses import dataclass
from html import escape
from urllib.parse import unquote

from bs4 import BeautifulSoup

INDEX = "printed-index"  # where the index with its page numbers stands
PAGE = "#document-"  # how the builder names a page in a link; what follows is an id on that page
NAMING = ("id", "for", "headers", "aria-labelledby", "aria-describedby", "aria-controls")
POINTLESS = (  # what is pressed, and what a script draws on
    "a.headerlink, .viewcode-back, button, input, nav, div.toctree-wrapper, details > summary"
)
PLAIN = ["h1", "h2", "h3", "h4", "h5", "h6", "table", "figcaption"]  # without "(page 12)"
TOO_WIDE = "(The picture is too wide for paper; the book on the screen has it.)"
COLOURED = ("k", "c", "s", "m")  # of the spans in code: keywords, comments, strings and numbers


@dataclass(frozen=True)
class Cover:
    """What the title page says."""

    title: str
    subtitle: str
    author: str
    year: str
    licence: str


@dataclass(frozen=True)
class Page:
    """A page of the HTML book: its name and its body."""

    name: str
    body: str


@dataclass(frozen=True)
class Part:
    """Pages under one caption; the first part, without one, stands before the others."""

    caption: str | None
    pages: list[Page]


@dataclass(frozen=True)
class Book:
    """All that is printed."""

    cover: Cover
    parts: list[Part]
    index: list
    mathjax: dict
    language: str


def written(book):
    """Return the one page, and a list of the faults in it."""
    parts = [(part.caption, [leaf(page) for page in part.pages]) for part in book.parts]
    replaced = [leaf["id"] for _, leaves in parts for leaf in leaves if is_index(leaf)]
    parts = [(caption, [s for s in leaves if s["id"] not in replaced]) for caption, leaves in parts]
    solutions = [s for _, leaves in parts for leaf in leaves if (s := taken_solutions(leaf))]
    if solutions:
        parts.append(("Solutions", solutions))
    index = drawn_index(book.index)
    if index:
        parts.append((None, [index]))
    body = BeautifulSoup("", "html.parser")
    for piece in (cover(book.cover), contents(parts), *bound(parts)):
        body.append(piece)
    for link in body.select("a[href], .page-of"):
        kind = "href" if link.name == "a" else "data-of"
        if link[kind].removeprefix("#").partition(":")[0] in replaced:
            link[kind] = ("#" if kind == "href" else "") + INDEX
    faults = mended_links(body)
    return page_of(book, body, running_heads(body)), faults


def parsed(html):
    """Return the first element of a piece of HTML."""
    return BeautifulSoup(html, "html.parser").contents[0].extract()


# --- one page of the book ----------------------------------------------------------------------


def leaf(page):
    """Return a page as a section whose ids are its own and which holds nothing to press."""
    soup = BeautifulSoup(f"<section>{page.body}</section>", "html.parser")
    for slider in soup.select("div.posenc-slider"):
        slider.replace_with(strip(slider))
    for graph in soup.select(".equation-graph"):
        graph.replace_with(parsed(f'<p class="not-printed">{TOO_WIDE}</p>'))
    for element in soup.select(POINTLESS):
        element.decompose()
    for element in soup.select("script, style:not(.of-slider)"):
        element.decompose()
    for cell in soup.select("div.cell"):
        settle_cell(cell)
    for span in soup.select("pre span[class], span.pre"):
        if span["class"] == ["pre"] or not span["class"][0].startswith(COLOURED):
            span.unwrap()
    soup.smooth()
    for folded in soup.find_all("details"):
        folded.name = "div"
        folded.attrs.pop("open", None)
    for folded in soup.select(".dropdown, .toggle, .toggle-hidden"):
        folded["class"] = [c for c in folded["class"] if c not in ("dropdown", "toggle-hidden")]
    for content in soup.select("#exercise-content, #solution-content"):
        del content["id"]  # sphinx-exercise gives the same two to all of them
    own_names(soup, page.name)
    section = soup.section.extract()
    for title in section.find_all(re.compile("^h[1-6]$")):
        name_by_title(title)
    section["class"] = ["leaf"]
    section["id"] = anchor(page.name)
    for depth in range(5, 0, -1):
        for head in section.find_all(f"h{depth}"):
            head.name = f"h{depth + 1}"
    return section


def name_by_title(title):
    """Let a section's names stand at its title: its box may begin on the page before."""
    section = title.parent
    if section.name != "section" or not section.get("id"):
        return
    for name in title.find_previous_siblings("span", id=True):
        title.insert(0, name.extract())
    title["id"] = section["id"]
    del section["id"]


def settle_cell(cell):
    """Leave out the code that draws a figure; mark an answer that the screen keeps folded."""
    if "tag_hide-input" in cell["class"]:
        for code in cell.select(".cell_input, details.above-input"):
            code.decompose()
    for answer in cell.select("details.below-input"):
        answer["class"] = ["answer"]
        answer.insert(0, parsed('<p class="answer-label">Answer</p>'))
    if not cell.get_text(strip=True) and not cell.find(["img", "svg"]):
        cell.decompose()


def own_names(soup, name):
    """Let every id on the page begin with the page's name, in the links to it as well."""
    for element in soup.find_all(True):
        for kind in NAMING:
            if kind in element.attrs:
                words = str(element[kind]).split()
                element[kind] = " ".join(anchor(name, word) for word in words)
    for link in soup.find_all("a", href=True):
        href = unquote(link["href"])
        if href.startswith(PAGE):
            page, _, place = href.removeprefix(PAGE).partition("#")
            link["href"] = "#" + anchor(page, place)
            if page != name and link.select_one(".doc, .std-ref") and not link.find_parent(PLAIN):
                link.append(parsed(on_page(anchor(page, place))))
        elif href.startswith("#"):
            link["href"] = "#" + anchor(name, href[1:])


def anchor(page, place=""):
    """Return the id that a place on a page has in the whole book."""
    return page.replace("/", ".") + (f":{place}" if place else "")


# --- sliders -----------------------------------------------------------------------------------


def strip(slider):
    """Return up to three of a slider's frames side by side: the first, the middle and the last."""
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


# --- solutions ---------------------------------------------------------------------------------


def taken_solutions(leaf):
    """Take the solutions off a page and return them under its title, or nothing."""
    found = leaf.select("div.solution")
    if not found:
        return None
    section = parsed('<section class="leaf"><h2></h2></section>')
    section["id"] = leaf["id"] + ":solutions"
    for child in title_of(leaf):
        section.h2.append(child)
    for solution in found:
        link = solution.select_one("p.admonition-title a")
        exercise = leaf.find(id=link["href"][1:]) if link else None
        section.append(solution.extract())
        if exercise:
            exercise.append(
                parsed(
                    f'<p class="to-solution"><a href="#{solution["id"]}">Solution on page '
                    f"{page_number(solution['id'])}</a></p>"
                )
            )
            link.append(parsed(on_page(exercise["id"])))
    return section


# --- the book ----------------------------------------------------------------------------------


def bound(parts):
    """Return the leaves in order, each part opened by its own leaf."""
    pieces, number = [], 0
    for caption, leaves in parts:
        if caption:
            number += 1
            pieces.append(part_opening(number, caption, leaves))
        pieces += leaves
    return pieces


def part_opening(number, caption, leaves):
    """Return a part's first leaf: its name, and its chapters with their pages."""
    soup = BeautifulSoup(
        f'<section class="part" id="part-{number}"><h1>{escape(caption)}</h1><ul></ul></section>',
        "html.parser",
    )
    for leaf in leaves:
        soup.ul.append(entry(leaf["id"], leaf.h2, "chapter"))
    return soup.section.extract()


def cover(said):
    """Return the title page."""
    waves = "".join(f'<polyline points="{wave(n)}"/>' for n in range(6))
    return BeautifulSoup(
        '<section class="cover"><svg viewBox="0 0 640 258" role="img" '
        f'aria-label="Six waves, each twice as long as the one above">{waves}</svg>'
        f'<p class="title">{escape(said.title)}</p>'
        f'<p class="subtitle">{escape(said.subtitle)}</p>'
        f'<p class="author">{escape(said.author)}</p>'
        f'<div class="imprint"><p>© {escape(said.year)} {escape(said.author)}</p>'
        f"{said.licence}</div></section>",
        "html.parser",
    ).section.extract()


def wave(n):
    """Return the points of a wave that is 2**n times as long as the first."""
    return " ".join(
        f"{x},{21.5 + 43 * n - 16 * math.sin(x * math.tau / 20 / 2**n):.1f}" for x in range(641)
    )


def contents(parts):
    """Return the table of contents; the printer writes the pages in."""
    soup = BeautifulSoup(
        '<section class="contents" id="contents"><h1>Contents</h1><ul></ul></section>',
        "html.parser",
    )
    number = 0
    for caption, leaves in parts:
        if caption:
            number += 1
            soup.ul.append(entry(f"part-{number}", caption, "part-name"))
        for leaf in leaves:
            soup.ul.append(entry(leaf["id"], leaf.h2, "chapter"))
            for head in leaf.find_all("h3"):
                if head.get("id"):
                    soup.ul.append(entry(head["id"], head, "section"))
    return soup.section.extract()


def entry(target, title, kind):
    """Return a line of the contents: a link, its leader and the place of the page number."""
    soup = BeautifulSoup(
        f'<li class="{kind}"><a href="#{target}"><span class="what"></span>'
        f'<span class="leader"></span>{page_number(target)}</a></li>',
        "html.parser",
    )
    for child in [title] if isinstance(title, str) else title_of(title):
        soup.find(class_="what").append(child)
    return soup.li.extract()


def title_of(element):
    """Return a copy of what a title says, without links in it."""
    head = element if element.name in ("h2", "h3") else element.h2
    copy = BeautifulSoup(str(head), "html.parser")
    for link in copy.find_all("a"):
        link.unwrap()
    for named in copy.find_all(id=True):
        del named["id"]
    return list(copy.find(head.name).contents)


def is_index(leaf):
    """Whether a page is the index of the screen, where entries lead to titles: ours has pages."""
    return not leaf.h2 or leaf.select_one("ul.index-entries") is not None


def drawn_index(groups):
    """Return the index: each entry with the pages that it leads to."""
    if not groups:
        return None
    lines = []
    for letter, entries in groups:
        lines.append(f'<p class="letter">{escape(letter)}</p>')
        for name, (links, below, _) in entries:
            lines.append(f"<p>{escape(name)}{places(links)}</p>")
            lines += [f'<p class="below">{escape(sub)}{places(at)}</p>' for sub, at in below]
    return BeautifulSoup(
        f'<section class="leaf" id="{INDEX}"><h2>Index</h2>'
        f'<div class="printed-index">{"".join(lines)}</div></section>',
        "html.parser",
    ).section.extract()


def places(links):
    """Return the pages of an entry of the index."""
    found = []
    for _, uri in links:
        page, _, place = unquote(uri).removeprefix(PAGE).partition("#")
        name = anchor(page, place)
        found.append(f'<span class="at">, <a href="#{name}">{page_number(name)}</a></span>')
    return "".join(found)


def page_number(target):
    """Return the place where the printer writes the page of a target."""
    return f'<span class="page-of" data-of="{escape(target)}">000</span>'


def on_page(target):
    """Return the page of a target for those who cannot press a link."""
    return f'<span class="on-page"> (page\u00a0{page_number(target)})</span>'


def mended_links(body):
    """Let links to files beside the page be plain text; list the links that lead nowhere."""
    known = {element["id"] for element in body.find_all(id=True)}
    faults = []
    for link in body.find_all("a", href=True):
        href = link["href"]
        if href.startswith("#"):
            if href[1:] not in known:
                faults.append(f"no such place: {href}")
        elif not re.match(r"(https?|mailto):", href):
            link.unwrap()
    ids = [element["id"] for element in body.find_all(id=True)]
    faults += [f"two places named {name}" for name in {i for i in ids if ids.count(i) > 1}]
    return faults


def running_heads(body):
    """Give each leaf a kind of page of its own, with its title at the head; return the rules."""
    rules = []
    for n, leaf in enumerate(body.select("section.leaf")):
        title = " ".join(leaf.h2.get_text(" ", strip=True).split())
        title = re.sub(r"\\[()]", "", title).replace("\\", "\\\\").replace('"', '\\"')
        leaf["style"] = f"page: leaf-{n}"
        rules.append(f'@page leaf-{n} {{ @top-center {{ content: "{title}"; }} }}')
    return "\n".join(rules)


def page_of(book, body, rules):
    """Return the whole HTML file."""
    settings = {key: value for key, value in book.mathjax.items() if key != "path"}
    settings["options"] = {
        "ignoreHtmlClass": ".*",
        "processHtmlClass": "math",
        "enableMenu": False,
        **settings.get("options", {}),
    }
    settings["svg"] = {"fontCache": "none"}
    sliders = body.select("style.of-slider")
    styles = {style.string for style in sliders}
    for style in sliders:
        style.decompose()
    return (
        f'<!DOCTYPE html>\n<html lang="{book.language}">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{escape(book.cover.title)}</title>\n"
        f'<meta name="author" content="{escape(book.cover.author)}">\n'
        f'<meta name="description" content="{escape(book.cover.subtitle)}">\n'
        '<link rel="stylesheet" href="_static/pygments.css">\n'
        f"<style>\n{''.join(sorted(styles))}\n</style>\n"
        '<link rel="stylesheet" href="_static/paper.css">\n'
        f"<style>\n{rules}\n</style>\n"
        f"<script>window.MathJax = {json.dumps(settings)};</script>\n"
        f'<script defer src="{book.mathjax["path"]}"></script>\n'
        f"</head>\n<body>\n{body}\n</body>\n</html>\n"
    )
