"""What is written on the pages: no raw TeX, each caption by its picture, every number."""

import re
from collections import Counter

from bs4 import BeautifulSoup

from .pdf import bare, beginning

EVERY = 6  # chapters, one is read for its code: a page takes a tenth of a second

RAW_TEX = re.compile(r"\\[()\[\]]|\\[a-zA-Z]{2,}|\$\$")


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


def uncopied(leaves):
    """List the titles that a viewer copies letter by letter, and code without its spaces."""
    pages = [" ".join(text.split()) for text in leaves.texts]
    found = []
    for box in leaves.soup.select(".contents, .part"):
        opens = box["id"] in leaves.places  # no link leads to the contents, which begin the book
        first, last = leaves.chapter(box["id"]) if opens else (1, leaves.starts[0] - 1)
        for line in box.select(".what"):
            title = " ".join(beginning(line).split())
            if not any(title in page for page in pages[first - 1 : last]):
                found.append(f"a title that falls into letters: {title}")
    for leaf in leaves.soup.select("section.leaf:not(.solutions)")[::EVERY]:
        first, last = leaves.chapter(leaf["id"])
        printed = {
            line.rstrip()
            for page in leaves.reader.pages[first - 1 : last]
            for line in page.extract_text().splitlines()
        }
        code = "\n".join(pre.get_text() for pre in leaf.select(".highlight pre"))
        lines = filter(None, map(str.rstrip, code.splitlines()))
        found += [f"code: {line}" for line in lines if line not in printed]
    return found


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


def lost_numbers(leaves):
    """List the numbered equations whose number stands on no page of their own chapter."""
    found = []
    for number in leaves.soup.select("div.math .eqno"):
        words = number.get_text(strip=True)
        chapter = number.find_parent("section", class_="leaf")["id"].removesuffix(":solutions")
        first, last = leaves.chapter(chapter)
        if not any(words in text.split() for text in leaves.texts[first - 1 : last]):
            found.append(f"equation {words} of {chapter}")
    return found


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
