"""The one runner that writes the book's notebooks: ``python -m posenc.lab.notebooks [PATH ...]``.

A notebook is executed from top to bottom in a fresh kernel and stored in one canonical form:
no timestamps, stable cell ids, fixed metadata. So an unchanged chapter leaves ``git diff`` empty,
and a changed one shows the cells and outputs that changed, nothing else.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellControlSignal, CellExecutionError, DeadKernelError

__all__ = ["NotebookError", "canonical", "execute", "notebooks", "read", "run", "text"]

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
LANGUAGE = {"file_extension": ".py", "name": "python", "pygments_lexer": "ipython3"}
KEPT_METADATA = ("mystnb", "tags")  # of a cell; all else is some editor's own memory
SECONDS_PER_CELL = 600

# nbformat has no types of its own
Notebook = Any
v4: Any = nbformat.v4
node: Any = nbformat.from_dict


class NotebookError(Exception):
    """A notebook that must not be stored; the message names it, the cell and the fault."""


def read(path: Path) -> Notebook:
    """Read a notebook as it stands: nothing is upgraded, repaired or given a random id."""
    stored = path.read_text(encoding="utf-8")
    version = json.loads(stored).get("nbformat")
    if version != 4:
        raise NotebookError(f"{path} must be in nbformat 4, got {version}")
    return v4.reads(stored)


def canonical(notebook: Notebook) -> Notebook:
    """Return the notebook in the one form that the repository stores; its argument is untouched.

    Cell ids that exist are kept. A cell without one, or with one that an earlier cell bears, gets
    an id made from its text: the same on every machine, and not moved by a cell put in before it.
    Neighbouring pieces of one output stream become one, so that storage does not depend on timing.
    """
    cells: list[dict[str, Any]] = []
    taken: set[str] = set()
    for cell in copy.deepcopy(notebook.cells):
        source = cell.source.rstrip()
        kept = {key: cell.metadata[key] for key in KEPT_METADATA if cell.metadata.get(key)}
        name = cell.get("id")
        if not name or name in taken:
            name = _new_id(cell.cell_type, source, taken)
        taken.add(name)
        plain = {"cell_type": cell.cell_type, "id": name, "metadata": kept, "source": source}
        if cell.cell_type == "code":
            plain["execution_count"] = cell.get("execution_count")
            plain["outputs"] = _merged(cell.get("outputs", []))
        elif cell.get("attachments"):
            plain["attachments"] = cell.attachments
        cells.append(plain)
    metadata = {"kernelspec": KERNEL, "language_info": LANGUAGE}
    return node({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})


def _new_id(kind: str, source: str, taken: set[str]) -> str:
    base = hashlib.sha256(f"{kind}\n{source}".encode()).hexdigest()[:8]
    turn, name = 1, base
    while name in taken:
        turn += 1
        name = f"{base}-{turn}"
    return name


def _merged(outputs: Sequence[Any]) -> list[Any]:
    merged: list[Any] = []
    for output in outputs:
        output.pop("transient", None)
        before = merged[-1] if merged else None
        if before and output.output_type == "stream" and before.get("name") == output.name:
            before.text += output.text
        else:
            merged.append(output)
    return merged


def text(notebook: Notebook) -> str:
    """Return the exact text of the file that stores this notebook."""
    nbformat.validate(notebook)
    return str(v4.writes(notebook)) + "\n"


def execute(notebook: Notebook, folder: Path, name: str = "the notebook") -> Notebook:
    """Return the canonical notebook with the outputs of a run from top to bottom.

    Parameters
    ----------
    notebook
        What to run; it is not changed, and its stored outputs are not looked at.
    folder
        The kernel's working directory: the folder of the notebook.
    name
        How messages call the notebook.

    Raises
    ------
    NotebookError
        If a cell fails, takes longer than ten minutes or writes to stderr (a warning does):
        a stored warning holds a process id and never repeats, so its cause must go.
    """
    fresh = canonical(notebook)
    last = [0]
    client = NotebookClient(
        fresh,
        kernel_name="python3",
        timeout=SECONDS_PER_CELL,
        record_timing=False,
        extra_arguments=["--log-level=40"],  # else each kernel warns that it talks over TCP
        resources={"metadata": {"path": str(folder)}},
    )
    client.on_cell_execute = lambda cell, cell_index: last.append(cell_index)
    try:
        client.execute()
    except CellExecutionError as error:
        fault = f"{error.ename}: {error.evalue}" if error.evalue else error.ename
        where = f"{name}, {_place(fresh, last[-1])}"
        raise NotebookError(f"{where} fails with {fault}; nothing was stored") from error
    except (CellControlSignal, DeadKernelError) as error:
        raise NotebookError(f"{name}, {_place(fresh, last[-1])} did not end: {error}") from error
    done = canonical(fresh)
    for index, cell in enumerate(done.cells):
        for output in cell.get("outputs", []):
            if output.get("name") == "stderr":
                raise NotebookError(
                    f"{name}, {_place(done, index)} writes to stderr, which is never stored "
                    f"(mend the cause, do not silence it): {output.text.strip()}"
                )
    return done


def _place(notebook: Notebook, index: int) -> str:
    cell = notebook.cells[index]
    number = sum(other.cell_type == "code" for other in notebook.cells[: index + 1])
    first = cell.source.splitlines()[0] if cell.source else ""
    return f"code cell {number} (id {cell.id}, {first!r})"


def run(path: str | Path) -> bool:
    """Execute one notebook and store it; return whether the file's bytes changed.

    Raises
    ------
    NotebookError
        As `execute`; the file is then left as it was.
    """
    path = Path(path)
    result = text(execute(read(path), path.resolve().parent, str(path)))
    if path.read_text(encoding="utf-8") == result:
        return False
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(result, encoding="utf-8", newline="\n")
    os.replace(beside, path)
    return True


def notebooks(paths: Sequence[str | Path]) -> Iterator[Path]:
    """Yield the notebooks that these files and folders name, folders searched through, sorted."""
    for path in map(Path, paths):
        if path.is_dir():
            found = sorted(path.rglob("*.ipynb"))
            yield from (p for p in found if not {".ipynb_checkpoints", "_build"} & set(p.parts))
        elif path.is_file():
            yield path
        else:
            raise NotebookError(f"{path} is neither a notebook nor a folder")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the notebooks named on the command line; return how many of them failed."""
    parser = argparse.ArgumentParser(
        prog="python -m posenc.lab.notebooks",
        description="Execute notebooks from top to bottom and store them in canonical form.",
    )
    parser.add_argument("paths", nargs="*", default=["book"], help="notebooks or folders")
    failed = 0
    try:
        for path in notebooks(parser.parse_args(arguments).paths):
            start = time.monotonic()
            try:
                word = "stored anew" if run(path) else "unchanged"
            except NotebookError as error:
                failed += 1
                print(error, file=sys.stderr)
            else:
                print(f"{path}: {word} ({time.monotonic() - start:.1f} s)", flush=True)
    except NotebookError as error:
        failed += 1
        print(error, file=sys.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main())
