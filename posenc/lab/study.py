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
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from posenc import lab
from posenc._door import choice, offset_number, real_number
from posenc.lab.corpus import FOLDER, TEXTS
from posenc.lab.experiments import TASKS, Trained, inside, run, text
from posenc.lab.plans import PLANS, Part, runs
from posenc.lab.plugs import ENCODINGS

__all__ = ["StudyError", "study"]

DIGITS = 4  # of what is stored


class StudyError(Exception):
    """A study that cannot go on; the message says why."""


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
        As in `posenc.lab.plans.PLANS`.
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
    TypeError, ValueError, FileNotFoundError
        If the plan has an unknown encoding or task or a seed that is no integer, if ``seconds`` is
        not at least 0, or the corpus is missing or another: before anything is trained or written.
    StudyError
        If what is stored there is damaged, or of another plan, other versions or another kind of
        device, or if nothing can be written there: found out before anything is trained.
    """
    _check(plan, seconds)
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
            stored = _read(found)
            for word, value in about.items():
                if stored.get(word) != value:
                    raise StudyError(
                        f"{found} was made with another {word}: remove it, or name another --out"
                    )
    missing = [each for each in runs(plan) if each[0] not in stored["runs"]]
    if not missing and path.exists():
        return stored
    _write(partial, stored)
    for number, (key, part, name, seed) in enumerate(missing, start=1):
        start = time.monotonic()
        done = run(part.setting, name, seed, device=device, seconds=seconds)
        stored["runs"][key] = _summary(done, part)
        _write(partial, stored)
        say(f"{number} of {len(missing)}: {key} ({time.monotonic() - start:.0f} s)")
    stored = {"date": datetime.date.today().isoformat(), **stored}
    _write(partial, stored)
    _replace(partial, path)
    return stored


def _check(plan: Sequence[Part], seconds: float) -> None:
    """Refuse at once what would end a study after an hour."""
    if not real_number("seconds", seconds) >= 0:
        raise ValueError(f"seconds must be at least 0, got {seconds}")
    for _, part, name, seed in runs(plan):
        choice("task", part.setting.task, TASKS)
        choice("encoding", name, ENCODINGS)
        offset_number("seed", seed)
    if any(part.setting.task == "text" for part in plan):
        text()


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


def _read(path: Path) -> dict[str, Any]:
    """Read what a study has stored, as far as it came."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StudyError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:  # neither JSON nor UTF-8
        stored = None
    if not isinstance(stored, dict) or not isinstance(stored.get("runs"), dict):
        raise StudyError(f"{path} is damaged: remove it, or name another --out")
    return stored


def _replace(new: Path, path: Path) -> None:
    try:
        os.replace(new, path)
    except OSError as error:
        raise StudyError(f"{path} cannot be written: {error.strerror}") from None


def _write(path: Path, stored: dict[str, Any]) -> None:
    """Replace the file as a whole: a study stopped while it writes keeps what it had."""
    beside = path.with_name(path.name + ".new")
    body = ",\n".join(f'  "{key}": {json.dumps(each)}' for key, each in stored["runs"].items())
    head = ",\n".join(
        f' "{key}": {json.dumps(value)}' for key, value in stored.items() if key != "runs"
    )
    try:
        beside.write_text(f'{{\n{head},\n "runs": {{\n{body}\n }}\n}}\n', encoding="utf-8")
    except OSError as error:
        raise StudyError(f"{path} cannot be written: {error.strerror}") from None
    _replace(beside, path)


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
    except (StudyError, ValueError, FileNotFoundError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
