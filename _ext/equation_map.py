"""The directive ``{equation-map}``: each equation's chapter, functions and tests, at build time.

A table says all of it, with links; a small picture stands above the table, for those who see it.
From each equation edges lead to its functions and to its tests, which the picture counts by file.
"""

from html import escape
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

from posenc.lab import equations

HEADS = ("Chapter", "Equation", "Function", "Tests, by file")
PLACES = (0, 1, 2, 2)  # functions and tests share a place: the former above the latter
SAYS = "Graph of chapters, equations, functions and tests; the table below says it in words"
STYLE = """
.equation-graph{overflow-x:auto;margin-bottom:1rem}
.equation-graph svg{max-width:none;font:10.5px monospace}
.equation-graph text{fill:currentColor}
.equation-graph path{fill:none;stroke:currentColor;opacity:.45}
.equation-graph path.test{stroke-dasharray:3 3}
"""
ROW, GAP, LETTER, TOP = 18, 100, 6.4, 30  # in pixels; a letter's width is that of the widest font


class EquationMap(SphinxDirective):
    """Draw and list every equation that a built page numbers."""

    def run(self):
        """Return the graph and the table."""
        self.env.note_reread()  # Sphinx does not watch the tests and the package
        built = self.env.found_docs
        found = [e for e in equations.read(Path(self.env.srcdir)) if e.places]
        found = [e for e in found if e.places[0] in built]
        if not found:
            return [nodes.paragraph("", "No equation is numbered yet.")]
        return [nodes.raw("", drawn(found), format="html"), self.table(found)]

    def table(self, found):
        """Return one row for each equation."""
        table = nodes.table(classes=["equation-map"])
        group = nodes.tgroup(cols=4)
        group += [nodes.colspec(colwidth=width) for width in (12, 18, 30, 40)]
        group += nodes.thead(
            "", row([words("Equation"), words("Chapter"), words("Functions"), words("Tests")])
        )
        body = nodes.tbody()
        for equation in found:
            page = "/" + equation.places[0]
            functions = [
                self.link("py", "obj", name, nodes.literal, name.removeprefix("posenc."))
                for name in equation.functions
            ]
            tests = [breakable(test.removeprefix("tests/")) for test in equation.tests]
            body += row(
                [
                    [
                        self.link("math", "eq", equation.label, nodes.literal),
                        nodes.literal("", equation.label),
                    ],
                    [self.link("std", "doc", page, nodes.inline)],
                    functions or words("stated in the chapter"),
                    tests or words("none"),
                ]
            )
        group += body
        table += group
        return table

    def link(self, domain, kind, target, shape, written=None):
        """Return a reference that Sphinx resolves, and warns of when it leads nowhere."""
        return addnodes.pending_xref(
            "",
            shape("", written or target),
            refdoc=self.env.docname,
            refdomain=domain,
            reftype=kind,
            reftarget=target,
            refexplicit=False,
            refwarn=True,
        )


def words(text):
    """Return plain words as the content of a cell."""
    return [nodes.Text(text)]


def breakable(name):
    """Return a name as code that may go on in a next line after an underscore."""
    code = escape(name).replace("_", "_<wbr>").replace("::", "::<wbr>")
    return nodes.raw("", f"<code>{code}</code>", format="html")


def row(cells):
    """Return a table's row; what a cell holds stands one below the other."""
    return nodes.row(
        "", *(nodes.entry("", *(nodes.paragraph("", "", item) for item in cell)) for cell in cells)
    )


def drawn(found):
    """Return the graph as SVG: chapters, then equations, then functions above tests."""
    columns, edges = layers(found)
    height = TOP + ROW * max(
        len(columns[0]), len(columns[1]), len(columns[2]) + 2 + len(columns[3])
    )
    widths = [
        LETTER
        * max(
            len(word)
            for n, at in enumerate(PLACES)
            if at == place
            for word in (HEADS[n], *columns[n].values())
        )
        for place in range(3)
    ]
    lefts = [sum(widths[:place]) + GAP * place for place in range(3)]
    step = (height - TOP) / (len(columns[2]) + 2 + len(columns[3]))
    tests = TOP + step * (len(columns[2]) + 2)
    tops = (TOP, TOP, TOP, tests)
    steps = [(height - TOP) / max(len(column), 1) for column in columns[:2]] + [step, step]
    rows, pieces = [], []
    for n, column in enumerate(columns):
        left = lefts[PLACES[n]]
        rows.append({key: tops[n] + steps[n] * (m + 0.5) for m, key in enumerate(column)})
        pieces.append(
            f'<text x="{left:.0f}" y="{tops[n] - 16:.0f}" font-weight="bold">{HEADS[n]}</text>'
        )
        pieces += [
            f'<text x="{left:.0f}" y="{rows[n][key] + 4:.0f}">{escape(name)}</text>'
            for key, name in column.items()
        ]
    for (start, tail), (end, tip) in edges:
        here, there = PLACES[start], PLACES[end]
        x0 = lefts[here] + LETTER * len(columns[start][tail]) + 4
        x1, x2 = lefts[here] + widths[here] + 4, lefts[there] - 4
        y0, y1, bend = rows[start][tail], rows[end][tip], f"{(x1 + x2) / 2:.0f}"
        curve = f"M{x0:.0f} {y0:.0f}H{x1:.0f}C{bend} {y0:.0f} {bend} {y1:.0f} {x2:.0f} {y1:.0f}"
        kind = ' class="test"' if end == 3 else ""
        pieces.append(f'<path{kind} d="{curve}"/>')
    wide, high = f"{lefts[2] + widths[2]:.0f}", f"{height + 8:.0f}"
    return (
        f"<style>{STYLE}</style>\n"
        f'<div class="equation-graph" tabindex="0" role="group" aria-label="{SAYS}">'
        f'<svg aria-hidden="true" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}">'
        f"{''.join(pieces)}</svg></div>\n"
    )


def layers(found):
    """Return the four columns, key to written name in order of appearance, and the edges."""
    columns, edges, borne = ({}, {}, {}, {}), {}, {}
    for equation in found:
        page, label = equation.places[0], equation.label
        columns[0][page] = page.rpartition("/")[2]
        columns[1][label] = label.removeprefix("eq-")
        edges[(0, page), (1, label)] = None
        for name in equation.functions:
            columns[2][name] = name.removeprefix("posenc.")
            edges[(1, label), (2, name)] = None
        for test in equation.tests:
            file = test.partition("::")[0]
            borne.setdefault(file, set()).add(test)
            edges[(1, label), (3, file)] = None
    for file, tests in borne.items():
        columns[3][file] = f"{file.removeprefix('tests/')}: {len(tests)}"
    return columns, list(edges)


def setup(app):
    """Offer the directive."""
    app.add_directive("equation-map", EquationMap)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
