"""The index of the printed book: it has pages where the screen's has titles."""

from html import escape
from urllib.parse import unquote

from .markup import parsed
from .places import PAGE, anchor, page_number

INDEX = "printed-index"  # where it stands


def without_indexes(parts):
    """Return the parts without the screen's index, and the names of the leaves left out."""
    out = [leaf["id"] for _, leaves in parts for leaf in leaves if is_index(leaf)]
    kept = [(caption, [s for s in leaves if s["id"] not in out]) for caption, leaves in parts]
    return kept, out


def is_index(leaf):
    """Whether a leaf is the index of the screen, where entries lead to titles: ours has pages."""
    return not leaf.h2 or leaf.select_one("ul.index-entries") is not None


def lead_to_index(body, replaced):
    """Let what leads to a leaf that was left out lead to the index."""
    for link in body.select("a[href], .page-of"):
        kind = "href" if link.name == "a" else "data-of"
        if link[kind].removeprefix("#").partition(":")[0] in replaced:
            link[kind] = ("#" if kind == "href" else "") + INDEX


def drawn_index(groups):
    """Return the index: each entry with the pages that it leads to."""
    if not groups:
        return None
    lines = []
    for letter, entries in groups:
        lines.append(f'<p class="letter">{escape(letter)}</p>')
        for name, (links, below, _) in entries:
            lines.append(f"<p>{escape(name)}{pages_of(links)}</p>")
            lines += [f'<p class="below">{escape(sub)}{pages_of(at)}</p>' for sub, at in below]
    return parsed(
        f'<section class="leaf" id="{INDEX}"><h2>Index</h2>'
        f'<div class="printed-index">{"".join(lines)}</div></section>'
    )


def pages_of(links):
    """Return the pages of an entry of the index."""
    found = []
    for _, uri in links:
        page, _, place = unquote(uri).removeprefix(PAGE).partition("#")
        name = anchor(page, place)
        found.append(f'<span class="at">, <a href="#{name}">{page_number(name)}</a></span>')
    return "".join(found)
