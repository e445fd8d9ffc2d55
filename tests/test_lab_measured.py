"""Stored measurements come out as tables, and what was not measured does not."""

import json

import pytest

from posenc.lab import measured

CPU = {
    "date": "2026-11-30",
    "machine": "a processor",
    "versions": {"torch": "2.13.0"},
    "unit": "time of copy_",
    "cold": {"decode": {"copy": 1.0, "posenc": 3.5}},
    "warm": {"decode": {"copy": 1.0, "posenc": 3.4}},
}
GPU = {
    "date": "2026-11-30",
    "device": "NVIDIA H200",
    "versions": {"torch": "2.9.0"},
    "unit": {"ratio": "time of copy_"},
    "rows": {"forward half": {"copy": {"ratio": 1.0}, "posenc out": {"ratio": 1.02}}},
}


def test_every_machine_has_its_table(tmp_path):
    """Catches a machine, a reference or a date that is lost, and a GPU that was never measured."""
    (tmp_path / "benchmark-rope-cpu.json").write_text(json.dumps(CPU))
    assert [t.title for t in measured.tables(tmp_path)] == ["CPU, cold", "CPU, warm"]
    (tmp_path / "gpu-nvidia-h200.json").write_text(json.dumps(GPU))
    cold, _, gpu = measured.tables(tmp_path)
    assert cold.rows == CPU["cold"]
    assert gpu.rows == {"forward half": {"copy": 1.0, "posenc out": 1.02}}
    for said in ("NVIDIA H200", "2026-11-30", "torch 2.9.0", "time of copy_", "posenc out", "1.02"):
        assert said in str(gpu)
    with pytest.raises(FileNotFoundError, match="no folder of measurements"):
        measured.tables(tmp_path / "none")


def test_the_books_own_data_can_be_read():
    """Catches a benchmark that stores what the tables do not know."""
    found = measured.tables("book/data")
    assert any(table.title == "CPU, tables" for table in found)
    for table in found:
        for ratios in table.rows.values():
            assert next(iter(ratios.values())) == 1.0  # the reference
