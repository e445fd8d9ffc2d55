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
    "posenc.modules",
)
FUNCTIONS = [name for name in posenc.__all__ if inspect.isfunction(getattr(posenc, name))]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    """Catches an example whose printed result is not the function's."""
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried
    assert not failed


@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_functions_say_everything(name):
    """Catches a parameter, a shape, an error, an equation or a source left unsaid."""
    function = getattr(posenc, name)
    document = FunctionDoc(function)
    described = {p.strip() for item in document["Parameters"] for p in item.name.split(",")}
    assert described == set(inspect.signature(function).parameters)
    assert document["Returns"]
    assert {item.type for item in document["Raises"]} >= {"TypeError"}
    assert document["Examples"]
    notes = " ".join(document["Notes"])
    assert re.search(r"``eq-[a-z-]+``", notes)
    text = inspect.getdoc(function)
    assert re.search(r"\[[^\]]*d(/2)?\]|int", text), "no shape"


def test_everything_public_is_listed_and_documented():
    """Catches a public name without a docstring, or one that __all__ forgot."""
    for name in posenc.__all__:
        assert inspect.getdoc(getattr(posenc, name))
    public = {
        name
        for module in MODULES[:-1]
        for name, thing in vars(importlib.import_module(module)).items()
        if getattr(thing, "__module__", None) == module and not name.startswith("_")
    }
    internal = {
        "geometric",
        "spectrum",
        "takes_fast_way",
        "rotating_rows",
        "empty",
        "cast",
        "encode",
    }
    assert public - internal == set(posenc.__all__)
