"""The experiments of the chapter on extrapolation, at any size: train short, test long.

Every function takes its seed and its device; the chapter, its check over seeds and the study call
the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import torch

from posenc import Frequencies
from posenc.lab import evaluation
from posenc.lab.corpus import SYMBOLS, Corpus, load
from posenc.lab.plugs import Rotary, rescaled
from posenc.lab.tasks import say_previous
from posenc.lab.training import train
from posenc.lab.transformer import Decoder

__all__ = [
    "FAST_SHIFT",
    "FAST_TEXT",
    "SHIFT",
    "TEXT",
    "Setting",
    "Trained",
    "cache_faults",
    "geared",
    "inside",
    "run",
]

# Rows of a table: a rule for RoPE's frequencies at test time, and the turns that YaRN leaves alone.
GEARS = {"linear": ("linear", 4.0), "ntk": ("ntk", 4.0), "yarn": ("yarn", 4.0)}
GEARS_OF_THE_SHIFT = {**GEARS, "yarn, 32 turns": ("yarn", 32.0)}


@dataclass(frozen=True)
class Setting:
    """A task and a size: everything but the encoding and the seed."""

    task: str  # "shift": say the previous token; "text": the next character
    lengths: tuple[int, ...]  # the trained length, then those of the test, in tokens
    batch: int
    steps: int
    dim: int = 64
    n_heads: int = 4
    n_layers: int = 2
    lr: float = 3e-3
    base: float = 10000.0  # of the waves and of RoPE
    texts: int = 64  # in the test


SHIFT = Setting("shift", (32, 64, 128, 256), batch=16, steps=200)
TEXT = Setting("text", (64, 128, 256, 512), batch=16, steps=300)
FAST_SHIFT = replace(SHIFT, base=5.0)  # every hand makes a turn in 32 tokens
FAST_TEXT = replace(TEXT, base=10.0)  # and here in 64


@dataclass
class Trained:
    """A trained model and what it scored."""

    model: Decoder
    losses: list[float]
    """Of the training, nats, one a step."""
    scores: dict[int, float]
    """At each length: accuracy for the shift, nats a character for text."""
    geared: dict[str, dict[int, float]] = field(default_factory=dict)
    """The same for each rule that rescales RoPE without further training."""


@contextmanager
def geared(model: Decoder, frequencies: Frequencies) -> Iterator[None]:
    """Give a RoPE model other frequencies inside."""
    plug = model.encoding
    if not isinstance(plug, Rotary):
        raise TypeError(f"model must have a RoPE encoding, got {type(plug).__name__}")
    before, plug.frequencies = plug.frequencies, frequencies
    try:
        yield
    finally:
        plug.frequencies = before


@cache
def text() -> Corpus:
    """The corpus, read and checked once."""
    return load()


def run(
    setting: Setting,
    name: str,
    seed: int,
    *,
    device: torch.device | str = "cpu",
    seconds: float = float("inf"),
) -> Trained:
    """Train a model at the first length of a setting and test it at all of them.

    Parameters
    ----------
    setting : Setting
        Task and size.
    name : str
        Encoding, one of `posenc.lab.plugs.ENCODINGS`.
    seed : int
        Of the weights, and (moved) of the texts of training and test.
    device : torch.device
        Where it is trained.
    seconds : float
        A cap on the training, as in `posenc.lab.training.train`.

    Returns
    -------
    Trained

    Raises
    ------
    ValueError
        If the encoding is unknown, or the corpus another than the book's.
    """
    trained, longest = setting.lengths[0], setting.lengths[-1]
    model = Decoder(
        16 if setting.task == "shift" else len(SYMBOLS),
        name,
        dim=setting.dim,
        n_heads=setting.n_heads,
        n_layers=setting.n_layers,
        rows=longest,
        base=setting.base,
        seed=seed,
    ).to(device)
    draw = say_previous if setting.task == "shift" else text().batch
    losses = train(
        model,
        lambda generator: draw(setting.batch, trained, generator),
        steps=setting.steps,
        seed=10_000 + seed,
        lr=setting.lr,
        seconds=seconds,
        label=f"{setting.task}, {name}, seed {seed}",
    )
    score = _shift_scores(setting) if setting.task == "shift" else _text_scores(setting)
    done = Trained(model, losses, score(model, setting.lengths))
    if name == "rope" and setting.base == 10000:
        gears = GEARS_OF_THE_SHIFT if setting.task == "shift" else GEARS
        for gear, (rule, beta) in gears.items():
            done.geared[gear] = {}
            for length in setting.lengths:
                how = {"factor": length / trained, "trained": trained, "beta": beta}
                head_dim = setting.dim // setting.n_heads
                with geared(model, rescaled(rule, head_dim, **how)):  # type: ignore[arg-type]
                    done.geared[gear] |= score(model, (length,))
    return done


Score = Callable[[Decoder, Sequence[int]], dict[int, float]]


def _shift_scores(setting: Setting) -> Score:
    """Accuracy on the second half of each length, on all of the trained one."""

    def score(model: Decoder, lengths: Sequence[int]) -> dict[int, float]:
        found = {}
        for length in lengths:
            texts = torch.Generator().manual_seed(20_000 + length)
            x, y = say_previous(setting.texts, length, texts)
            first = 0 if length == setting.lengths[0] else length // 2
            found[length] = evaluation.accuracy(model, x, y, first=first)
        return found

    return score


def _text_scores(setting: Setting) -> Score:
    """Nats on the last 32 targets of fixed windows, with each length of text before them."""

    def score(model: Decoder, lengths: Sequence[int]) -> dict[int, float]:
        x, y = text().windows(setting.texts, setting.lengths[-1])
        return evaluation.loss_with_context(model, x, y, lengths)

    return score


def cache_faults(model: Decoder, *, length: int = 32, prefill: int = 16) -> dict[str, Any]:
    """What positions do to a model of the shift task that reads from a cache of keys.

    Parameters
    ----------
    model : Decoder
        Trained on the shift.
    length, prefill : int
        Tokens of a text, and of its prompt.

    Returns
    -------
    dict
        ``full``: accuracy after the prompt, read at once. For each way of counting, ``right``,
        ``zero`` (each new token at 0) and ``restart`` (from 0 after the prompt), and for ``moved``
        (the whole text 100 tokens later, read at once): a pair of the largest difference of a
        logit to the text read at once, and the accuracy.
    """
    x, y = say_previous(64, length, torch.Generator().manual_seed(30_000))
    whole = evaluation.logits(model, x)[:, prefill:]
    answers = y[:, prefill:]

    def right(scores: torch.Tensor) -> float:
        return float((scores.argmax(-1) == answers).double().mean())

    found: dict[str, Any] = {"full": right(whole)}
    for offsets in ("right", "zero", "restart"):
        scores = evaluation.decoded(model, x, prefill, offsets=offsets)
        found[offsets] = (float((scores - whole).abs().max()), right(scores))
    moved = evaluation.logits(model, x, offset=100)[:, prefill:]
    found["moved"] = (float((moved - whole).abs().max()), right(moved))
    return found


def inside(done: Trained, setting: Setting) -> dict[str, list[float]]:
    """Where position is in a trained text model, layer by layer.

    Returns
    -------
    dict of lists
        ``r2``: how well a line reads the position off the stream, at the embeddings and after each
        layer. ``share``: its share of the stream's variance there. ``offset``: the distance's share
        of the variance of the scores, in each layer.
    """
    x, _ = text().windows(96, setting.lengths[0])
    trace = evaluation.traced(done.model, x)
    streams = [stream for stream, _ in trace]
    return {
        "r2": [evaluation.position_r2(stream) for stream in streams],
        "share": [evaluation.position_share(stream) for stream in streams],
        "offset": [evaluation.offset_share(scores) for _, scores in trace[:-1]],
    }
