"""Where things are in the one file: the names of places, links to them, and their page numbers."""

import re
from html import escape
from urllib.parse import unquote

from .markup import parsed

PAGE = "#document-"  # how the builder names a page in a link; what follows is an id on that page
NAMING = ("id", "for", "headers", "aria-labelledby", "aria-describedby", "aria-controls")
PLAIN = ["h1", "h2", "h3", "h4", "h5", "h6", "figcaption"]  # without "(page 12)"


def anchor(page, place=""):
    """Return the id that a place on a page has in the whole book."""
    return page.replace("/", ".") + (f":{place}" if place else "")


def page_number(target):
    """Return the place where the printer writes the page of a target."""
    return f'<span class="page-of" data-of="{escape(target)}">000</span>'


def on_page(target, word="page"):
    """Return the page of a target for those who cannot press a link."""
    return f'<span class="on-page"> ({word}\u00a0{page_number(target)})</span>'


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
                word = "p." if link.find_parent("table") else "page"
                link.append(parsed(on_page(anchor(page, place), word)))
        elif href.startswith("#"):
            link["href"] = "#" + anchor(name, href[1:])


def name_by_title(title):
    """Let a section's names stand at its title: its box may begin on the page before."""
    section = title.parent
    if section.name != "section" or not section.get("id"):
        return
    for name in title.find_previous_siblings("span", id=True):
        title.insert(0, name.extract())
    title["id"] = section["id"]
    del section["id"]


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
