"""The printed book, leaf by leaf: what each check finds, in words.

The one HTML page that was printed says what has to be there; the PDF says what is.
"""

import re
from collections import Counter
from functools import cached_property
from pathlib import Path

import numpy as np
import pypdfium2
from bs4 import BeautifulSoup
from pypdf import PdfReader

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "_build" / "singlehtml" / "book.html"
TARGET = ROOT / "_build" / "pdf" / "waves-that-count.pdf"

MM = 72 / 25.4  # points
SCALE = 2  # pixels a point
BLOCK = (23.0, 24.0, 187.0, 272.0)  # mm: left, top, right and bottom of the text
FOLIO = (10.0, 18.0, 279.0, 289.0)  # mm: between these stand the running head and the page number
DARK, SHADE = 150, 253  # grey levels: ink is darker than the first, a box's ground than the second
RAW_TEX = re.compile(r"\\[()\[\]]|\\[a-zA-Z]{2,}|\$\$")


def bare(text):
    """Leave out what a PDF does not keep: white space, and hyphens at the end of a line."""
    return re.sub(r"[\s\u00ad\u2010\ufffe-]+", "", text)


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

    @cached_property
    def faults(self):
        """What the pixels of each page show: kind of fault, page and words."""
        found, widest = [], 0
        for number, page in enumerate(self.document, 1):
            grey = np.asarray(page.render(scale=SCALE, grayscale=True).to_numpy()).squeeze()
            found += [(kind, f"page {number}: {words}") for kind, words in looked_at(grey)]
            widest = max(widest, np.flatnonzero((grey < SHADE).any(axis=0)).max(initial=0))
            page.close()
        if widest / (MM * SCALE) < BLOCK[2] - 3:
            found.append(("margins", "no line reaches the right edge: all is printed smaller"))
        return found

    def of_kind(self, kind):
        """Return the words of the faults of one kind."""
        return [words for name, words in self.faults if name == kind]


def looked_at(grey):
    """List the faults that a page's pixels show."""
    per = MM * SCALE
    left, top, right, bottom = (round(edge * per) for edge in BLOCK)
    slack = round(1.0 * per)
    rows = [round(edge * per) for edge in FOLIO]
    ink = grey < SHADE
    found = []
    for what, area in [
        ("left margin", ink[:, : left - slack]),
        ("right margin", ink[:, right + slack :]),
        ("above the running head", ink[: rows[0]]),
        ("below the running head", ink[rows[1] : top - slack]),
        ("above the page number", ink[bottom + slack : rows[2]]),
        ("below the page number", ink[rows[3] :]),
    ]:
        if area.any():
            found.append(("margins", f"ink in the {what}"))
    block = grey[top:bottom, left:right]
    if (block < DARK).sum() < 40 * SCALE:
        found.append(("blank", "nothing on it"))
    return found + [("boxes", words) for words in empty_boxes(block, per)]


def empty_boxes(block, per):
    """List the tinted boxes of a page, three millimetres high or more, without any ink."""
    tinted = ((block > 230) & (block < SHADE)).mean(axis=1) > 0.5
    edges = np.flatnonzero(np.diff(np.concatenate([[0], tinted.astype(np.int8), [0]])))
    found = []
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        if end - start < 3 * per:
            continue
        inside = block[start:end, round(2 * per) : -round(2 * per)]
        if not (inside < DARK).any():
            found.append(f"a box without ink, {start / per + BLOCK[1]:.0f} mm from the top")
    return found


# --- checks of what is written -----------------------------------------------------------------


def raw_tex(leaves):
    """List the TeX that a page shows, except where the book's code has it."""
    in_code = Counter()
    for code in leaves.soup.find_all(["pre", "code"]):
        in_code.update(RAW_TEX.findall(code.get_text()))
    return [
        f"page {number}: {found}"
        for number, text in enumerate(leaves.texts, 1)
        for found in RAW_TEX.findall(text)
        if found not in in_code
    ]


