"""The static map of the book's equations: label, chapter, functions, tests.

It reads text only (notebooks as JSON, code through `ast`): nothing is imported, so that a machine
without torch can draw it, and a broken chapter is still on it.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Equation", "contents", "dangling", "pages", "read"]

LABEL = r"eq-[a-z0-9]+(?:-[a-z0-9]+)*"
# ```{math} with its options, :label: among them, and $$ ... $$ (label)
DIRECTIVE = re.compile(
    rf"^[`:]{{3,}}\{{math\}}[^\n]*\n(?:[ \t]*:[a-z]+:[^\n]*\n)*?"
    rf"[ \t]*:label:[ \t]*({LABEL})[ \t]*$",
    re.MULTILINE,
)
DOLLARS = re.compile(rf"\$\$[ \t]*\(({LABEL})\)")
IN_DOCSTRING = re.compile(rf"``({LABEL})``")
IN_TOC = re.compile(r"^[ \t-]*(?:root|file):[ \t]*(\S+)", re.MULTILINE)
SKIPPED = {"_build", ".ipynb_checkpoints", ".venv"}


@dataclass
class Equation:
    """One label and what is known about it.

    Parameters
    ----------
    label
        As in the book: ``eq-`` and kebab case.
    places
        The pages that number an equation with it: one, or the map dangles. Paths without suffix,
        relative to the root, as Sphinx names documents: ``book/2-waves/shift``.
    functions
        Public names, importable as written, whose docstring names the label.
    tests
        Ids, as pytest writes them without parameters, of the tests that bear the label.
    """

    label: str
    places: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)


def read(root: Path) -> list[Equation]:
    """Return the book's equations in the order of its pages; labels that no page has come last.

    Parameters
    ----------
    root
        The repository: its folders ``book``, ``posenc`` and ``tests`` are read.
    """
    found: dict[str, Equation] = {}

    def at(label: str) -> Equation:
        return found.setdefault(label, Equation(label))

    for page, text in pages(root):
        for label in _labels(text):
            at(label).places.append(page)
    for name, docstring in _functions(root):
        for label in dict.fromkeys(IN_DOCSTRING.findall(docstring)):
            at(label).functions.append(name)
    for test, label in _tests(root):
        at(label).tests.append(test)
    return list(found.values())


def dangling(equations: list[Equation]) -> list[str]:
    """Return one sentence for each edge of the map that leads nowhere; an empty list is right."""
    faults = []
    for equation in equations:
        label, places = equation.label, equation.places
        if len(places) > 1:
            faults.append(f"{label} numbers more than one equation: in {', '.join(places)}.")
        if not places:
            for name in equation.functions:
                faults.append(f"{name} names {label}, which no page of the book numbers.")
            for test in equation.tests:
                faults.append(f"{test} bears {label}, which no page of the book numbers.")
        elif not equation.tests:
            faults.append(f"{label} in {places[0]} has no test that bears it.")
    return faults


def contents(root: Path) -> list[str]:
    """Return the pages that ``_toc.yml`` names, in its order, without suffix."""
    toc = root / "_toc.yml"
    return IN_TOC.findall(toc.read_text(encoding="utf-8")) if toc.exists() else []


def pages(root: Path) -> Iterator[tuple[str, str]]:
    """Yield each page of the book and its prose: in the order of ``_toc.yml``, the others after."""
    order = contents(root)
    found = {}
    for path in sorted((root / "book").rglob("*")):
        if path.suffix in (".ipynb", ".md") and not SKIPPED & set(path.parts):
            found[path.relative_to(root).with_suffix("").as_posix()] = path
    for name in sorted(found, key=lambda name: order.index(name) if name in order else len(order)):
        text = found[name].read_text(encoding="utf-8")
        if found[name].suffix == ".ipynb":
            cells = json.loads(text)["cells"]
            prose = [cell["source"] for cell in cells if cell["cell_type"] == "markdown"]
            text = "\n\n".join(s if isinstance(s, str) else "".join(s) for s in prose)
        yield name, text


def _labels(text: str) -> list[str]:
    hits = [*DIRECTIVE.finditer(text), *DOLLARS.finditer(text)]
    return [hit[1] for hit in sorted(hits, key=lambda hit: hit.start())]


def _modules(folder: Path) -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(folder.rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"), str(path))


def _functions(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the public name and docstring of each public function, class and method."""
    packages = [root / "posenc", *(root / "posenc" / name for name in ("context", "modules"))]
    offering = [*sorted((root / "posenc").glob("[!_]*.py")), *(p / "__init__.py" for p in packages)]
    short = {full: name for path in offering for full, name in _exported(root, path)}
    for path, tree in _modules(root / "posenc"):
        module = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        for owner, node in _defined(tree.body, module):
            own = f"{owner}.{node.name}"
            public = f"{short[owner]}.{node.name}" if owner in short else short.get(own, own)
            yield public, ast.get_docstring(node) or ""


def _exported(root: Path, path: Path) -> Iterator[tuple[str, str]]:
    """Yield the full and the short name of what a file offers from elsewhere.

    A package offers all that it imports, a module what its ``__all__`` lists.
    """
    parts = path.relative_to(root).with_suffix("").parts
    package = parts[-1] == "__init__"
    name = ".".join(parts[:-1] if package else parts)
    statements = ast.parse(path.read_text(encoding="utf-8")).body if path.exists() else []
    listed = {own for statement in statements for own in _listed(statement)}
    for statement in statements:
        if isinstance(statement, ast.ImportFrom) and statement.module:
            home = f"{name}.{statement.module}" if statement.level else statement.module
            for alias in statement.names:
                own = alias.asname or alias.name
                if package or own in listed:
                    yield f"{home}.{alias.name}", f"{name}.{own}"


def _listed(statement: ast.stmt) -> list[str]:
    """Return the names of ``__all__ = [...]``; of any other statement none."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.List):
        return []
    if [ast.unparse(target) for target in statement.targets] != ["__all__"]:
        return []
    return [str(item.value) for item in statement.value.elts if isinstance(item, ast.Constant)]


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _defined(body: list[ast.stmt], owner: str) -> Iterator[tuple[str, Definition]]:
    for node in body:
        if isinstance(node, Definition) and not node.name.startswith("_"):
            yield owner, node
            if isinstance(node, ast.ClassDef):
                yield from _defined(node.body, f"{owner}.{node.name}")


def _tests(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the id of each test and each label that it, its class or its module bears."""
    for path, tree in _modules(root / "tests"):
        marks = [
            node.value
            for node in tree.body
            if isinstance(node, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets)
        ]
        where = path.relative_to(root).as_posix()
        yield from _marked(tree.body, where, [label for mark in marks for label in _borne(mark)])


def _marked(body: list[ast.stmt], where: str, inherited: list[str]) -> Iterator[tuple[str, str]]:
    for node in body:
        if not isinstance(node, Definition):
            continue
        own = [label for mark in node.decorator_list for label in _borne(mark)]
        labels = list(dict.fromkeys([*inherited, *own]))
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from _marked(node.body, f"{where}::{node.name}", labels)
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            yield from ((f"{where}::{node.name}", label) for label in labels)


def _borne(mark: ast.expr) -> list[str]:
    """Return the labels of ``pytest.mark.equation("eq-...", ...)``, or of a list of marks."""
    if isinstance(mark, ast.List | ast.Tuple):
        return [label for each in mark.elts for label in _borne(each)]
    if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.equation":
        return [str(a.value) for a in mark.args if isinstance(a, ast.Constant)]
    return []
