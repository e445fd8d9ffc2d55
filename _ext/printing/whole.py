"""All leaves in one HTML file, in the order in which they are printed."""

import json
import re
from html import escape

from bs4 import BeautifulSoup

from .front import contents, cover, part_opening
from .index import drawn_index, lead_to_index, without_indexes
from .leaf import leaf
from .places import mended_links
from .solutions import taken_solutions


def written(book):
    """Return the one page, and a list of the faults in it."""
    parts = [(part.caption, [leaf(page) for page in part.pages]) for part in book.parts]
    parts, replaced = without_indexes(parts)
    solutions = [s for _, leaves in parts for leaf in leaves if (s := taken_solutions(leaf))]
    if solutions:
        parts.append(("Solutions", solutions))
    index = drawn_index(book.index)
    if index:
        parts.append((None, [index]))
    body = BeautifulSoup("", "html.parser")
    for piece in (cover(book.cover), contents(parts), *bound(parts)):
        body.append(piece)
    lead_to_index(body, replaced)
    faults = mended_links(body)
    return page_of(book, body, running_heads(body)), faults


def bound(parts):
    """Return the leaves in order, each part opened by its own leaf."""
    pieces, number = [], 0
    for caption, leaves in parts:
        if caption:
            number += 1
            pieces.append(part_opening(number, caption, leaves))
        pieces += leaves
    return pieces


def running_heads(body):
    """Give a leaf a kind of page of its own, with its title at the head; return the rules.

    Solutions share theirs, which the styles describe.
    """
    rules = []
    for n, section in enumerate(body.select("section.leaf:not(.solutions)")):
        title = " ".join(section.h2.get_text(" ", strip=True).split())
        title = re.sub(r"\\[()]", "", title).replace("\\", "\\\\").replace('"', '\\"')
        section["style"] = f"page: leaf-{n}"
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
