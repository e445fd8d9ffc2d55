"""One page of the book becomes a leaf: its ids are its own, and it holds nothing to press."""

import re

from bs4 import BeautifulSoup

from .markup import parsed
from .places import anchor, name_by_title, own_names
from .slider import strip

POINTLESS = (  # what is pressed, and what a script draws on
    "a.headerlink, .viewcode-back, button, input, nav, div.toctree-wrapper, details > summary"
)
TOO_WIDE = "(The picture is too wide for paper; the book on the screen has it.)"
TITLES = re.compile("^h[1-6]$")
COLOURED = ("k", "c", "s", "m")  # of the spans in code: keywords, comments, strings and numbers


def leaf(page):
    """Return a page as a section whose ids are its own and which holds nothing to press."""
    soup = BeautifulSoup(f"<section>{page.body}</section>", "html.parser")
    still(soup)
    for cell in soup.select("div.cell"):
        settle_cell(cell)
    for span in soup.select("pre span[class], span.pre"):
        if span["class"] == ["pre"] or not span["class"][0].startswith(COLOURED):
            span.unwrap()
    soup.smooth()
    unfold(soup)
    for content in soup.select("#exercise-content, #solution-content"):
        del content["id"]  # sphinx-exercise gives the same two to all of them
    own_names(soup, page.name)
    section = soup.section.extract()
    for title in section.find_all(TITLES):
        name_by_title(title)
    section["class"] = ["leaf"]
    section["id"] = anchor(page.name)
    lower_titles(section)
    return section


def still(soup):
    """Leave a picture of what moves, and nothing of what a script needs or a finger presses."""
    for slider in soup.select("div.posenc-slider"):
        slider.replace_with(strip(slider))
    for graph in soup.select(".equation-graph"):
        graph.replace_with(parsed(f'<p class="not-printed">{TOO_WIDE}</p>'))
    for element in soup.select(f"{POINTLESS}, script, style:not(.of-slider)"):
        element.decompose()


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


def unfold(soup):
    """Open what the screen keeps folded."""
    for folded in soup.find_all("details"):
        folded.name = "div"
        folded.attrs.pop("open", None)
    for folded in soup.select(".dropdown, .toggle, .toggle-hidden"):
        folded["class"] = [c for c in folded["class"] if c not in ("dropdown", "toggle-hidden")]


def lower_titles(section):
    """Set every title a step lower: the first belongs to the parts of the book."""
    for depth in range(5, 0, -1):
        for head in section.find_all(f"h{depth}"):
            head.name = f"h{depth + 1}"
