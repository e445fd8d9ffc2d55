"""What the chapter on extrapolation says of its live experiments, each sentence as a test.

The chapter prints these booleans for two seeds. ``python -m posenc.lab.claims`` runs the same code
for seeds 0 to 9, each in a fresh process, and fails if one sentence is false of one seed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from posenc import lab
from posenc.lab.experiments import SHIFT, TEXT, Trained, cache_faults, run
from posenc.lab.plugs import ENCODINGS

__all__ = ["CACHED", "READERS", "cache", "everything", "holds", "shift", "text"]

READERS = ("none", "sinusoidal", "alibi", "rope")
"""Encodings of the live character model."""

CACHED = ("sinusoidal", "learned", "rope", "alibi")
"""Models of the shift that read from a cache."""

Claims = dict[str, bool]


def shift(done: Mapping[str, Trained]) -> Claims:
    """Say the previous token: trained on 32 tokens, tested to 256, accuracies of one seed."""
    at = {name: each.scores for name, each in done.items()}
    gear = done["rope"].geared
    none, index, normalised = at["none"], at["index"], at["normalised"]
    sinusoidal, learned, alibi, rope = (
        at[name] for name in ("sinusoidal", "learned", "alibi", "rope")
    )
    return {
        "waves and table: at least .98 at 32": min(sinusoidal[32], learned[32]) >= 0.98,
        "waves and table: below .2 at 64": max(sinusoidal[64], learned[64]) < 0.2,
        "ALiBi: at least .97 at 32, 64, 128, 256": min(alibi.values()) >= 0.97,
        "RoPE: at least .98 at 32, .8 at 64": rope[32] >= 0.98 and rope[64] >= 0.8,
        "RoPE: below .4 at 256": rope[256] < 0.4,
        "RoPE: worse at each doubling": rope[32] > rope[64] > rope[128] > rope[256],
        "ALiBi above RoPE at 128 and 256": alibi[128] > rope[128] and alibi[256] > rope[256],
        "RoPE above the waves at 64 and 128": all(rope[n] > sinusoidal[n] for n in (64, 128)),
        "no position: below .7 at 32, .35 at 64": none[32] < 0.7 and none[64] < 0.35,
        "raw index: below .3 at 64": index[64] < 0.3,
        "normalised: below .95 at 64, .7 at 128, .4 at 256": (
            normalised[64] < 0.95 and normalised[128] < 0.7 and normalised[256] < 0.4
        ),
        "linear rule: worse than plain RoPE at 64": gear["linear"][64] < rope[64] - 0.2,
        "YaRN: better than plain RoPE at 256": gear["yarn"][256] > rope[256] + 0.2,
        "YaRN at its usual 32 turns: below .6 at 64": gear["yarn, 32 turns"][64] < 0.6,
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
        "NTK at 256: less than half of RoPE's rise": gear["ntk"][256] < rise["rope"][256] / 2,
        "YaRN at 512: rises less than NTK": gear["yarn"][512] < gear["ntk"][512],
    }


def cache(faults: Mapping[str, Mapping[str, Any]]) -> Claims:
    """Reading from a cache of keys: what `cache_faults` found of each model of one seed."""
    absolute = ("sinusoidal", "learned", "rope")
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
            gap[name]["zero"] > 1 for name in absolute
        ),
        "and fewer than .3 of their answers are right": all(
            right[name]["zero"] < 0.3 for name in absolute
        ),
        "ALiBi at position 0: no logit moves by .001": gap["alibi"]["zero"] < 1e-3,
        "all moved by 100: no logit of RoPE moves by .001": gap["rope"]["moved"] < 1e-3,
        "all moved by 100: logits of the waves move by 1": gap["sinusoidal"]["moved"] > 1,
    }


def holds(claims: Iterable[Claims]) -> Claims:
    """For each sentence, whether it holds of every seed."""
    each = list(claims)
    return {words: all(seed[words] for seed in each) for words in each[0]}


def everything(seed: int, device: torch.device | str = "cpu") -> Claims:
    """Run all live experiments of the chapter for one seed, and return every sentence's truth."""
    shifts = {name: run(SHIFT, name, seed, device=device) for name in ENCODINGS}
    texts = {name: run(TEXT, name, seed, device=device) for name in READERS}
    faults = {name: cache_faults(shifts[name].model) for name in CACHED}
    return {**shift(shifts), **text(texts), **cache(faults)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Check seeds in fresh processes; return how many sentences were false of some seed."""
    parser = argparse.ArgumentParser(
        prog="python -m posenc.lab.claims",
        description="Check what the chapter on extrapolation prints, over seeds. Minutes.",
    )
    parser.add_argument("seeds", nargs="*", type=int, default=list(range(10)))
    parser.add_argument("--one", type=int, help="check this seed here, and print JSON")
    given = parser.parse_args(arguments)
    if given.one is not None:
        print(json.dumps(everything(given.one, lab.device())))
        return 0
    print(f"About a minute a seed on a quiet core; {len(given.seeds)} seeds.", flush=True)
    found: dict[int, Claims] = {}
    for seed in given.seeds:
        start = time.monotonic()
        command = [sys.executable, "-m", "posenc.lab.claims", "--one", str(seed)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found[seed] = json.loads(done.stdout)
        false = [words for words, true in found[seed].items() if not true]
        print(
            f"seed {seed}: {len(false)} false ({time.monotonic() - start:.0f} s)",
            *false,
            sep="\n  ",
            flush=True,
        )
    false = [words for words, true in holds(found.values()).items() if not true]
    print(f"{len(holds(found.values()))} sentences, {len(false)} of them false of some seed")
    return len(false)


if __name__ == "__main__":
    sys.exit(main())
