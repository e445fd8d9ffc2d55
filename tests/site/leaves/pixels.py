"""What the pixels of a page show: margins with ink in them, empty pages, empty boxes."""

import numpy as np

MM = 72 / 25.4  # points
SCALE = 2  # pixels a point
BLOCK = (23.0, 24.0, 187.0, 272.0)  # mm: left, top, right and bottom of the text
FOLIO = (10.0, 18.0, 279.0, 289.0)  # mm: between these stand the running head and the page number
DARK, SHADE = 150, 253  # grey levels: ink is darker than the first, a box's ground than the second


def seen(document):
    """List the faults of all pages: kind, and words."""
    found, widest = [], 0
    for number, page in enumerate(document, 1):
        grey = np.asarray(page.render(scale=SCALE, grayscale=True).to_numpy()).squeeze()
        found += [(kind, f"page {number}: {words}") for kind, words in looked_at(grey)]
        widest = max(widest, np.flatnonzero((grey < SHADE).any(axis=0)).max(initial=0))
        page.close()
    if widest / (MM * SCALE) < BLOCK[2] - 3:
        found.append(("margins", "no line reaches the right edge: all is printed smaller"))
    return found


def faults_of_kind(kind):
    """Return the check that lists the faults of one kind."""
    return lambda leaves: [words for name, words in leaves.faults if name == kind]


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
