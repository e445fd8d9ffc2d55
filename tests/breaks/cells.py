"""Faults of a notebook: the first cell that lets itself be changed is."""

from __future__ import annotations

import json
import re
from collections.abc import Callable


def in_cells(change: Callable[[dict], bool]) -> Callable[[str], str]:
    """Change the first cell of a notebook that lets itself be changed."""

    def put(text: str) -> str:
        notebook = json.loads(text)
        if not any(change(cell) for cell in notebook["cells"]):
            raise SystemExit("nothing to break: no such cell")
        return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"

    return put


def another_digit(cell: dict) -> bool:
    """Change the last digit that a cell has printed."""
    for output in cell.get("outputs", []):
        text = "".join(output.get("text", []))
        found = list(re.finditer(r"\d", text))
        if found:
            at = found[-1].start()
            digit = str((int(text[at]) + 1) % 10)
            output["text"] = [text[:at] + digit + text[at + 1 :]]
            return True
    return False


def another_curve(cell: dict) -> bool:
    """Move one point of one curve of a stored figure by one unit."""
    for output in cell.get("outputs", []):
        picture = "".join(output.get("data", {}).get("image/svg+xml", []))
        point = re.search(r"\nL (\d+)", picture)
        if point:
            moved = f"\nL {int(point.group(1)) + 1}"
            output["data"]["image/svg+xml"] = picture.replace(point.group(0), moved, 1)
            return True
    return False


def misspelt_macro(cell: dict) -> bool:
    r"""Write \omegga for the first \omega of a text cell."""
    text = "".join(cell["source"])
    if cell["cell_type"] != "markdown" or r"\omega" not in text:
        return False
    cell["source"] = text.replace(r"\omega", r"\omegga", 1)
    return True


def no_alt_text(cell: dict) -> bool:
    """Take the alt text from a figure."""
    return cell["metadata"].get("mystnb", {}).pop("image", None) is not None


def a_label_more(cell: dict) -> bool:
    """Number an equation that no test bears."""
    if cell["cell_type"] != "markdown":
        return False
    cell["source"] = "".join(cell["source"]) + "\n\n```{math}\n:label: eq-untested\nx = x\n```"
    return True


def no_row(cell: dict) -> bool:
    """Take the head from a chapter's row of the table through the book."""
    text = "".join(cell["source"])
    cell["source"] = text.replace("| step | what it adds |", "| step | adds |")
    return "| step | what it adds |" in text
