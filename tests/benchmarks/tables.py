"""Time the building of tables: ratios to a fill of the same memory, within one process.

Run as ``python tests/benchmarks/tables.py [--write PATH]``: one thread, candidates interleaved,
the median of the ratios over all rounds. Run it with nothing else on the machine.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from posenc import frequencies, phases, sinusoidal_encoding

LENGTH, DIM = 65536, 512
BOUNDS = {"posenc": 4.8, "tutorial over posenc": 8.0}


def float32_tutorial(out: torch.Tensor) -> None:
    """The usual listing: angles in float32, sines and cosines into alternate columns."""
    position = torch.arange(LENGTH, dtype=torch.float32)[:, None]
    omega = torch.exp(torch.arange(0, DIM, 2, dtype=torch.float32) * (-math.log(10000.0) / DIM))
    out[:, 0::2] = torch.sin(position * omega)
    out[:, 1::2] = torch.cos(position * omega)


def float64_direct(out: torch.Tensor) -> None:
    """Angles in float64, 256 rows at a time, rounded into the table."""
    omega = torch.from_numpy(frequencies(DIM).omega.copy())
    for start in range(0, LENGTH, 256):
        rows = slice(start, start + 256)
        angle = torch.arange(start, start + 256, dtype=torch.float64)[:, None] * omega
        out[rows, 0::2], out[rows, 1::2] = torch.sin(angle), torch.cos(angle)


def candidates() -> dict[str, Callable[[], object]]:
    """Every way to fill the same memory, the fill itself first."""
    out = torch.empty(LENGTH, DIM)
    shared = out.numpy()
    shuffled = torch.arange(LENGTH).flip(0)
    halves = (torch.empty(LENGTH, DIM // 2), torch.empty(LENGTH, DIM // 2))
    omega = frequencies(DIM)
    return {
        "fill": lambda: out.fill_(1.0),
        "posenc": lambda: sinusoidal_encoding(range(LENGTH), DIM, out=out),
        "posenc_numpy": lambda: sinusoidal_encoding(range(LENGTH), DIM, out=shared),
        "float32_tutorial": lambda: float32_tutorial(out),
        "float64_direct": lambda: float64_direct(out),
        "posenc_any_order": lambda: phases(shuffled, omega, out=halves),
    }


def measure(rounds: int) -> dict[str, float]:
    """Median ratio of each candidate to the fill of its own round."""
    ways = candidates()
    ratios: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        seconds = {}
        for name, way in ways.items():
            seconds[name] = min(_timed(way) for _ in range(3 if name == "fill" else 1))
        for name, spent in seconds.items():
            if number:  # the first round warms up
                ratios[name].append(spent / seconds["fill"])
    return {name: float(f"{statistics.median(values):.3g}") for name, values in ratios.items()}


def _timed(way: Callable[[], object]) -> float:
    start = time.perf_counter()
    way()
    return time.perf_counter() - start


def processor() -> str:
    """Name of the processor, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line.split(":")[1].strip() for line in lines if "model name" in line), "unknown")


def report(rounds: int) -> dict[str, object]:
    """What the book stores: date, machine, versions and ratios."""
    torch.set_num_threads(1)
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": processor(),
        "threads": 1,
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__.split("+")[0],
            "numpy": np.__version__,
        },
        f"sinusoidal_{LENGTH}x{DIM}": {
            "unit": "time of fill_ of the same memory",
            **measure(rounds),
        },
    }


def main() -> None:
    """Print the report and hold it to the bounds; store it if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="store the report as JSON")
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    result = report(arguments.rounds)
    text = json.dumps(result, indent=1) + "\n"
    print(text)
    ratios = result[f"sinusoidal_{LENGTH}x{DIM}"]
    gain = ratios["float32_tutorial"] / ratios["posenc"]
    print(f"posenc: {ratios['posenc']} x fill_ (bound {BOUNDS['posenc']})")
    print(f"tutorial / posenc: {gain:.3g} (bound {BOUNDS['tutorial over posenc']})")
    if arguments.write:
        arguments.write.write_text(text)
    if ratios["posenc"] > BOUNDS["posenc"] or gain < BOUNDS["tutorial over posenc"]:
        raise SystemExit("a bound does not hold; is anything else running?")


if __name__ == "__main__":
    main()
