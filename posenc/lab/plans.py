"""What the study of extrapolation asks: parts, encodings, seeds and sizes, for a CPU and a GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from posenc.lab.experiments import FAST_SHIFT, FAST_TEXT, SHIFT, TEXT, Setting
from posenc.lab.plugs import ENCODINGS

__all__ = ["PLANS", "Part", "runs"]


@dataclass(frozen=True)
class Part:
    """One question of a study."""

    name: str
    setting: Setting
    encodings: tuple[str, ...]
    seeds: tuple[int, ...]
    probed: bool = False  # whether position is looked for inside


READERS = ("none", "sinusoidal", "learned", "alibi", "rope")
WAVES = ("sinusoidal", "rope")


def _parts(size: Setting, seeds: tuple[int, ...]) -> tuple[Part, ...]:
    deep = replace(TEXT, lengths=(64, 512), steps=200, n_layers=4)
    long = replace(TEXT, lengths=(64, 512), steps=800)
    five, three = tuple(range(5)), tuple(range(3))
    return (
        Part("shift", SHIFT, ENCODINGS, five),
        Part("fast-shift", FAST_SHIFT, WAVES, five),
        Part("text", TEXT, READERS, three),
        Part("fast-text", FAST_TEXT, WAVES, three),
        Part("inside", deep, WAVES, three, probed=True),
        Part("long", long, ("none", "sinusoidal", "learned"), three),
        Part("size", size, ENCODINGS, seeds),
    )


SIZE = Setting(
    "text",
    (64, 128, 256, 512, 1024),
    batch=16,
    steps=600,
    dim=128,
    n_layers=4,
    lr=2e-3,
    texts=32,
)
# More steps would learn the text by heart: this reads each of its characters nine times.
SIZE_ON_A_GPU = Setting(
    "text",
    (128, 256, 512, 1024, 2048, 4096),
    batch=64,
    steps=400,
    dim=256,
    n_heads=8,
    n_layers=4,
    lr=1e-3,
    texts=8,
)

PLANS = {
    "cpu": _parts(SIZE, (0,)),
    "cuda": _parts(SIZE_ON_A_GPU, (0, 1, 2)),
}


def runs(plan: Sequence[Part]) -> Iterator[tuple[str, Part, str, int]]:
    """Seed after seed, so that a study that is stopped has all encodings of the first ones."""
    for part in plan:
        for seed in part.seeds:
            for name in part.encodings:
                yield f"{part.name}/{name}/{seed}", part, name, seed
