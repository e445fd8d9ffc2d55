"""The directive ``{summary-table}``: the rows that the chapters end with, in one table.

The cells are read as MyST, so that formulas, citations and references in them work here too. Every
table with these columns, a chapter's own too, gets a class: on a phone its rows become cards.
"""

from os import path
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective

from posenc.lab import summary


class SummaryTable(SphinxDirective):
    """List the rows of every chapter, each step with a link to where it is taken."""

    def run(self):
        """Return the table; a chapter without a row is left to the checks of its source."""
        root, here = Path(self.env.srcdir), Path(self.env.doc2path(self.env.docname)).parent
        lines = [line(summary.COLUMNS), line(["---"] * len(summary.COLUMNS))]
        for chapter in summary.chapters(root):
            self.env.note_dependency(str(chapter))
            target = Path(path.relpath(chapter, here)).as_posix()
            lines += [line([f"[{step}]({target})", *rest]) for step, *rest in summary.rows(chapter)]
        if len(lines) == 2:
            return [nodes.paragraph("", "No chapter has a row yet.")]
        box = nodes.container()
        self.state.nested_parse(StringList(lines, source="summary"), 0, box)
        return box.children


def line(cells):
    """Return a line of a table in MyST."""
    return f"| {' | '.join(cells)} |"


class NameTables(SphinxTransform):
    """Mark the tables with these columns."""

    default_priority = 500

    def apply(self):
        """Add the class ``summary``."""
        for table in self.document.findall(nodes.table):
            heads = [entry.astext() for head in table.findall(nodes.thead) for entry in head[0]]
            if tuple(heads) == summary.COLUMNS:
                table["classes"].append("summary")


def setup(app):
    """Offer the directive, and mark the tables."""
    app.add_directive("summary-table", SummaryTable)
    app.add_transform(NameTables)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
