"""The one table through the book: each chapter's rows of it, read from the notebooks."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

from posenc.lab import equations

__all__ = ["COLUMNS", "chapters", "rows", "tables"]

COLUMNS = (
    "step",
    "what it adds",
    "what it guarantees",
    "cost",
    "where it breaks",
    "who uses it",
)
CHAPTER = re.compile(r"book/\d-")
GLUED = re.compile(r"\{glue:text\}`([^`:]+)[^`]*`")


def chapters(root: Path) -> list[Path]:
    """Return the notebooks of the chapters in the order of ``_toc.yml``."""
    named = filter(CHAPTER.match, equations.contents(root))
    return [path for name in named if (path := root / f"{name}.ipynb").exists()]


def tables(text: str) -> Iterator[list[list[str]]]:
    """Yield each table of MyST whose header is `COLUMNS`: its rows, each a list of cells."""
    lines = iter(text.splitlines())
    for line in lines:
        if tuple(_cells(line)) == COLUMNS:
            next(lines, None)  # the line of dashes
            found = []
            for row in lines:
                if not row.startswith("|"):
                    break
                found.append(_cells(row))
            yield found


def rows(notebook: Path) -> list[list[str]]:
    """Return a chapter's rows, each number that a cell has glued written out."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    prose = ["".join(c["source"]) for c in cells if c["cell_type"] == "markdown"]
    found = [row for text in prose for table in tables(text) for row in table]
    numbers = dict(_glued(cells))
    return [[_with_numbers(cell, numbers) for cell in row] for row in found]


def _with_numbers(cell: str, numbers: dict[str, str]) -> str:
    """Return a cell whose glued numbers are written out; they are known in their chapter only."""
    return GLUED.sub(lambda asked: numbers[asked[1]], cell)


def _cells(line: str) -> list[str]:
    """Return the cells of a table's line; an escaped bar parts nothing."""
    if not line.startswith("|"):
        return []
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def _glued(cells: list[dict]) -> Iterator[tuple[str, str]]:  # type: ignore[type-arg]
    for cell in cells:
        for output in cell.get("outputs", []):
            name = output.get("metadata", {}).get("scrapbook", {}).get("name")
            for kind, value in output.get("data", {}).items():
                if name and kind.endswith("text/plain"):
                    yield name, str(ast.literal_eval("".join(value)))
