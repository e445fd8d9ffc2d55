"""``python -m posenc CONFIG.json``: what a configuration says about its rotations."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from typing import NoReturn

from posenc.checkpoints import rope_from_config
from posenc.checkpoints.report import lines, report


class _OneSentence(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"posenc: {message}\n")


def _arguments(words: list[str] | None) -> argparse.Namespace:
    parser = _OneSentence(
        prog="python -m posenc",
        description="Print what a published configuration says about its rotary embedding.",
    )
    parser.add_argument("config", help="a config.json, or the folder of a model")
    parser.add_argument(
        "--seq-len", type=int, metavar="N", help="tokens of the sequence (dynamic, longrope)"
    )
    parser.add_argument("--layer-type", metavar="X", help="kind of layer, where kinds differ")
    parser.add_argument("--json", action="store_true", help="print JSON, every digit of it")
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> int:
    """Run the command; return its exit status: 0, or 2 with one sentence on stderr."""
    asked = _arguments(words)
    try:
        rope = rope_from_config(asked.config, layer_type=asked.layer_type, seq_len=asked.seq_len)
        found = report(rope, asked.seq_len)
        if asked.json:
            text = json.dumps(found, indent=2, allow_nan=False)
        else:
            text = "\n".join(lines(found))
    except OSError as error:
        return _refuse(f"{error.filename or asked.config} cannot be read: {error.strerror}")
    except (TypeError, ValueError) as error:
        return _refuse(str(error))
    return _show(text)


def _show(text: str) -> int:
    """Print, in characters that the terminal knows; say so if it cannot be done."""
    if sys.stdout is None:
        return _refuse("the answer cannot be printed: standard output is closed")
    try:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        print(text, flush=True)
    except OSError as error:
        if isinstance(sys.stdout, io.TextIOWrapper):  # what is left must not be tried again
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # the reader has seen enough
            return 1
        return _refuse(f"the answer cannot be printed: {error.strerror}")
    return 0


def _refuse(sentence: str) -> int:
    print(f"posenc: {' '.join(sentence.split())}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
