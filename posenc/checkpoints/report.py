"""What a configuration means, as one dict for programs and as lines for a person."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posenc._frequencies import Frequencies
from posenc.checkpoints import Rope
from posenc.checkpoints.rope_types import GROWING
from posenc.spectrum import frequencies, wavelengths

LOST = 1e-3
"""Radians by which an angle formed in float32 may be wrong before it counts as failed."""

LAST = 1 << 24
"""Beyond it float32 holds no longer every position, whatever the frequency."""

Report = dict[str, Any]


def first_lost(spectrum: Frequencies) -> dict[str, int] | None:
    """First position whose angle in float32 is more than `LOST` wrong, and the pair.

    Notes
    -----
    The angle as libraries form it: the position and the frequency in float32, multiplied in
    float32. Each step is rounded to nearest, so the result is the same on every machine.
    """
    omega = spectrum.omega
    step = max(1, (1 << 22) // len(omega))  # a few arrays of 32 MiB
    with np.errstate(over="ignore", invalid="ignore"):  # a frequency beyond float32 is lost
        return _first_lost(omega, omega.astype(np.float32), step)


def _first_lost(
    omega: NDArray[np.float64], narrow: NDArray[np.float32], step: int
) -> dict[str, int] | None:
    fastest = np.abs(omega).max()
    for start in range(0, LAST + 2, step):
        if fastest * (start + step) * 2.0**-23 < LOST:
            continue  # two roundings of half an ulp each cannot reach it yet
        positions = np.arange(start, min(start + step, LAST + 2), dtype=np.int64)[:, None]
        angles = (positions.astype(np.float32) * narrow).astype(np.float64)
        wrong = np.abs(angles - positions * omega) > LOST  # [step, r/2]
        if wrong.any():
            row = int(wrong.any(axis=1).argmax())
            return {"position": start + row, "pair": int(wrong[row].argmax())}
    return None


def bands(rope: Rope) -> list[dict[str, Any]]:
    """What the rule does, as runs of pairs that it treats alike.

    Returns
    -------
    list of dict
        ``first``, ``last`` (pairs), ``effect`` ("kept", "divided", "stopped", "slowed" or
        "quickened") and ``ratio``: new over old frequency of the first and of the last pair.
    """
    before = frequencies(rope.rotary_dim, rope.base).omega
    ratios = rope.frequencies.omega / before
    factor = rope.parameters.get("factor", 1.0)
    runs: list[dict[str, Any]] = []
    for pair, ratio in enumerate(ratios.tolist()):
        effect = _effect(ratio, factor)
        if runs and runs[-1]["effect"] == effect:
            runs[-1]["last"], runs[-1]["ratio"][1] = pair, ratio
        else:
            runs.append({"first": pair, "last": pair, "effect": effect, "ratio": [ratio, ratio]})
    return runs


def _effect(ratio: float, factor: float) -> str:
    if ratio == 0:
        return "stopped"
    if math.isclose(ratio, 1, rel_tol=1e-12):
        return "kept"
    if math.isclose(ratio * factor, 1, rel_tol=1e-12):
        return "divided"
    return "slowed" if ratio < 1 else "quickened"


def report(rope: Rope, seq_len: int | None) -> Report:
    """Everything that the command prints, in numbers that JSON can hold."""
    length = rope.original_max_position_embeddings
    waves = wavelengths(rope.frequencies)
    return {
        "model_type": rope.model_type,
        "layer_type": rope.layer_type,
        "interleaved": rope.interleaved,
        "head_dim": rope.head_dim,
        "rotary_dim": rope.rotary_dim,
        "rotary_start": rope.rotary_start,
        "base": rope.base,
        "rope_type": rope.rope_type,
        "parameters": rope.parameters,
        "attention_factor": rope.frequencies.attention_factor,
        "softmax_scale": rope.softmax_scale,
        "original_max_position_embeddings": length,
        "max_position_embeddings": rope.max_position_embeddings,
        "seq_len": seq_len,
        "frequencies": rope.frequencies.omega.tolist(),
        "wavelengths": [wave if math.isfinite(wave) else None for wave in waves.tolist()],
        "never_turn": [pair for pair, wave in enumerate(waves.tolist()) if wave > length],
        "float32_lost": first_lost(rope.frequencies),
        "float32_lost_radians": LOST,
        "bands": bands(rope),
        "source": rope.source,
    }


def lines(found: Report) -> list[str]:
    """Lay a report out for a person."""
    turning, head, start = found["rotary_dim"], found["head_dim"], found["rotary_start"]
    pairs = turning // 2
    kind = "neighbours (2i, 2i + 1)" if found["interleaved"] else f"halves (i, i + {pairs})"
    layers = f", layers of type {found['layer_type']}" if found["layer_type"] else ""
    part = "all" if turning == head else f"{turning}, from {start} on; the others pass"
    rows = [
        ("model", f"{found['model_type']}{layers}"),
        ("head", f"{head} channels; turning: {part}"),
        ("pairs", f"{pairs}, {kind}"),
        ("base", _value(found["base"])),
        ("rule", _rule(found)),
        ("attention factor", f"{found['attention_factor']:.6g}, on cosines and sines"),
        ("softmax scale", f"{found['softmax_scale']:.6g}"),
        ("length", _length(found)),
        ("never turn", _never(found)),
        ("float32 angles", _float32(found)),
    ]
    if found["rope_type"] != "default":
        rows += [("", _band(run, found["parameters"])) for run in found["bands"]]
        rows[-len(found["bands"])] = ("bands", rows[-len(found["bands"])][1])
    return [
        *_table(rows),
        "wavelengths, in tokens per turn",
        *_waves(found["wavelengths"]),
        "where each value comes from",
        *_table([(f"  {name}", words) for name, words in found["source"].items()]),
    ]


def _table(rows: list[tuple[str, str]]) -> list[str]:
    width = 2 + max(len(name) for name, _ in rows)
    return [f"{name:<{width}}{words}" for name, words in rows]


def _rule(found: Report) -> str:
    words = ", ".join(f"{key} {_value(value)}" for key, value in found["parameters"].items())
    at = f"; at {found['seq_len']} tokens" if found["rope_type"] in GROWING else ""
    return f"{found['rope_type']}{': ' if words else ''}{words}{at}"


def _value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{len(value)} numbers]"
    if isinstance(value, float):
        return f"{value:.15g}"
    return f"{value}"


def _length(found: Report) -> str:
    first, allowed = found["original_max_position_embeddings"], found["max_position_embeddings"]
    return (
        f"{allowed} tokens" if allowed == first else f"original {first} tokens, allowed {allowed}"
    )


def _never(found: Report) -> str:
    never, length = found["never_turn"], found["original_max_position_embeddings"]
    if not never:
        return f"none: each pair makes a full turn within {length} tokens"
    runs = [[never[0], never[0]]]
    for pair in never[1:]:
        if pair > runs[-1][1] + 1:
            runs.append([pair, pair])
        runs[-1][1] = pair
    words = ", ".join(_span(first, last) for first, last in runs)
    count = f"{len(never)} of {len(found['wavelengths'])}"
    return f"{words}: {count} make no full turn within {length} tokens"


def _span(first: int, last: int) -> str:
    return f"pairs {first} to {last}" if last > first else f"pair {first}"


def _float32(found: Report) -> str:
    lost, radians = found["float32_lost"], found["float32_lost_radians"]
    if lost is None:
        return f"within {radians:g} radian up to position {LAST}"
    at, pair = lost["position"], lost["pair"]
    return f"more than {radians:g} radian wrong from position {at} on (pair {pair} first)"


def _band(run: dict[str, Any], parameters: dict[str, Any]) -> str:
    first, last = run["ratio"]
    effect = {
        "kept": "kept",
        "divided": f"divided by {parameters.get('factor', 1):g}",
        "stopped": "stopped",
    }.get(
        run["effect"], f"multiplied by {first:.4g}" + (f" to {last:.4g}" if last != first else "")
    )
    return f"{_span(run['first'], run['last'])} {effect}"


def _waves(waves: list[float | None]) -> list[str]:
    turning = max(pair for pair, wave in enumerate(waves) if wave is not None) + 1
    words = ["never" if wave is None else f"{wave:.4g}" for wave in waves[:turning]]
    rows = [
        f"{start:>6}" + "".join(f"{word:>11}" for word in words[start : start + 8])
        for start in range(0, turning, 8)
    ]
    return rows if turning == len(waves) else [*rows, f"{turning:>6}      never, to the last"]
