"""Try the faults: ``python -m tests.breaks [WORD ...]``, those whose name holds one of the words.

The tree is copied into a temporary folder first; nothing here is changed. A check that fails on
the unbroken copy, or passes on a broken one, makes the run fail.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from . import BREAKS

ROOT = Path(__file__).parents[2]


def copied_to(folder: Path) -> Path:
    """Copy what git knows, and what it would take in."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    return folder


def passes(tree: Path, check: tuple[tuple[str, ...], ...]) -> tuple[bool, str]:
    """Whether the commands of a check all succeed, and what they said last."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "WAVES_REQUIRE_SITE": "1"}
    said = ""
    for command in check:
        own = {"TRITON_INTERPRET": "1"} if "tests/interpreter" in command else {}
        done = subprocess.run(
            [sys.executable, *command],
            cwd=tree,
            env={**environment, **own},
            capture_output=True,
            text=True,
        )
        said = done.stdout + done.stderr
        if done.returncode:
            return False, said
    return True, said


def main(words: list[str]) -> None:
    """Try each break; print one line for each."""
    chosen = [b for b in BREAKS if not words or any(word in b.name for word in words)]
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        tree = copied_to(Path(folder))
        for check in dict.fromkeys(b.check for b in chosen):
            well, said = passes(tree, check)
            if not well:
                raise SystemExit(f"fails before anything is broken: {check[-1]}\n{said[-2000:]}")
        for fault in chosen:
            file = tree / fault.file
            sound = file.read_text()
            file.write_text(fault.put(sound))
            unseen, said = passes(tree, fault.check)
            file.write_text(sound)
            failed = re.findall(r"^FAILED (\S+?)(?: - .*)?$", said, re.M)
            seen = "NOT SEEN" if unseen else (failed[0] if failed else fault.check[0][-1])
            print(f"{fault.name:36} {seen}", flush=True)
            if unseen:
                wrong.append(fault.name)
    if wrong:
        raise SystemExit(f"no check failed for: {', '.join(wrong)}")


if __name__ == "__main__":
    main(sys.argv[1:])
