"""Does a chapter say the same with other seeds? ``python -m posenc.lab.seeds NOTEBOOK [SEED ...]``.

A chapter that trains has one cell ``seeds = (0, 1)``. For each seed the whole notebook is run in a
fresh kernel with that seed alone, and every cell must print what is stored: so a chapter may print
only what holds of all seeds. Pictures, which show the numbers of their seeds, are not compared.
"""

from __future__ import annotations

import argparse
import copy
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from posenc.lab import notebooks

__all__ = ["SeedsError", "differences", "main"]

LINE = re.compile(r"^seeds = \([\d, ]+\)", re.MULTILINE)


class SeedsError(Exception):
    """A notebook that cannot be checked; the message says why."""


def differences(path: Path, seed: int) -> list[str]:
    """Return what a notebook prints otherwise with this seed: a stored and a new text each.

    Parameters
    ----------
    path : Path
        Of a stored notebook.
    seed : int
        Takes the place of its seeds.

    Raises
    ------
    SeedsError
        If the notebook has not one line ``seeds = (...)``.
    NotebookError
        If a cell fails or warns.
    """
    stored = notebooks.read(path)
    changed = copy.deepcopy(stored)
    lines = 0
    for cell in changed.cells:
        if cell.cell_type == "code":
            cell.source, found = LINE.subn(f"seeds = ({seed},)", cell.source)
            lines += found
    if lines != 1:
        raise SeedsError(f"{path} must have one line 'seeds = (...)', got {lines}")
    done = notebooks.execute(changed, path.resolve().parent, f"{path}, seed {seed}")
    pairs = zip(stored.cells, done.cells, strict=True)
    return [
        f"cell {old.get('id')} printed\n{_printed(old)}now\n{_printed(new)}"
        for old, new in pairs
        if _printed(old) != _printed(new)
    ]


def _printed(cell: Any) -> str:
    return "".join(o.text for o in cell.get("outputs", []) if o.output_type == "stream")


def main(arguments: Sequence[str] | None = None) -> int:
    """Check a notebook for each seed; return for how many it says something else."""
    parser = argparse.ArgumentParser(
        prog="python -m posenc.lab.seeds",
        description="Run a chapter with one seed after another: each must print what is stored.",
    )
    parser.add_argument("notebook", type=Path)
    parser.add_argument("seeds", nargs="*", type=int, help="0 to 9 if none is given")
    given = parser.parse_args(arguments)
    seeds = given.seeds or list(range(10))
    failed = 0
    for seed in seeds:
        start = time.monotonic()
        try:
            found = differences(given.notebook, seed)
        except (SeedsError, notebooks.NotebookError) as error:
            found = [str(error)]
        failed += bool(found)
        words = "as stored" if not found else f"{len(found)} differences"
        print(
            f"seed {seed}: {words} ({time.monotonic() - start:.0f} s)", *found, sep="\n", flush=True
        )
    print(f"{len(seeds)} seeds, {failed} of them say something else")
    return failed


if __name__ == "__main__":
    sys.exit(main())
