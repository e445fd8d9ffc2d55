"""What stands before the text: the title page, the contents, and the leaf that opens a part."""

import math
from collections import Counter
from html import escape

from .markup import parsed, title_of
from .places import page_number

SHARED = 4  # chapters; a title that more of them have tells nothing in the contents


def cover(said):
    """Return the title page."""
    waves = "".join(f'<polyline points="{wave(n)}"/>' for n in range(6))
    return parsed(
        '<section class="cover"><svg viewBox="0 0 640 258" role="img" '
        f'aria-label="Six waves, each twice as long as the one above">{waves}</svg>'
        f'<p class="title">{escape(said.title)}</p>'
        f'<p class="subtitle">{escape(said.subtitle)}</p>'
        f'<p class="author">{escape(said.author)}</p>'
        f'<div class="imprint"><p>© {escape(said.year)} {escape(said.author)}</p>'
        f"{said.licence}</div></section>"
    )


def wave(n):
    """Return the points of a wave that is 2**n times as long as the first."""
    return " ".join(
        f"{x},{21.5 + 43 * n - 16 * math.sin(x * math.tau / 20 / 2**n):.1f}" for x in range(641)
    )


def contents(parts):
    """Return the table of contents; the printer writes the pages in."""
    section = parsed('<section class="contents" id="contents"><h1>Contents</h1><ul></ul></section>')
    bearers = Counter(title for _, leaves in parts for leaf in leaves for title in titles(leaf))
    number = 0
    for caption, leaves in parts:
        if caption:
            number += 1
            section.ul.append(entry(f"part-{number}", caption, "part-name"))
        for leaf in leaves:
            section.ul.append(entry(leaf["id"], leaf.h2, "chapter"))
            for title, head in titles(leaf).items():
                if bearers[title] <= SHARED:
                    section.ul.append(entry(head["id"], head, "section"))
    return section


def titles(leaf):
    """Return the titles of a leaf's sections: what each says, and the title itself."""
    return {head.get_text(): head for head in leaf.find_all("h3") if head.get("id")}


def part_opening(number, caption, leaves):
    """Return a part's first leaf: its name, and its chapters with their pages."""
    section = parsed(
        f'<section class="part" id="part-{number}"><h1>{escape(caption)}</h1><ul></ul></section>'
    )
    for leaf in leaves:
        section.ul.append(entry(leaf["id"], leaf.h2, "chapter"))
    return section


def entry(target, title, kind):
    """Return a line of the contents: a link, its leader and the place of the page number."""
    line = parsed(
        f'<li class="{kind}"><a href="#{target}"><span class="what"></span>'
        f'<span class="leader"></span>{page_number(target)}</a></li>'
    )
    for child in [title] if isinstance(title, str) else title_of(title):
        line.find(class_="what").append(child)
    return line
