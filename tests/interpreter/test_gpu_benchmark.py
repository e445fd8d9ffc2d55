"""The benchmark of the GPU, run dry: small shapes, the kernel interpreted, a CPU's clock."""

import importlib
import json
from pathlib import Path

import pytest
import torch

from posenc.lab import measured

TINY = {"q": (1, 4, 16, 16), "k": (1, 2, 16, 16)}
ONE = {"q": (2, 4, 1, 16), "k": (2, 2, 1, 16)}


@pytest.fixture
def gpu(monkeypatch):
    """Import the script as it runs: its folder first among the paths."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    return importlib.import_module("gpu")


def not_there(cos, sin, interleaved):
    raise ImportError("No module named 'nowhere'")


def failing(cos, sin, interleaved):
    raise RuntimeError("no kernel image\nand more")


def test_the_report_is_complete(gpu, monkeypatch, tmp_path, launches, capsys):
    """Catches a row or a number that is missing, a peer that stops the run or is wrong unseen."""
    peers = importlib.import_module("gpu_peers")
    another = {"the other pairing": lambda c, s, i: peers.posenc_way(c, s, not i)}
    kept = {name: peers.MAKERS[name] for name in ("posenc", "torch.compile", "transformers")}
    makers = {**kept, "nowhere": not_there, "old": failing, **another}
    monkeypatch.setattr(gpu, "MAKERS", makers)
    rows = {
        row: (how[0], ONE if "decode" in row else TINY, how[2]) for row, how in gpu.ROWS.items()
    }
    assert list(rows) == [
        f"{kind} {pairing}"
        for kind in ("forward", "backward", "decode")
        for pairing in ("half", "interleaved")
    ]
    found = gpu.report("cpu", 1, rows, with_plans=False)
    assert 2 in launches  # the kernel itself has run
    for row, ways in found["rows"].items():
        reference = "empty kernel" if "decode" in row else "copy"
        assert next(iter(ways)) == reference
        assert ways[reference]["ratio"] == 1.0
        assert ("posenc" in ways) or ("decode" in row)
        for way in ways.values():
            assert set(way) == {"microseconds", "gigabytes_per_second", "ratio"}
            assert min(way.values()) > 0
    assert set(found["rows"]["forward half"]) == {
        *("copy", "posenc out", "posenc in place", "posenc", "torch.compile", "transformers"),
    }
    assert set(found["rows"]["backward interleaved"]) == {"copy", "posenc", "torch.compile"}
    left = found["left_out"]["forward interleaved"]
    assert left["transformers"] == "has no such pairing"
    assert left["nowhere"] == "not installed: No module named 'nowhere'"
    assert left["old"] == "failed: RuntimeError: no kernel image"
    assert left["the other pairing"].startswith("wrong by ")
    assert found["bytes"]["forward half"] == 2 * 2 * (4 + 2) * 16 * 16
    (tmp_path / gpu.file_name("NVIDIA H200")).write_text(json.dumps(found))
    assert [p.name for p in tmp_path.iterdir()] == ["gpu-nvidia-h200.json"]
    (table,) = measured.tables(tmp_path)
    assert list(table.rows) == list(rows)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    gpu.main([])
    assert "No CUDA device: nothing to measure." in capsys.readouterr().out


def test_bounds_are_held_to_every_row(gpu, capsys):
    """Catches a bound that nothing can break."""
    row = {"copy": 1.0, "posenc out": 1.04, "posenc": 1.05, "FlashInfer": 1.06}
    rows = {"forward half": {name: {"ratio": ratio} for name, ratio in row.items()}}
    assert gpu.verdicts(rows) == []
    rows["forward half"]["posenc"]["ratio"] = 1.06
    assert len(gpu.verdicts(rows)) == 1
    rows["forward half"]["posenc"]["ratio"] = 1.05
    rows["forward half"]["FlashInfer"]["ratio"] = 1.0
    assert len(gpu.verdicts(rows)) == 1
    assert "DOES NOT HOLD" in capsys.readouterr().out
    slow = {"empty kernel": {"ratio": 1.0}, "posenc in place": {"ratio": 1.3}}
    assert len(gpu.verdicts({"decode half": slow})) == 1
