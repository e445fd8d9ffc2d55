"""From a rope dictionary to frequencies: one rule for each rope type."""

from __future__ import annotations

from typing import Any

from posenc import context
from posenc._door import positive_float
from posenc._frequencies import Frequencies
from posenc.checkpoints.reading import Reading, inside_of
from posenc.checkpoints.rope_types import GROWING, ORIGINAL, PARAMETERS
from posenc.spectrum import frequencies


def parameters(reading: Reading) -> dict[str, Any]:
    """Return what the rule of these layers takes, defaults included.

    Raises
    ------
    TypeError, ValueError
        If a parameter is no positive number, or a factor is below 1.
    """
    word, rule = reading.rope_type, reading.rule
    taken = {key: rule[key] for key in PARAMETERS[word] if key in rule}
    if ORIGINAL in PARAMETERS[word]:
        taken[ORIGINAL] = reading.original()
    if word == "ntk":
        taken = {"factor": taken["alpha"]}
    if word == "proportional":
        taken["partial_rotary_factor"] = reading.agreed(
            "partial_rotary_factor", reading.parts(), 1.0
        )
    if "factor" not in taken and (word == "longrope" or "factor" in reading.nulls):
        taken["factor"] = max(1.0, reading.length() / taken[ORIGINAL])
        reading.source["factor"] = f"max_position_embeddings / {ORIGINAL}"
    if word == "yarn" and reading.rotation.attention_factor is not None:
        if "attention_factor" not in taken:
            reading.source["attention_factor"] = f"default of model_type {reading.model_type!r}"
        taken.setdefault("attention_factor", reading.rotation.attention_factor)
    if "factor" in taken:
        taken["factor"] = positive_float("factor", taken["factor"])
        if taken["factor"] < 1:
            raise ValueError(f"factor must be at least 1, got {taken['factor']}")
    return taken


def rule_frequencies(
    reading: Reading, dim: int, base: float, taken: dict[str, Any], seq_len: int | None
) -> Frequencies:
    """Frequencies of d/2 pairs by the rule of these layers."""
    word = reading.rope_type
    if word == "default":
        return frequencies(dim, base)
    if word in GROWING:
        if seq_len is None:
            raise ValueError(f"seq_len must be given for rope_type {word!r}, got None")
        taken = taken | {"seq_len": seq_len}
    if word == "longrope" and "attention_factor" not in taken:
        taken = taken | _mscale(reading, taken)
    rule = getattr(context, word)
    result: Frequencies = rule(dim, base=base, **taken)
    return result


def _mscale(reading: Reading, taken: dict[str, Any]) -> dict[str, float]:
    """Return the attention factor of PhiMoE, which has one for each of its two lists."""
    key = "long_mscale" if taken["seq_len"] > taken[ORIGINAL] else "short_mscale"
    if key not in reading.rule:
        return {}
    reading.source["attention_factor"] = inside_of(key)
    return {"attention_factor": positive_float(key, reading.rule[key])}
