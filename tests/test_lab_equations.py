"""The map of equations is read from text alone, and says what dangles."""

import pytest

from posenc.lab import equations

PAGE = """# Shift

```{math}
:label: eq-one
x
```

$$ y $$ (eq-two)

:::{math}
:nowrap:
:label: eq-three
z
:::

See {eq}`eq-one` and {eq}`eq-elsewhere`.
"""
CODE = '''
"""A module names ``eq-one`` without computing it."""

def one():
    """Equation ``eq-one`` of the book; again ``eq-one``."""

def _hidden():
    """Equation ``eq-two`` of the book."""

class Many:
    """Equations ``eq-two`` and ``eq-three`` of the book."""

    def of(self):
        """Equation ``eq-three`` of the book."""
'''
TESTS = """
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.equation("eq-one")]

@pytest.mark.equation("eq-two", "eq-three")
def test_both():
    pass

@pytest.mark.equation("eq-two")
class TestMany:
    @pytest.mark.parametrize("n", [1])
    def test_each(self, n):
        pass

@pytest.mark.equation("eq-two")
def helper():
    pass
"""


@pytest.fixture
def root(tmp_path):
    """Return a small repository: one page, one module, one file of tests."""
    files = {
        "book/2-waves/shift.md": PAGE,
        "posenc/__init__.py": "from posenc.inner import Many, one\n",
        "posenc/inner.py": CODE,
        "tests/test_inner.py": TESTS,
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def test_labels_functions_and_tests_are_found_where_they_stand(root):
    """Catches a reader blind to one way of writing a label, a docstring or a marker."""
    one, two, three = equations.read(root)
    assert (one.label, two.label, three.label) == ("eq-one", "eq-two", "eq-three")
    assert one.places == two.places == three.places == ["book/2-waves/shift"]
    assert one.functions == ["posenc.one"]
    assert two.functions == ["posenc.Many"]
    assert three.functions == ["posenc.Many", "posenc.Many.of"]
    both, each = "tests/test_inner.py::test_both", "tests/test_inner.py::TestMany::test_each"
    assert one.tests == two.tests == [both, each]
    assert three.tests == [both]
    assert not equations.dangling([one, two, three])


def test_torch_modules_are_named_as_people_import_them(root):
    """Catches posenc.modules.inner.Many, which the page of the package does not list."""
    (root / "posenc/modules").mkdir()
    (root / "posenc/modules/__init__.py").write_text("from posenc.modules.inner import Many\n")
    (root / "posenc/modules/inner.py").write_text(CODE)
    functions = {e.label: e.functions for e in equations.read(root)}
    assert functions["eq-two"] == ["posenc.Many", "posenc.modules.Many"]
    assert functions["eq-one"] == ["posenc.one", "posenc.modules.inner.one"]


def test_rules_of_a_package_are_named_as_the_package_offers_them(root):
    """Catches posenc.context._inner.one, which no page lists and no one imports."""
    (root / "posenc/context").mkdir()
    (root / "posenc/context/__init__.py").write_text("from posenc.context._inner import one\n")
    (root / "posenc/context/_inner.py").write_text(CODE)
    functions = {e.label: e.functions for e in equations.read(root)}
    assert functions["eq-one"] == ["posenc.context.one", "posenc.one"]


def test_what_a_module_lists_is_named_as_the_module_offers_it(root):
    """Catches posenc._hidden.decode, which no page documents, and names that are only used."""
    (root / "posenc/_hidden.py").write_text(CODE)
    (root / "posenc/places.py").write_text(
        'from posenc._hidden import Many, one\n\n__all__ = ["one"]\n'
    )
    functions = {e.label: e.functions for e in equations.read(root)}
    assert functions["eq-one"] == ["posenc.places.one", "posenc.one"]
    assert functions["eq-two"] == ["posenc._hidden.Many", "posenc.Many"]


def test_a_notebook_is_read_like_a_page(root):
    """Catches a reader that does not look into the cells, or takes code for prose."""
    import nbformat

    v4 = nbformat.v4
    cells = [v4.new_markdown_cell(PAGE), v4.new_code_cell("'''\n$$ y $$ (eq-code)\n'''")]
    (root / "book/2-waves/shift.md").unlink()
    nbformat.write(v4.new_notebook(cells=cells), root / "book/2-waves/shift.ipynb")
    assert [equation.label for equation in equations.read(root)] == ["eq-one", "eq-two", "eq-three"]


def test_pages_come_in_the_order_of_the_table_of_contents(root):
    """Catches a map in another order than the book."""
    names = ["book/2-waves/formula", "book/2-waves/shift"]
    (root / "book/2-waves/formula.md").write_text("$$ a $$ (eq-a)\n", encoding="utf-8")
    assert [name for name, _ in equations.pages(root)] == names
    toc = "root: book/index\nchapters:\n" + "".join(f"  - file: {name}\n" for name in names[::-1])
    (root / "_toc.yml").write_text(toc, encoding="utf-8")
    assert [name for name, _ in equations.pages(root)] == names[::-1]


@pytest.mark.parametrize(
    ("name", "old", "new", "sentence"),
    [
        ("book/2-waves/shift.md", "eq-one", "eq-once", "eq-once in book/2-waves/shift has no test"),
        ("book/2-waves/shift.md", "eq-one", "eq-once", "posenc.one names eq-one, which no page"),
        ("book/2-waves/shift.md", "eq-one", "eq-once", "test_both bears eq-one, which no page"),
        ("book/2-waves/shift.md", "eq-two", "eq-one", "eq-one numbers more than one equation"),
        ("posenc/inner.py", "eq-one", "eq-lost", "posenc.one names eq-lost, which no page"),
        ("tests/test_inner.py", "eq-three", "eq-lost", "test_both bears eq-lost, which no page"),
        ("tests/test_inner.py", "eq-three", "eq-two", "eq-three in book/2-waves/shift has no test"),
    ],
)
def test_each_way_of_dangling_is_said(root, name, old, new, sentence):
    """Catches a loose end that the map passes over."""
    path = root / name
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    assert any(sentence in fault for fault in equations.dangling(equations.read(root)))
