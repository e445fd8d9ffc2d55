"""A run leaves the stored bytes as they are, and a stored byte that is wrong makes nbval fail."""

import os
import re
import runpy
import subprocess
import sys
from types import SimpleNamespace

import nbformat
import pytest
from reading import BOOK, NOTEBOOKS, ROOT

from posenc.lab import notebooks

SHORTEST = sorted(NOTEBOOKS, key=lambda page: len(page.code))[:1]
CELLS = {
    "imports": """\
from matplotlib import pyplot as plt

from posenc.lab import figures, prose

figures.use()""",
    "print": 'prose.glue("share", 0.125, ".3f")\nprint(0.5)\nprint(0.25)',
    "curve": "fig, ax = figures.figure()\nax.plot([0, 1, 2], [0.1, 0.4, 0.2])\nplt.show()",
    "slider": """\
frames = [figures.Frame(f"{k}", f"At {k}.", [figures.dots([k], [k])]) for k in (50, 60)]
figures.slider("dot", "place", frames, "A dot.")""",
}


@pytest.mark.parametrize("page", SHORTEST, ids=lambda page: page.name)
def test_running_an_unchanged_chapter_leaves_the_same_bytes(page):
    """Catches a chapter, or a runner, with anything in its output that does not repeat."""
    done = notebooks.execute(notebooks.read(page.path), page.path.parent)
    assert notebooks.text(done) == page.text


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Return the path of a small notebook with each kind of output, run and stored."""
    v4 = nbformat.v4
    path = tmp_path_factory.mktemp("stored") / "sound.ipynb"
    nbformat.write(v4.new_notebook(cells=[*map(v4.new_code_cell, CELLS.values())]), path)
    assert notebooks.run(path)
    return path


def test_a_second_run_changes_no_byte(stored):
    """Catches random ids, dates and timestamps in text, figures, sliders and glued numbers."""
    before = stored.read_bytes()
    assert not notebooks.run(stored)
    assert stored.read_bytes() == before


def other(text, pattern):
    """Return the text with the last digit of the pattern's group changed."""
    found = re.search(pattern, text)
    end = found.end(1)
    return text[: end - 1] + str((int(text[end - 1]) + 1) % 10) + text[end:]


AT = r"[\d.]+ [\d.]+"  # a point, as matplotlib writes it
FAULTS = {
    "digit": r'"(0\.25)\\n"',
    "glued": r"'(0\.125)'",
    "curve": rf'd=\\"M {AT} \\n",\s+"L [\d.]+ ([\d.]+) \\n",\s+"L {AT} \\n",\s+"\\" clip-path',
    "slider": r"style='stroke-width:6' d='M([\d.]+) ",
}


def test_each_wrong_digit_makes_nbval_fail_and_nothing_else_does(stored):
    """Catches an output that nbval passes over: printed, glued, drawn or slid."""
    sound = stored.read_text(encoding="utf-8")
    for name, pattern in FAULTS.items():
        faulty = stored.with_name(f"{name}.ipynb")
        faulty.write_text(other(sound, pattern), encoding="utf-8")
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-q", "-rfEp"]
    ours = ["-p", "no:cacheprovider", "-c", "pyproject.toml", "--rootdir", "."]
    done = subprocess.run(
        [*command, *ours, str(stored.parent)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    ends = re.findall(
        r"^(PASSED|FAILED|ERROR) \S*?(\w+)\.ipynb::Cell (\d)", done.stdout, re.MULTILINE
    )
    failed = {(name, int(cell)) for end, name, cell in ends if end != "PASSED"}
    assert failed == {("digit", 1), ("glued", 1), ("curve", 2), ("slider", 3)}, done.stdout
    assert len(ends) == len(CELLS) * (len(FAULTS) + 1)


@pytest.mark.parametrize(("device", "skipped"), [("cpu", ()), ("cuda", ("image/svg+xml",))])
def test_pictures_are_compared_on_the_cpu_and_left_out_elsewhere(monkeypatch, device, skipped):
    """Catches a book whose pictures nobody compares, or a GPU held to another matplotlib's ink."""
    hooks = runpy.run_path(str(BOOK / "conftest.py"))
    monkeypatch.setenv("POSENC_DEVICE", device)
    item = SimpleNamespace(parent=SimpleNamespace(skip_compare=("image/png",)))
    hooks["pytest_itemcollected"](item)
    assert item.parent.skip_compare == ("image/png", *skipped)
