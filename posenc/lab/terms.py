"""The words of the glossary, and which of them a word in bold defines."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["defined", "entries", "key"]

# What a sentence needs in another form than the glossary's head word has.
SAID_AS = {
    "clipped": "clipping",
    "flops": "flop",
    "paper": "paper spacing",
    "endpoint": "endpoint spacing",
    "positional encoding": "encoding",
    "reaches": "reach",
    "rotary encoding": "RoPE",
    "scaling by parts": "by parts",
    "wraps around": "wrap-around arithmetic",
}


def entries(glossary: str) -> list[str]:
    """Return the head words of a glossary in MyST, in its order, as they are written.

    Parameters
    ----------
    glossary
        The page: its ``{glossary}`` blocks are read.
    """
    found = []
    for block in re.findall(r"^(`{3,})\{glossary\}\n(.*?)^\1", glossary, re.MULTILINE | re.DOTALL):
        found += re.findall(r"^(?![:\s`])(.+)$", block[1], re.MULTILINE)
    return [word.strip() for word in found]


def key(words: str) -> str:
    """Return words as they are compared: without case, hyphens, dollars and a last plural s."""
    plain = re.sub(r"[\s–-]+", " ", words.replace("$", "")).strip().lower()
    if plain.endswith("ies"):
        return plain[:-3] + "y"
    return plain[:-1] if plain.endswith("s") and not plain.endswith("ss") else plain


def defined(bold: str, heads: Iterable[str]) -> str | None:
    """Return the term that words in bold define, as the index writes it, or None.

    Parameters
    ----------
    bold
        The words, without the asterisks.
    heads
        What `entries` has returned. A head of several words parted by commas is several terms.
    """
    terms = {key(part): part for head in heads for part in head.split(", ")}
    wanted = " ".join(bold.split())
    return terms.get(key(wanted)) or terms.get(key(SAID_AS.get(wanted.lower(), "")))
