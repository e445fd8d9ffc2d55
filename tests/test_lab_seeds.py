"""A chapter checked seed by seed: what depends on the seed is found, what does not passes."""

import nbformat
import pytest

from posenc.lab import notebooks, seeds

v4 = nbformat.v4


@pytest.fixture
def chapter(tmp_path):
    """Return a function that stores a notebook of these cells, run with its own seeds."""

    def stored(*sources):
        path = tmp_path / "chapter.ipynb"
        notebook = v4.new_notebook(cells=[v4.new_code_cell(source) for source in sources])
        path.write_text(notebooks.text(notebooks.canonical(notebook)), encoding="utf-8")
        notebooks.run(path)
        return path

    return stored


def test_a_sentence_that_holds_of_one_seed_only_is_found(chapter, capsys):
    """Catches a check that runs the stored seeds again, or compares nothing."""
    path = chapter("seeds = (0, 1)", "print('below 2:', max(seeds) < 2)", "print(min(seeds) >= 0)")
    before = path.read_bytes()
    assert seeds.differences(path, 0) == seeds.differences(path, 1) == []
    (found,) = seeds.differences(path, 2)
    assert "below 2: True" in found
    assert "below 2: False" in found
    assert seeds.main([str(path), "1", "2", "3"]) == 2
    assert "3 seeds, 2 of them say something else" in capsys.readouterr().out
    assert path.read_bytes() == before


def test_a_picture_may_show_the_numbers_of_its_seeds(chapter):
    """Catches a check that no figure could pass."""
    path = chapter("seeds = (0, 1)", "from IPython.display import HTML\nHTML(str(seeds))")
    assert seeds.differences(path, 5) == []


def test_a_cell_that_fails_with_a_seed_counts_as_a_difference(chapter, capsys):
    """Catches a failure that ends the check of the other seeds."""
    path = chapter("seeds = (0, 1)", "assert max(seeds) < 2")
    assert seeds.main([str(path), "7", "0"]) == 1
    assert "seed 7, code cell 2" in capsys.readouterr().out


@pytest.mark.parametrize("cells", [["x = 1"], ["seeds = (0,)", "seeds = (1,)"]])
def test_a_notebook_without_its_one_line_of_seeds_is_refused(chapter, cells):
    """Catches a check that changes nothing and finds nothing."""
    with pytest.raises(seeds.SeedsError, match=r"must have one line 'seeds = \(...\)', got"):
        seeds.differences(chapter(*cells), 0)
