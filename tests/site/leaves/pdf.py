"""A printed book, and the page that it was printed from: what both say, read once."""

import re
from functools import cached_property
from pathlib import Path

import pypdfium2
from bs4 import BeautifulSoup
from pypdf import PdfReader

from . import pixels

BUILT = Path(__file__).parents[3] / "_build"
SOURCE = BUILT / "singlehtml" / "book.html"
TARGET = BUILT / "pdf" / "waves-that-count.pdf"


def bare(text):
    """Leave out what a PDF does not keep: white space, and hyphens at the end of a line."""
    return re.sub(r"[\s\u00ad\u2010\ufffe-]+", "", text)


def beginning(element):
    """Return an element's text up to its first formula."""
    said = []
    for piece in element.descendants:
        if getattr(piece, "name", None) and "math" in piece.get("class", []):
            break
        if isinstance(piece, str):
            said.append(piece)
    return "".join(said)


class Leaves:
    """A printed book and the page it was printed from."""

    def __init__(self, source, target):
        self.source, self.target = source, target
        self.soup = BeautifulSoup(source.read_text(encoding="utf-8"), "html.parser")
        self.reader = PdfReader(target)
        self.document = pypdfium2.PdfDocument(target)

    @cached_property
    def texts(self):
        """The text of each page, as a reader would copy it."""
        return [page.get_textpage().get_text_range() for page in self.document]

    @cached_property
    def bare_texts(self):
        """The same without white space."""
        return [bare(text) for text in self.texts]

    @cached_property
    def places(self):
        """The page of every place that a link leads to, from 1."""
        return {
            name.removeprefix("/"): self.reader.get_destination_page_number(place) + 1
            for name, place in self.reader.named_destinations.items()
        }

    @cached_property
    def starts(self):
        """The pages on which a part or a chapter begins."""
        leaves = self.soup.select(".leaf, .part")
        return sorted(self.places[leaf["id"]] for leaf in leaves if leaf["id"] in self.places)

    @cached_property
    def figures(self):
        """Each picture's description, with the pages that it stands on."""
        pages = {page.indirect_reference.idnum: n for n, page in enumerate(self.reader.pages, 1)}
        found, waiting = [], [self.reader.trailer["/Root"]["/StructTreeRoot"]]
        while waiting:
            element = waiting.pop().get_object()
            kids = element.get("/K", [])
            kids = kids if isinstance(kids, list) else [kids]
            waiting += [kid for kid in kids if not isinstance(kid, int)]
            if element.get("/S") == "/Figure" and "/Alt" in element:
                sheets = [element] + [kid.get_object() for kid in kids if not isinstance(kid, int)]
                at = {pages[s.raw_get("/Pg").idnum] for s in sheets if "/Pg" in s}
                found.append((str(element["/Alt"]), at))
        return found

    def chapter(self, name):
        """Return the first and the last page of a chapter."""
        first = self.places[name]
        return first, next((start - 1 for start in self.starts if start > first), len(self.texts))

    @cached_property
    def faults(self):
        """What the pixels of each page show: kind of fault, and words."""
        return pixels.seen(self.document)
