"""The text that the book's character models read: kept in the book, checked before it is used."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from posenc._door import choice, whole_number

__all__ = ["FOLDER", "SYMBOLS", "TEXTS", "Corpus", "load", "read"]

FOLDER = Path(__file__).parents[2] / "book" / "data"
SYMBOLS = " ,.abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Source:
    """A vendored text: its file, what its bytes hash to, and under which licence it is here."""

    file: str
    sha256: str
    licence: str


TEXTS = {
    "python-topics": Source(
        "python-topics.txt",
        "93404f1ed608837e81de7c755f4c59176d32f882797f1b3467d9eacf6425cd92",
        "python-topics.LICENCE.txt",
    ),
}


def read(name: str = "python-topics", folder: Path = FOLDER) -> str:
    """Return a vendored text, if it is the one that the book was written with.

    Parameters
    ----------
    name : str
        One of `TEXTS`.
    folder : Path
        Where it lies: ``book/data`` unless given.

    Raises
    ------
    ValueError
        If the name is another, or the file has another hash: numbers trained on it would differ.
    FileNotFoundError
        If the file is not there.
    """
    choice("text", name, list(TEXTS))
    source = TEXTS[name]
    path = folder / source.file
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: the corpus comes with the book's repository")
    data = path.read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != source.sha256:
        raise ValueError(
            f"{path} must have the SHA-256 {source.sha256}, got {found}: "
            f"restore it with git checkout"
        )
    return data.decode("utf-8")


def reduced(text: str) -> str:
    """Return a text in 29 symbols: lower-case letters, comma, full stop, and single spaces."""
    return re.sub(r"[^a-z,.]+", " ", text.lower()).strip()


@dataclass(frozen=True)
class Corpus:
    """A text as numbers: nine tenths to train on, the last tenth held out."""

    trained: Tensor
    """int64 [N], indices into `SYMBOLS`."""
    held_out: Tensor
    """int64 [M]."""

    def batch(self, batch: int, length: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draw pieces of the training text; the answer at each place is the next symbol.

        Returns
        -------
        x, y : int64 tensors, shape [B, T]
            On the CPU.

        Raises
        ------
        ValueError
            If the text is shorter than the length.
        """
        room = self._room(self.trained, length)
        start = torch.randint(room, (batch, 1), generator=generator)
        index = start + torch.arange(length + 1)  # [B, T + 1]
        piece = self.trained[index]
        return piece[:, :-1], piece[:, 1:]

    def windows(self, count: int, length: int) -> tuple[Tensor, Tensor]:
        """Return fixed pieces of the held-out text, evenly spaced, and their answers.

        Returns
        -------
        x, y : int64 tensors, shape [count, length]
            On the CPU.

        Raises
        ------
        ValueError
            If the held-out text is shorter than the length.
        """
        room = self._room(self.held_out, length)
        start = torch.arange(count) * room // count
        piece = self.held_out[start[:, None] + torch.arange(length + 1)]
        return piece[:, :-1], piece[:, 1:]

    @staticmethod
    def _room(text: Tensor, length: int) -> int:
        room = len(text) - whole_number("length", length, at_least=1)
        if room < 1:
            raise ValueError(f"length must be less than the text's {len(text)}, got {length}")
        return room


def load(name: str = "python-topics", folder: Path = FOLDER) -> Corpus:
    """Return a vendored text as numbers; errors are those of `read`."""
    place = {symbol: number for number, symbol in enumerate(SYMBOLS)}
    ids = torch.tensor([place[symbol] for symbol in reduced(read(name, folder))])
    cut = len(ids) * 9 // 10
    return Corpus(ids[:cut], ids[cut:])
