"""Links, and the page numbers that stand for them where nobody can press."""

import re
from collections import Counter

from .pdf import bare


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
    said = Counter()
    for place in leaves.soup.select(".to-solution .page-of, .on-page .page-of"):
        link = place.find_parent("a")
        target = link["href"][1:] if link else place["data-of"]
        words = bare(place.find_parent(["p", "li", "dd"]).get_text())
        before = words[: words.find("000")][-24:]
        if words.count("000") == 1 and len(before) > 8 and "\\" not in before:
            said[f"{before}{leaves.places.get(target)}"] += 1
    return [
        f"not said {often} times: {words!r}"
        for words, often in said.items()
        if sum(text.count(words) for text in leaves.bare_texts) < often
    ]