def lost_captions(leaves):
    """List the captions that are missing or not on their picture's page; a picture has but one."""
    pictures = {}
    for alt, pages in leaves.figures:
        pictures.setdefault(bare(alt), []).append(pages)
    found = []
    for figure in leaves.soup.find_all("figure"):
        picture, caption = figure.find(["img", "svg"]), figure.figcaption
        if not picture or not caption:
            found.append(f"a figure without picture or caption: {figure.get('id')}")
            continue
        words = bare(beginning(caption))
        on = {n for n, text in enumerate(leaves.bare_texts, 1) if words in text}
        alt = picture.get("alt") or picture.get("aria-label")
        sheets = pictures.get(bare(alt), [])
        if not on:
            found.append(f"no page has the caption {words!r}")
        elif not sheets:
            found.append(f"no picture for the caption {words!r}")
        elif not any(len(pages) == 1 and pages <= on for pages in sheets):
            found.append(f"{words!r}: caption on {sorted(on)}, picture on {sheets}")
    return found


def beginning(element):
    """Return an element's text up to its first formula."""
    said = []
    for piece in element.descendants:
        if getattr(piece, "name", None) and "math" in piece.get("class", []):
            break
        if isinstance(piece, str):
            said.append(piece)
    return "".join(said)


def lost_numbers(leaves):
    """List the numbered equations whose number stands on no page of their own chapter."""
    found = []
    for number in leaves.soup.select("div.math .eqno"):
        words = number.get_text(strip=True)
        chapter = number.find_parent("section", class_="leaf")["id"].removesuffix(":solutions")
        first, last = chapter_pages(leaves, chapter)
        if not any(words in text.split() for text in leaves.texts[first - 1 : last]):
            found.append(f"equation {words} of {chapter}")
    return found


def chapter_pages(leaves, chapter):
    """Return the first and the last page of a chapter."""
    first = leaves.places[chapter]
    return first, next((start - 1 for start in leaves.starts if start > first), len(leaves.texts))


def wrong_contents(leaves):
    """List the entries of the contents whose printed number is not the page of their heading."""
    first, last = chapter_pages(leaves, leaves.soup.select_one("section.leaf")["id"])[0], 0
    printed = "".join(
        text.removeprefix(str(number))
        for number, text in enumerate(leaves.bare_texts[1 : first - 1], 2)
    )
    found, at = [], 0
    for line in leaves.soup.select(".contents li"):
        title = bare(beginning(line.select_one(".what")))
        match = re.compile(re.escape(title) + r"\D*?(\d+)").search(printed, at)
        if not match:
            found.append(f"not in the contents: {title}")
            continue
        target = line.a["href"][1:]
        page = leaves.places.get(target, 0)
        at = match.start(1) + len(str(page))
        number = printed[match.start(1) : at]
        heading = page and title in leaves.bare_texts[page - 1]
        if number != str(page) or not heading:
            found.append(f"{title}: the contents say {match[1]}, its place is on page {page}")
        if page < last:
            found.append(f"{title}: on page {page}, before the entry above it")
        last = page
    return found


def dead_links(leaves):
    """List the links of the PDF that lead to no page, and those of the book that it has lost."""
    found, led = [], Counter()
    for number, page in enumerate(leaves.reader.pages, 1):
        for note in page.get("/Annots") or []:
            note = note.get_object()
            if note.get("/Subtype") != "/Link":
                continue
            action = note.get("/A", {})
            target = note.get("/Dest", action.get("/D"))
            if target is None:
                if not re.match(r"(https?|mailto):", str(action.get("/URI", ""))):
                    found.append(f"page {number}: a link to {action.get('/URI')}")
                continue
            name = str(target).removeprefix("/")
            led[name] += 1
            if name not in leaves.places:
                found.append(f"page {number}: no such place: {name}")
    wanted = {link["href"][1:] for link in leaves.soup.select('a[href^="#"]')}
    return found + [f"no link left to {name}" for name in sorted(wanted - set(led))]


def wrong_page_numbers(leaves):
    """List the places whose page the book names and which are elsewhere."""
    found = []
    for place in leaves.soup.select(".to-solution .page-of, .on-page .page-of"):
        link = place.find_parent("a")
        target = link["href"][1:] if link else place["data-of"]
        words = bare(place.find_parent(["p", "li", "dd"]).get_text())
        before = words[: words.find("000")][-24:]
        said = f"{before}{leaves.places.get(target)}"
        legible = words.count("000") == 1 and len(before) > 8 and "\\" not in before
        if legible and not any(said in text for text in leaves.bare_texts):
            found.append(f"no page says {said!r}")
    return found


