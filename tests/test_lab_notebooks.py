"""The runner: one stored form, nothing stored of a run that failed, every fault said in words."""

import nbformat
import pytest

from posenc.lab import notebooks

v4 = nbformat.v4


@pytest.fixture
def stored(tmp_path):
    """Return a function that stores code cells as a notebook and gives its path."""

    def store(*sources, name="page.ipynb"):
        path = tmp_path / name
        nbformat.write(v4.new_notebook(cells=[v4.new_code_cell(s) for s in sources]), path)
        return path

    return store


def test_ids_that_exist_are_kept_and_lost_or_doubled_ones_come_from_the_text():
    """Catches ids that change at each run, or when a cell is put in before others."""
    cells = [v4.new_code_cell(source) for source in ("x = 1", "y = 2", "x = 1", "z = 3", "z = 3")]
    for cell, name in zip(cells, ("kept", "kept", None, None, None), strict=True):
        cell.pop("id") if name is None else cell.update(id=name)
    notebook = v4.new_notebook()
    notebook.cells = cells
    first = [cell.id for cell in notebooks.canonical(notebook).cells]
    assert first[0] == "kept"
    assert len(set(first)) == 5
    notebook.cells = [v4.new_markdown_cell("New."), *cells]
    assert [cell.id for cell in notebooks.canonical(notebook).cells][1:] == first


def test_the_canonical_form_is_its_own_canonical_form(stored):
    """Catches a form that a second pass would change again."""
    once = notebooks.canonical(notebooks.read(stored("x = 1\n\n", "y = 2")))
    assert notebooks.text(notebooks.canonical(once)) == notebooks.text(once)


def test_an_editors_own_memory_is_dropped_and_the_books_kept():
    """Catches timestamps and folding states in the stored form, and lost captions."""
    cell = v4.new_code_cell(
        "x = 1 \n", metadata={"tags": ["hide-input"], "mystnb": {"a": {"b": 1}}}
    )
    cell.metadata.update(execution={"iopub.execute_input": "2026-01-01"}, collapsed=True)
    untagged = v4.new_code_cell("y = 1", metadata={"tags": []})
    notebook = v4.new_notebook(cells=[cell, untagged], metadata={"widgets": {}, "title": "A"})
    form = notebooks.canonical(notebook)
    assert form.cells[0].metadata == {"tags": ["hide-input"], "mystnb": {"a": {"b": 1}}}
    assert form.cells[0].source == "x = 1"
    assert form.cells[1].metadata == {}
    assert form.metadata == {"kernelspec": notebooks.KERNEL, "language_info": notebooks.LANGUAGE}
    assert notebook.cells[0].metadata.collapsed


def test_neighbouring_pieces_of_one_stream_become_one():
    """Catches a stored form that depends on when the kernel flushed."""

    def cell(*pieces):
        outputs = [v4.new_output("stream", name=name, text=text) for name, text in pieces]
        return v4.new_code_cell("print()", outputs=outputs, id="one")

    one = v4.new_notebook(cells=[cell(("stdout", "a\nb\n"), ("stderr", "c"), ("stdout", "d"))])
    two = [("stdout", "a\n"), ("stdout", "b\n"), ("stderr", "c"), ("stdout", "d")]
    two = v4.new_notebook(cells=[cell(*two)])
    assert notebooks.canonical(one) == notebooks.canonical(two)


def test_a_run_stores_outputs_in_order_from_the_folder_of_the_notebook(stored):
    """Catches a run in another working directory, or one that keeps old outputs."""
    path = stored("from pathlib import Path", "print(Path('page.ipynb').exists())", "1 + 1")
    assert notebooks.run(path)
    _, second, third = notebooks.read(path).cells
    assert [cell.execution_count for cell in notebooks.read(path).cells] == [1, 2, 3]
    assert second.outputs[0].text == "True\n"
    assert third.outputs[0].data["text/plain"] == "2"
    assert not notebooks.run(path)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("1 / 0", "fails with ZeroDivisionError: division by zero"),
        ("import warnings\nwarnings.warn('old')", "writes to stderr"),
        ("import sys\nprint('lost', file=sys.stderr)", "writes to stderr"),
        ("import os\nos._exit(1)", "did not end"),
    ],
)
def test_a_run_that_must_not_be_stored_leaves_the_file_and_names_the_cell(stored, source, words):
    """Catches a half-written notebook, a stored warning, and a message that does not say where."""
    path = stored("x = 1", source)
    before = path.read_bytes()
    name = notebooks.read(path).cells[1].id
    with pytest.raises(notebooks.NotebookError) as caught:
        notebooks.run(path)
    assert words in str(caught.value)
    assert f"{path}, code cell 2 (id {name}, {source.splitlines()[0]!r})" in str(caught.value)
    assert path.read_bytes() == before
    assert [other.name for other in path.parent.iterdir()] == [path.name]


def test_the_command_goes_on_after_a_failure_and_counts_it(stored, capsys):
    """Catches a failure that hides the notebooks after it, or that no exit status tells."""
    stored("1 / 0", name="a.ipynb")
    path = stored("1 + 1", name="b.ipynb")
    (path.parent / ".ipynb_checkpoints").mkdir()
    (path.parent / ".ipynb_checkpoints" / "c.ipynb").write_text("{}", encoding="utf-8")
    assert notebooks.main([str(path.parent)]) == 1
    said = capsys.readouterr()
    assert "a.ipynb, code cell 1" in said.err
    assert f"{path}: stored anew" in said.out
    assert notebooks.main([str(path)]) == 0
    assert f"{path}: unchanged" in capsys.readouterr().out
    assert notebooks.main([str(path.parent / "lost.ipynb")]) == 1
    assert "is neither a notebook nor a folder" in capsys.readouterr().err


def test_an_older_format_is_refused_in_a_sentence(tmp_path):
    """Catches a traceback from inside for a notebook of another age."""
    path = tmp_path / "old.ipynb"
    path.write_text('{"nbformat": 3, "worksheets": []}', encoding="utf-8")
    with pytest.raises(notebooks.NotebookError, match="must be in nbformat 4, got 3"):
        notebooks.read(path)
