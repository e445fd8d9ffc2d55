"""The experiments of the chapter on extrapolation at size: ``python -m posenc.lab.study``.

Each run (a part, an encoding, a seed) is stored as soon as it ends, and a study that was stopped
goes on behind the last one stored: with the same numbers, because each run has its own seeds. The
stored result is a JSON file of everything needed to read it later: plan, seeds, versions, kind of
device, date, curves.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from posenc import lab
from posenc.lab.corpus import FOLDER, TEXTS
from posenc.lab.experiments import (
    FAST_SHIFT,
    FAST_TEXT,
    SHIFT,
    TEXT,
    Setting,
    Trained,
    inside,
    run,
)
from posenc.lab.plugs import ENCODINGS

__all__ = ["PLANS", "Part", "StudyError", "study"]

DIGITS = 4  # of what is stored


class StudyError(Exception):
    """A study that cannot go on; the message says why."""


@dataclass(frozen=True)
class Part:
    """One question of a study."""

    name: str
    setting: Setting
    encodings: tuple[str, ...]
    seeds: tuple[int, ...]
    probed: bool = False  # whether position is looked for inside


READERS = ("none", "sinusoidal", "learned", "alibi", "rope")
WAVES = ("sinusoidal", "rope")


def _parts(size: Setting, seeds: tuple[int, ...]) -> tuple[Part, ...]:
    deep = replace(TEXT, lengths=(64, 512), steps=200, n_layers=4)
    long = replace(TEXT, lengths=(64, 512), steps=800)
    five, three = tuple(range(5)), tuple(range(3))
    return (
        Part("shift", SHIFT, ENCODINGS, five),
        Part("fast-shift", FAST_SHIFT, WAVES, five),
        Part("text", TEXT, READERS, three),
        Part("fast-text", FAST_TEXT, WAVES, three),
        Part("inside", deep, WAVES, three, probed=True),
        Part("long", long, ("none", "sinusoidal", "learned"), three),
        Part("size", size, ENCODINGS, seeds),
    )


SIZE = Setting(
    "text",
    (64, 128, 256, 512, 1024),
    batch=16,
    steps=600,
    dim=128,
    n_layers=4,
    lr=2e-3,
    texts=32,
)
# More steps would learn the text by heart: this reads each of its characters nine times.
SIZE_ON_A_GPU = Setting(
    "text",
    (128, 256, 512, 1024, 2048, 4096),
    batch=64,
    steps=400,
    dim=256,
    n_heads=8,
    n_layers=4,
    lr=1e-3,
    texts=8,
)

PLANS = {
    "cpu": _parts(SIZE, (0,)),
    "cuda": _parts(SIZE_ON_A_GPU, (0, 1, 2)),
}


def study(
    plan: Sequence[Part],
    path: Path,
    *,
    device: torch.device | str = "cpu",
    seconds: float = math.inf,
    say: Callable[[str], None] = lambda words: None,
) -> dict[str, Any]:
    """Run what is missing of a plan, and store the whole.

    Parameters
    ----------
    plan : sequence of Part
        As in `PLANS`.
    path : Path
        Of the JSON file. Until the study is complete it is written to the same name with
        ``.partial`` behind; a finished study is not run again.
    device : torch.device
        Where models are trained.
    seconds : float
        A cap on the training of each run; the steps taken are stored. Results under a cap repeat
        on no other machine.
    say : function of a str
        Is told each run that ends.

    Returns
    -------
    dict
        What was stored.

    Raises
    ------
    StudyError
        If what is stored there is of another plan, other versions or another kind of device.
    """
    partial = path.with_name(path.name + ".partial")
    about = {
        "plan": json.loads(json.dumps([asdict(part) for part in plan])),
        "device": torch.device(device).type,
        "seconds": None if math.isinf(seconds) else seconds,
        "corpus": TEXTS["python-topics"].sha256,
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__.partition("+")[0],
            "numpy": np.__version__,
        },
    }
    stored: dict[str, Any] = {**about, "runs": {}}
    for found in (path, partial):
        if found.exists():
            stored = json.loads(found.read_text(encoding="utf-8"))
            for word, value in about.items():
                if stored.get(word) != value:
                    raise StudyError(
                        f"{found} was made with another {word}: remove it, or name another --out"
                    )
    missing = [each for each in _runs(plan) if each[0] not in stored["runs"]]
    if not missing:
        return stored
    for number, (key, part, name, seed) in enumerate(missing, start=1):
        start = time.monotonic()
        done = run(part.setting, name, seed, device=device, seconds=seconds)
        stored["runs"][key] = _summary(done, part)
        _write(partial, stored)
        say(f"{number} of {len(missing)}: {key} ({time.monotonic() - start:.0f} s)")
    stored = {"date": datetime.date.today().isoformat(), **stored}
    _write(partial, stored)
    os.replace(partial, path)
    return stored


def _runs(plan: Sequence[Part]) -> Iterator[tuple[str, Part, str, int]]:
    """Seed after seed, so that a study that is stopped has all encodings of the first ones."""
    for part in plan:
        for seed in part.seeds:
            for name in part.encodings:
                yield f"{part.name}/{name}/{seed}", part, name, seed


def _summary(done: Trained, part: Part) -> dict[str, Any]:
    """What is kept of a run, rounded."""
    last = done.losses[-20:]
    curve = [float(np.mean(done.losses[at : at + 20])) for at in range(0, len(done.losses), 20)]
    found: dict[str, Any] = {
        "steps": len(done.losses),
        "scores": done.scores,
        "loss": float(np.mean(last)),
        "curve": curve,
    }
    if done.geared:
        found["geared"] = done.geared
    if part.probed:
        found["inside"] = inside(done, part.setting)
    rounded: dict[str, Any] = _rounded(found)
    return rounded


def _rounded(value: Any) -> Any:
    """Floats to four digits after the point, keys as JSON has them."""
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, dict):
        return {str(key): _rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return value


def _write(path: Path, stored: dict[str, Any]) -> None:
    """Replace the file as a whole: a study stopped while it writes keeps what it had."""
    beside = path.with_name(path.name + ".new")
    runs = ",\n".join(f'  "{key}": {json.dumps(each)}' for key, each in stored["runs"].items())
    head = ",\n".join(
        f' "{key}": {json.dumps(value)}' for key, value in stored.items() if key != "runs"
    )
    beside.write_text(f'{{\n{head},\n "runs": {{\n{runs}\n }}\n}}\n', encoding="utf-8")
    os.replace(beside, path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study of this machine's device."""
    parser = argparse.ArgumentParser(
        prog="python -m posenc.lab.study",
        description="Train all encodings short and test them long, at the size that the device "
        "(POSENC_DEVICE, or CUDA where there is one) can bear. Resumes where it was stopped.",
    )
    parser.add_argument("--out", type=Path, help="JSON file, book/data/study-DEVICE.json if not")
    parser.add_argument(
        "--seconds", type=float, default=math.inf, help="a cap on each training; none if not given"
    )
    given = parser.parse_args(arguments)
    if "POSENC_DEVICE" in os.environ or not torch.cuda.is_available():
        device = lab.device()
    else:
        device = torch.device("cuda")
    kind = "cuda" if device.type == "cuda" else "cpu"
    path = given.out or FOLDER / f"study-{kind}.json"
    print(f"Plan {kind}, to {path}: about half an hour if nothing else runs.", flush=True)
    try:
        study(
            PLANS[kind],
            path,
            device=device,
            seconds=given.seconds,
            say=lambda words: print(words, flush=True),
        )
    except StudyError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