def misplaced_solutions(leaves):
    """List the solutions that are missing, without a way back, or not behind all chapters."""
    found = []
    opened = [part["id"] for part in leaves.soup.select(".part") if part.h1.text == "Solutions"]
    if not opened:
        return ["there is no part with the solutions"]
    start = leaves.places[opened[0]]
    for exercise in leaves.soup.select("div.exercise"):
        link = exercise.select_one(".to-solution a")
        if link is None:
            found.append(f"no solution to {exercise['id']}")
        elif leaves.places.get(link["href"][1:], 0) <= start:
            found.append(f"not behind the chapters: {link['href'][1:]}")
    for solution in leaves.soup.select("div.solution"):
        back = solution.select_one("p.admonition-title a")
        if back is None or leaves.places.get(back["href"][1:], start) >= start:
            found.append(f"no way back from {solution['id']}")
        title = bare(beginning(solution.select_one("p.admonition-title")).partition("(page")[0])
        if not any(title in text for text in leaves.bare_texts[start:]):
            found.append(f"no page has {title!r}")
    return found


def folded(leaves):
    """List what nobody can open on paper, and boxes with a name and nothing in them."""
    found = [f"on paper: {e.name}" for e in leaves.soup.select("details, input, button, audio")]
    for box in leaves.soup.select(".answer, .admonition, .highlight, .cell, figure"):
        said = box.get_text(strip=True).removeprefix("Answer")
        if not said and not box.find(["img", "svg"]):
            found.append(f"an empty box: {' '.join(box['class'])}")
    return found


def poor_outline(leaves):
    """List the chapters that the outline lacks or leads past, and what the file does not say."""
    entries, waiting = [], list(leaves.reader.outline)
    while waiting:
        entry = waiting.pop(0)
        if isinstance(entry, list):
            waiting = [*entry, *waiting]
        else:
            page = leaves.reader.get_destination_page_number(entry) + 1
            entries.append((bare(entry.title), page))
    found = []
    for head in leaves.soup.select(".leaf > h2, .leaf > section > h2, .part > h1"):
        title = bare(beginning(head))
        place = head.find_parent(class_=["leaf", "part"])["id"]
        if not any(e.startswith(title) and p == leaves.places.get(place) for e, p in entries):
            found.append(f"not in the outline: {title}")
    root = leaves.reader.trailer["/Root"]
    said = {
        "title": leaves.reader.metadata.title == leaves.soup.title.text,
        "author": bool(leaves.reader.metadata.author),
        "language": root.get("/Lang") == leaves.soup.html["lang"],
        "tags": root.get("/MarkInfo", {}).get("/Marked"),
        "descriptions of formulas": len(leaves.figures) >= len(leaves.soup.select(".math")),
    }
    return found + [f"the file lacks its {what}" for what, there in said.items() if not there]


def other_numbers(leaves, html):
    """List the numbers that differ from those of the HTML book, place by place."""
    found = []
    for leaf in leaves.soup.select("section.leaf"):
        file = html / (leaf["id"].replace(".", "/") + ".html")
        if not file.is_file():
            continue  # solutions and the index have no page of their own
        original = BeautifulSoup(file.read_text(encoding="utf-8"), "html.parser")
        for kind in (".caption-number", ".eqno", ".section-number"):
            of_page = [e.get_text(strip=True) for e in original.select(f"article {kind}")]
            of_leaf = [e.get_text(strip=True) for e in leaf.select(kind)]
            solutions = leaves.soup.find(id=f"{leaf['id']}:solutions")
            if solutions and kind != ".section-number":
                of_leaf += [e.get_text(strip=True) for e in solutions.select(kind)]
            lost = Counter(n.rstrip("#") for n in of_page) - Counter(of_leaf)
            if lost:
                found.append(f"{leaf['id']}: {kind} {sorted(lost)}")
    return found


CHECKS = {
    "raw TeX": raw_tex,
    "captions": lost_captions,
    "equation numbers": lost_numbers,
    "contents": wrong_contents,
    "links": dead_links,
    "page numbers": wrong_page_numbers,
    "solutions": misplaced_solutions,
    "folded": folded,
    "outline": poor_outline,
    "blank": lambda leaves: leaves.of_kind("blank"),
    "margins": lambda leaves: leaves.of_kind("margins"),
    "boxes": lambda leaves: leaves.of_kind("boxes"),
}
