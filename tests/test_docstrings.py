"""Every public name says its shapes, errors, equation and source, and its example runs."""

import doctest
import importlib
import inspect
import re

import pytest
from numpydoc.docscrape import FunctionDoc

import posenc

MODULES = (
    "posenc._frequencies",
    "posenc.spectrum",
    "posenc.turns",
    "posenc.sinusoidal",
    "posenc.bias",
    "posenc.relative",
    "posenc.rotary",
    "posenc.pairing",
    "posenc.checkpoints",
)
# public under the name of posenc.learned, posenc.positions or posenc.context
WITH_PREFIX = (
    "posenc.learned",
    "posenc.positions",
    "posenc._cache",
    "posenc.context._stretch",
    "posenc.context._yarn",
    "posenc.context._families",
)
TORCH_MODULES = (
    "posenc.modules.sinusoidal",
    "posenc.modules.learned",
    "posenc.modules.bias",
    "posenc.modules.rotary",
)
BEFORE_THEIR_CHAPTER = {  # no page has numbered their equations yet
    "zigzag",
}


def defined_in(module):
    """Public functions and classes of a module, by name."""
    return {
        name: thing
        for name, thing in vars(importlib.import_module(module)).items()
        if getattr(thing, "__module__", None) == module and not name.startswith("_")
    }


FUNCTIONS = {
    name: thing for name in posenc.__all__ if inspect.isfunction(thing := getattr(posenc, name))
}
for module in WITH_PREFIX:
    FUNCTIONS |= {
        f"{module}.{name}": thing
        for name, thing in defined_in(module).items()
        if inspect.isfunction(thing)
    }


@pytest.mark.parametrize("name", (*MODULES, *WITH_PREFIX, *TORCH_MODULES))
def test_examples_run(name):
    """Catches an example whose printed result is not the function's."""
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried
    assert not failed


@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_functions_say_everything(name):
    """Catches a parameter, a shape, an error, an equation or a source left unsaid."""
    function = FUNCTIONS[name]
    document = FunctionDoc(function)
    described = {p.strip() for item in document["Parameters"] for p in item.name.split(",")}
    assert described == set(inspect.signature(function).parameters)
    assert document["Returns"]
    assert {item.type for item in document["Raises"]} >= {"TypeError"}
    assert document["Examples"]
    notes = " ".join(document["Notes"])
    if function.__name__ not in BEFORE_THEIR_CHAPTER:
        assert re.search(r"``eq-[a-z0-9-]+``", notes)
    assert notes
    text = inspect.getdoc(function)
    assert re.search(r"\[[^\]]*(d(/2)?|T|Tk|H|n)\]|int", text), "no shape"


def test_everything_public_is_listed_and_documented():
    """Catches a public name without a docstring, or one that __all__ forgot."""
    for name in posenc.__all__:
        assert inspect.getdoc(getattr(posenc, name))
    public = {name for module in MODULES for name in defined_in(module)}
    internal = {
        "powers",
        "spectrum",
        "tables",
        "takes_fast_way",
        "rotating_rows",
        "encode",
        "differences",
        "bucket_edges",
        "bucket_of",
    }
    assert public - internal == set(posenc.__all__)


def test_torch_modules_say_their_shapes_and_equations():
    """Catches a module that the package forgot, or whose docstring leaves its contract unsaid."""
    import posenc.modules

    found = {name: thing for module in TORCH_MODULES for name, thing in defined_in(module).items()}
    assert sorted(found) == sorted(posenc.modules.__all__)
    for thing in found.values():
        document = FunctionDoc(thing)
        described = {p.strip() for item in document["Parameters"] for p in item.name.split(",")}
        assert described == set(inspect.signature(thing).parameters)
        assert document["Raises"]
        assert document["Examples"]
        if thing.__name__ not in BEFORE_THEIR_CHAPTER:
            assert re.search(r"``eq-[a-z0-9-]+``", " ".join(document["Notes"]))
        forward = FunctionDoc(thing.forward)
        assert re.search(r"\[[^\]]+\]", " ".join(item.type for item in forward["Returns"]))
