"""What the chapter on extrapolation says of its live experiments, each sentence as a test.

The chapter prints these booleans for its seeds, and ``make study-check`` for ten others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from posenc.lab.experiments import Trained

__all__ = [
    "CACHED",
    "READERS",
    "WAVES",
    "absolute",
    "cache",
    "fast",
    "holds",
    "regeared",
    "relative",
    "text",
]

READERS = ("none", "sinusoidal", "alibi", "rope")
"""Encodings of the live character model."""

CACHED = ("sinusoidal", "learned", "rope", "alibi")
"""Models of the shift that read from a cache."""

WAVES = ("sinusoidal", "rope")
"""Encodings that have hands."""

Claims = dict[str, bool]


def absolute(done: Mapping[str, Trained]) -> Claims:
    """Say the previous token, 32 tokens trained: what is added to the embeddings, of one seed."""
    at = {name: each.scores for name, each in done.items()}
    waves, table = at["sinusoidal"], at["learned"]
    return {
        "waves and table: at least .98 at 32": min(waves[32], table[32]) >= 0.98,
        "waves and table: below .2 at 64": max(waves[64], table[64]) < 0.2,
        "no position: below .7 at 32": at["none"][32] < 0.7,
        "no position: below .35 at 64": at["none"][64] < 0.35,
        "raw index: below .3 at 64": at["index"][64] < 0.3,
        "normalised: below .95 at 64": at["normalised"][64] < 0.95,
        "normalised: below .7 at 128": at["normalised"][128] < 0.7,
        "normalised: below .4 at 256": at["normalised"][256] < 0.4,
    }


def relative(done: Mapping[str, Trained]) -> Claims:
    """Say the previous token, 32 tokens trained: what enters the scores, of one seed."""
    waves, alibi, rope = (done[name].scores for name in ("sinusoidal", "alibi", "rope"))
    return {
        "ALiBi: at least .97 at 32, 64, 128 and 256": min(alibi.values()) >= 0.97,
        "RoPE: at least .98 at 32": rope[32] >= 0.98,
        "RoPE: at least .7 at 64": rope[64] >= 0.7,
        "RoPE: below .4 at 256": rope[256] < 0.4,
        "RoPE: worse at each doubling": rope[32] > rope[64] > rope[128] > rope[256],
        "ALiBi above RoPE at 128 and 256": alibi[128] > rope[128] and alibi[256] > rope[256],
        "RoPE above the waves at 64 and 128": all(rope[n] > waves[n] for n in (64, 128)),
    }


def regeared(done: Mapping[str, Trained]) -> Claims:
    """Say the previous token: RoPE with other frequencies after its training, of one seed."""
    rope, gear = done["rope"].scores, done["rope"].geared
    return {
        "linear: worse than no change at 64": gear["linear"][64] < rope[64] - 0.2,
        "YaRN, 4 turns: at least .9 at 64": gear["yarn"][64] >= 0.9,
        "YaRN, 4 turns: better than no change at 256": gear["yarn"][256] > rope[256] + 0.2,
        "YaRN, 32 turns: below .6 at 64": gear["yarn, 32 turns"][64] < 0.6,
    }


def fast(done: Mapping[str, Trained]) -> Claims:
    """Say the previous token, every hand turning once in 32 tokens, of one seed."""
    waves, rope = done["sinusoidal"].scores, done["rope"].scores
    return {
        "RoPE, all hands fast: at least .9 at 256": rope[256] >= 0.9,
        "waves, all hands fast: at least .98 at 32": waves[32] >= 0.98,
        "waves, all hands fast: below .3 at 64": waves[64] < 0.3,
    }


def text(done: Mapping[str, Trained]) -> Claims:
    """The character model: trained on 64, tested to 512, nats a character of one seed."""
    loss = {name: each.scores for name, each in done.items()}
    rise = {name: {n: row[n] - row[64] for n in row} for name, row in loss.items()}
    gear = {
        name: {n: row[n] - loss["rope"][64] for n in row}
        for name, row in done["rope"].geared.items()
    }
    order = [loss[name][64] for name in ("rope", "alibi", "sinusoidal", "none")]
    return {
        "at 64: RoPE, ALiBi, waves, none, best first": order == sorted(order),
        "ALiBi: rises by less than .02 to 512": rise["alibi"][512] < 0.02,
        "waves: rise by more than .15 at 128": rise["sinusoidal"][128] > 0.15,
        "RoPE: rises by more than .5 at 256": rise["rope"][256] > 0.5,
        "RoPE at 512: worse than no position": loss["rope"][512] > loss["none"][512],
        "linear rule: worse than plain RoPE at 128": gear["linear"][128] > rise["rope"][128],
        "NTK at 256: under 3/4 of RoPE's rise": gear["ntk"][256] < 0.75 * rise["rope"][256],
        "YaRN at 512: rises less than NTK": gear["yarn"][512] < gear["ntk"][512],
    }


def cache(faults: Mapping[str, Mapping[str, Any]]) -> Claims:
    """Reading from a cache of keys: what `cache_faults` found of each model of one seed."""
    counted = ("sinusoidal", "learned", "rope")
    gap = {
        name: {way: found[way][0] for way in found if way != "full"}
        for name, found in faults.items()
    }
    right = {
        name: {way: found[way][1] for way in found if way != "full"}
        for name, found in faults.items()
    }
    return {
        "right position: no logit moves by .001": all(gap[name]["right"] < 1e-3 for name in faults),
        "and all are right in .98 of the answers": all(
            right[name]["right"] >= 0.98 for name in faults
        ),
        "position 0: logits of all but ALiBi move by 1": all(
            gap[name]["zero"] > 1 for name in counted
        ),
        "and fewer than .3 of their answers are right": all(
            right[name]["zero"] < 0.3 for name in counted
        ),
        "ALiBi at position 0: no logit moves by .001": gap["alibi"]["zero"] < 1e-3,
        "all moved by 100: no logit of RoPE moves by .001": gap["rope"]["moved"] < 1e-3,
        "all moved by 100: logits of the waves move by 1": gap["sinusoidal"]["moved"] > 1,
    }


def holds(claims: Iterable[Claims]) -> Claims:
    """For each sentence, whether it holds of every seed."""
    each = list(claims)
    return {words: all(seed[words] for seed in each) for words in each[0]}
