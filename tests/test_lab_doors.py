"""What the laboratory loads, and where it lets a chapter run."""

import subprocess
import sys

import pytest
import torch

from posenc import lab


@pytest.mark.parametrize(
    ("module", "unloaded"),
    [
        ("posenc", ["posenc.lab", "matplotlib", "IPython"]),
        ("posenc.lab", ["torch", "matplotlib", "IPython", "nbformat"]),
        ("posenc.lab.equations", ["torch", "matplotlib", "IPython", "nbformat"]),
    ],
)
def test_importing_one_does_not_load_the_others(module, unloaded):
    """Catches an import that makes the core depend on the book, or the map on torch."""
    code = f"import sys, {module}\nprint([name for name in {unloaded} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_device_is_the_environments_and_the_cpu_without_one(monkeypatch):
    """Catches a chapter that cannot be moved, or that moves by itself."""
    monkeypatch.delenv("POSENC_DEVICE", raising=False)
    assert lab.device() == torch.device("cpu")
    monkeypatch.setenv("POSENC_DEVICE", "meta")
    assert lab.device() == torch.device("meta")


@pytest.mark.parametrize("name", ["gpu", "", "cuda:99"])
def test_a_device_that_is_not_here_is_refused_in_a_sentence(monkeypatch, name):
    """Catches an error deep inside a chapter for a misspelt or missing device."""
    monkeypatch.setenv("POSENC_DEVICE", name)
    with pytest.raises(RuntimeError, match=f"POSENC_DEVICE must name a device.*got {name!r}"):
        lab.device()
