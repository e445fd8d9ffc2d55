"""The Triton kernel on the CPU, by Triton's interpreter, which must be chosen before triton loads.

So these tests have a process of their own, ``TRITON_INTERPRET=1 python -m pytest
tests/interpreter`` (``make unit`` does it). Elsewhere they are skipped, and say so.
"""

import importlib.util
import os

import pytest

import posenc.kernels
from posenc.kernels import launch_triton

REASON = None
if importlib.util.find_spec("triton") is None:
    REASON = "triton is not installed (it has no macOS wheels)"
elif os.environ.get("TRITON_INTERPRET") != "1":
    REASON = "needs TRITON_INTERPRET=1 from the start: make unit runs it"


def pytest_collection_modifyitems(items):
    for item in items:
        if REASON and "interpreter" in item.path.parts:
            item.add_marker(pytest.mark.skip(reason=REASON))


@pytest.fixture(autouse=True)
def launches(monkeypatch):
    """Send CPU tensors the way of CUDA tensors, and count the launches: 2 for q and k in one."""
    monkeypatch.setattr(posenc.kernels, "_on_gpu", lambda x: True)
    monkeypatch.setattr(posenc.rotary, "quick", lambda *_: None)  # plain CPU tensors
    counted, run = [], launch_triton._run

    def counting(q, k, *how):
        counted.append(1 if k is None else 2)
        return run(q, k, *how)

    monkeypatch.setattr(launch_triton, "_run", counting)
    return counted
