"""The book as the checks read it: pages, their prose, their cells, what cells have shown."""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from posenc.lab import notebooks, terms

ROOT = Path(__file__).parents[2]
BOOK = ROOT / "book"
SKIPPED = {".ipynb_checkpoints", "_build"}


@dataclass(frozen=True)
class Page:
    """One page of the book: a notebook, or a MyST page without code."""

    path: Path

    @property
    def name(self):
        """Return its short name: ``2-waves/formula``."""
        inside = self.path.is_relative_to(BOOK)
        return (self.path.relative_to(BOOK) if inside else self.path).with_suffix("").as_posix()

    @cached_property
    def text(self):
        """Return the stored file."""
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def cells(self):
        """Return all cells; a page without code is one cell of prose."""
        if self.path.suffix == ".ipynb":
            return notebooks.read(self.path).cells
        return [Prose(self.text)]

    @property
    def code(self):
        """Return the code cells."""
        return [cell for cell in self.cells if cell.cell_type == "code"]

    @property
    def prose(self):
        """Return the text of all prose, cell after cell."""
        return "\n\n".join(cell.source for cell in self.cells if cell.cell_type == "markdown")


@dataclass(frozen=True)
class Prose:
    """A page without code, in the shape of a notebook's cell."""

    source: str
    cell_type: str = "markdown"


def pages(*suffixes):
    """Return the book's pages with these suffixes, in the order of their paths."""
    found = [path for path in sorted(BOOK.rglob("*")) if path.suffix in suffixes]
    return [Page(path) for path in found if not SKIPPED & set(path.parts)]


GLOSSARY = terms.entries((BOOK / "appendix/glossary.md").read_text(encoding="utf-8"))
NOTEBOOKS = pages(".ipynb")
PAGES = pages(".ipynb", ".md")
CHAPTERS = [page for page in NOTEBOOKS if re.match(r"[1-7]-", page.name)]


FENCE = re.compile(r"\s*(`{3,}|~{3,}|:{3,})\s*(?:\{([^}]+)\})?(.*)")
NOT_PROSE = {"code", "code-block", "code-cell", "eval-rst", "bibliography", "tableofcontents"}


def lines(text):
    """Yield what each line of MyST is, prose, math or code, and the line; fences are left out."""
    open_fences = []
    for line in text.splitlines():
        fence, kind = open_fences[-1] if open_fences else ("", "prose")
        found = FENCE.fullmatch(line)
        if found and fence and found[1].startswith(fence) and not found[2] and not found[3].strip():
            open_fences.pop()
        elif found and kind == "prose":
            name = found[2] or ("note" if found[1][0] == ":" else "code")
            inner = "math" if name == "math" else "code" if name in NOT_PROSE else "prose"
            open_fences.append((found[1], inner))
            yield "prose", found[3] if found[2] and inner == "prose" else ""
        elif fence and re.match(r"\s*:[\w-]+:(?!`)", line):
            yield kind, ""  # an option
        else:
            yield kind, line


def tags(cell):
    """Return the tags of a cell."""
    return cell.metadata.get("tags", [])


def figure(cell):
    """Return alt text, caption and name of a cell's figure, empty where they are missing."""
    mystnb = cell.metadata.get("mystnb", {})
    about = mystnb.get("figure", {})
    return mystnb.get("image", {}).get("alt", ""), about.get("caption", ""), about.get("name", "")


def kinds(cell):
    """Return the MIME types of all that a cell shows."""
    return {kind for output in cell.outputs for kind in output.get("data", {})}


def shown(cell):
    """Return the text that a cell shows or glues: printed, plain, HTML, not pictures."""
    texts = []
    for output in cell.outputs:
        texts.append(output.get("text", ""))
        data = output.get("data", {})
        texts += [data[kind] for kind in data if kind.rpartition("/")[0] != "image"]
    return "\n".join(map(str, filter(None, texts)))


def glued(cell):
    """Return the keys that a cell glues."""
    about = [output.get("metadata", {}).get("scrapbook", {}) for output in cell.outputs]
    return [record["name"] for record in about if record]
