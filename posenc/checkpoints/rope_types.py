"""Which rope type a dictionary names, and which parameters belong to it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from posenc.checkpoints.family import Family

ORIGINAL = "original_max_position_embeddings"
ALWAYS = ("rope_type", "type", "rope_theta", "partial_rotary_factor", "max_position_embeddings")
"""Keys that may stand in any rope dictionary."""

PARAMETERS: dict[str, tuple[str, ...]] = {
    "default": (),
    "linear": ("factor",),
    "ntk": ("alpha", "factor"),
    "dynamic": ("factor", ORIGINAL),
    "yarn": (
        "factor",
        ORIGINAL,
        "attention_factor",
        "beta_fast",
        "beta_slow",
        "mscale",
        "mscale_all_dim",
        "truncate",
    ),
    "longrope": ("short_factor", "long_factor", ORIGINAL, "factor", "attention_factor"),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor", ORIGINAL),
    "proportional": ("factor",),
}
"""Parameters of each rope type, by their names in a configuration."""

NEEDED: dict[str, tuple[str, ...]] = {
    "linear": ("factor",),
    "dynamic": ("factor",),
    "yarn": ("factor",),
    "longrope": ("short_factor", "long_factor"),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
}

UNREAD: dict[str, tuple[str, ...]] = {"yarn": ("finetuned",)}
"""Keys that published files have and the code of the type does not read."""

GROWING = ("dynamic", "longrope")
"""Rope types whose frequencies depend on the length of the sequence."""


def meant(word: object, known: Iterable[str]) -> str:
    """Name the known word that looks like this one, if there is one."""
    close = difflib.get_close_matches(str(word), sorted(known), n=1, cutoff=0.75)
    return f"; is {close[0]!r} meant?" if close else ""


def rope_type(rule: Mapping[str, Any], family: Family) -> str:
    """Return the rope type of a dictionary whose every key belongs to it.

    Raises
    ------
    ValueError
        If the type is unknown, said twice in different ways, or left out although parameters
        are given; if a key is unknown or belongs to another type; if a parameter is missing.
    """
    given = {key: value for key, value in rule.items() if value is not None}
    word = _word(given, family)
    if word == "dynamic" and "alpha" in family.extra and given.get("alpha"):
        word = "ntk"
    known = {*ALWAYS, *PARAMETERS[word], *UNREAD.get(word, ()), *family.extra}
    for key in rule:
        if key in known:
            continue
        if any(key in parameters for parameters in PARAMETERS.values()):
            raise ValueError(f"{key} is no parameter of rope_type {word!r}")
        raise ValueError(f"{key} in the rope dictionary is unknown{meant(key, known)}")
    for key in NEEDED.get(word, ()):
        if key not in (rule if (word, key) == ("yarn", "factor") else given):
            raise ValueError(f"{key} is missing: rope_type {word!r} needs it")
    return word


def _word(given: Mapping[str, Any], family: Family) -> str:
    words: dict[str, str] = {key: given[key] for key in ("rope_type", "type") if key in given}
    for key, value in words.items():
        if not isinstance(value, str):
            raise TypeError(f"{key} must be a str, got {type(value).__name__}")
    named = {key: family.types.get(value, value) for key, value in words.items()}
    if len(set(named.values())) > 1:
        raise ValueError(
            f"rope_type is {words['rope_type']!r} and type is {words['type']!r}: "
            "one of them is wrong"
        )
    if not named:
        silent = [key for key in given if key not in (*ALWAYS, *family.extra)]
        if silent:
            raise ValueError(f"rope_type is missing, although {silent[0]} is given")
        return "default"
    (word,) = set(named.values())
    known = set(PARAMETERS) - {"ntk"}
    if word not in known:
        raise ValueError(
            f"rope_type must be {', '.join(sorted(known))}, got {word!r}{meant(word, known)}"
        )
    return word
