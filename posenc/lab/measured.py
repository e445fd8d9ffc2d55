"""Measured times, read from where the benchmarks store them: one table for each machine.

``make bench`` and ``make gpu`` write JSON files into ``book/data``; the book shows what is there,
with date and machine, and never what it was told by hand.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Table", "tables"]


class Table(NamedTuple):
    """Ratios of one machine: how long each way takes, the reference taking 1."""

    title: str
    """For example ``CPU, cold`` or ``NVIDIA H200``."""
    about: str
    """Date, machine, versions, unit."""
    rows: dict[str, dict[str, float]]
    """For each task the ratio of each way; the reference comes first."""

    def __str__(self) -> str:
        """Lay it out as text: a line for each task and way."""
        lines = [self.title, self.about]
        for row, ratios in self.rows.items():
            width = max(map(len, ratios))
            lines += ["", row, *(f"  {way:{width}}  {r:8.3g}" for way, r in ratios.items())]
        return "\n".join(lines)


def tables(folder: str | Path) -> list[Table]:
    """Read every stored measurement: those of the CPU, then one table for each GPU.

    Parameters
    ----------
    folder : str or Path
        Where the JSON files are: ``book/data``.

    Returns
    -------
    list of Table
        Sinusoidal tables and rotations on the CPU (cold: with the allocator as it is; warm: with
        one that keeps freed memory), then each GPU. What was not measured is not there: without a
        ``gpu-*.json`` no table of a GPU.

    Raises
    ------
    FileNotFoundError
        If there is no such folder.

    Examples
    --------
    >>> tables("no/such/folder")
    Traceback (most recent call last):
    ...
    FileNotFoundError: no folder of measurements: no/such/folder
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"no folder of measurements: {folder}")
    found = []
    for path in sorted(folder.glob("benchmark*-cpu.json")):
        measured = json.loads(path.read_text())
        for name, value in measured.items():
            if name in ("cold", "warm"):
                about = f"{_about(measured)}; unit: {measured['unit']}"
                found.append(Table(f"CPU, {name}", about, value))
            elif isinstance(value, dict) and "unit" in value:
                ratios = {way: r for way, r in value.items() if way != "unit"}
                about = f"{_about(measured)}; unit: {value['unit']}"
                found.append(Table("CPU, tables", about, {name: ratios}))
    for path in sorted(folder.glob("gpu-*.json")):
        measured = json.loads(path.read_text())
        rows = {
            row: {way: each["ratio"] for way, each in ways.items()}
            for row, ways in measured["rows"].items()
        }
        about = f"{_about(measured)}; unit: {measured['unit']['ratio']}"
        found.append(Table(measured["device"], about, rows))
    return found


def _about(measured: dict[str, Any]) -> str:
    machine = measured.get("machine") or measured["device"]
    versions = ", ".join(f"{name} {version}" for name, version in measured["versions"].items())
    return f"{measured['date']}, {machine}; {versions}"
