"""The ways into the book: the table of contents, the outline, and what the file says of itself."""

import re

from .pdf import bare, beginning


def wrong_contents(leaves):
    """List the entries of the contents whose printed number is not the page of their heading."""
    first, last = leaves.chapter(leaves.soup.select_one("section.leaf")["id"])[0], 0
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
