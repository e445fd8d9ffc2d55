"""The table through the book is read from the notebooks' text."""

import json

import pytest

from posenc.lab import summary

TABLE = """Before.

| step | what it adds | what it guarantees | cost | where it breaks | who uses it |
| --- | --- | --- | --- | --- | --- |
| one | {glue:text}`share` and {glue:text}`share:.2f` | $a \\| b$ | c | d | e |
| two | a | b | c | d | e |
After.

| another | table |
| --- | --- |
| of | its own |
"""


def notebook(path, text, glued=None):
    """Store a notebook with this prose and one glued number."""
    record = {
        "data": {"application/papermill.record/text/plain": repr(glued)},
        "metadata": {"scrapbook": {"name": "share"}},
    }
    cells = [
        {"cell_type": "markdown", "source": text.splitlines(keepends=True)},
        {"cell_type": "code", "source": "", "outputs": [record] if glued else []},
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")


def test_a_table_is_read_whole():
    """Catches a reading that ends late, takes another table, or parts a cell at an escaped bar."""
    (rows,) = summary.tables(TABLE)
    assert [row[0] for row in rows] == ["one", "two"]
    assert rows[0][2] == "$a \\| b$"
    assert {len(row) for row in rows} == {6}


def test_a_glued_number_is_written_out(tmp_path):
    """Catches a row that asks for a number which only its own chapter knows."""
    notebook(tmp_path / "a.ipynb", TABLE, "0.5")
    assert summary.rows(tmp_path / "a.ipynb")[0][1] == "0.5 and 0.5"


def test_a_number_that_no_cell_glues_is_an_error(tmp_path):
    """Catches a row that would go into the table with a hole."""
    notebook(tmp_path / "a.ipynb", TABLE)
    with pytest.raises(KeyError, match="share"):
        summary.rows(tmp_path / "a.ipynb")


def test_chapters_come_in_the_order_of_the_contents(tmp_path):
    """Catches an order of names, an appendix among the chapters, or a page without cells."""
    names = ("2-b/z", "1-a/y", "1-a/text", "appendix/x")
    toc = "".join(f"- file: book/{name}\n" for name in names)
    (tmp_path / "_toc.yml").write_text(f"root: book/index\nchapters:\n{toc}", encoding="utf-8")
    for name in ("1-a/y", "2-b/z", "appendix/x"):
        notebook(tmp_path / f"book/{name}.ipynb", "")
    assert [path.stem for path in summary.chapters(tmp_path)] == ["z", "y"]
