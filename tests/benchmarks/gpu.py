"""Time rotations on a GPU: ratios to copies of the same memory, within one process.

Run as ``python tests/benchmarks/gpu.py [--write FOLDER]`` on a machine with a CUDA device and
nothing else on it: q [4, 32, 8192, 128] and 8 key heads in bfloat16, forward and backward, both
pairings, candidates interleaved, the medians over all rounds; and one token under a CUDA graph
against an empty kernel. Stores one JSON, gpu-DEVICE.json. Libraries that are not installed, have
no such pairing, or do not give the right numbers are named with the reason. ``--plans`` also tries
other sizes of the kernel's tiles.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import math
import platform
import re
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from gpu_peers import MAKERS, Rotation, formula, versions

from posenc import apply_rope_qk, frequencies, rope_tables
from posenc.kernels import launch_triton

PREFILL = {"q": (4, 32, 8192, 128), "k": (4, 8, 8192, 128)}
DECODE = {"q": (8, 32, 1, 128), "k": (8, 8, 1, 128)}
PAIRINGS = {"half": False, "interleaved": True}
BOUND, TIE, LAUNCH = 1.05, 1.03, 1.2
"""Most times a copy; over the best peer; over an empty kernel under a CUDA graph."""

Shapes = dict[str, tuple[int, ...]]
Way = Callable[[], object]
Ways = tuple[dict[str, Way], dict[str, str]]


def drawn(shapes: Shapes, device: str, tokens_first: bool = False) -> list[torch.Tensor]:
    """Queries and keys [B, H, T, D] in bfloat16, drawn on the CPU."""
    generator = torch.Generator().manual_seed(0)
    found = []
    for shape in shapes.values():
        order = (0, 2, 1, 3) if tokens_first else (0, 1, 2, 3)
        x = torch.empty([shape[i] for i in order], dtype=torch.bfloat16, device=device)
        x = x.transpose(1, 2) if tokens_first else x
        row = torch.randn(shape[0], 1, *shape[2:], generator=generator).to(device)
        scale = torch.linspace(0.5, 1.5, shape[1], device=device)[None, :, None, None]
        found.append(x.copy_(row * scale))  # one head is drawn, the others are its multiples
    return found


def wrong(turned: tuple[torch.Tensor, ...], inputs: list[torch.Tensor], right: Any) -> float:
    """Most that a rotation is off, for inputs of size 1, on some heads and tokens."""
    worst = 0.0
    for y, x in zip(turned, inputs, strict=True):
        some = x[:, -1:, -64:].double()
        worst = max(worst, float((y[:, -1:, -64:].double() - right(some)).abs().max()))
    return worst


def candidates(
    shapes: Shapes, device: str, interleaved: bool
) -> tuple[dict[str, Rotation], dict[str, str]]:
    """What can be timed, having given the right numbers; and what cannot, with the reason."""
    tokens, dim = shapes["q"][2:]
    cos, sin = rope_tables(range(tokens), frequencies(dim), device=device)
    tail = [t[-64:].double() for t in (cos, sin)]
    found: dict[str, Rotation] = {}
    left: dict[str, str] = {}
    for name, make in MAKERS.items():
        try:
            way = make(cos, sin, interleaved)
            if way is None:
                left[name] = "has no such pairing"
                continue
            inputs = drawn(shapes, device, way.tokens_first)
            turned = way.turn(*[x.clone() for x in inputs])
            off = wrong(turned, inputs, lambda x: formula(x, x, *tail, interleaved)[0])
        except ImportError as error:
            left[name] = f"not installed: {error}"
            continue
        except Exception as error:  # a peer that fails must not stop the others
            left[name] = f"failed: {type(error).__name__}: {str(error).splitlines()[0]}"
            continue
        if off < 0.1:
            found[name] = way
        else:
            left[name] = f"wrong by {off:.2g}"
    return found, left


def forward(shapes: Shapes, device: str, interleaved: bool) -> Ways:
    """Ways to rotate q and k; a copy of both first."""
    chosen, left = candidates(shapes, device, interleaved)
    q, k = drawn(shapes, device)
    into = (torch.empty_like(q), torch.empty_like(k))
    own = (q.clone(), k.clone())
    table = rope_tables(range(q.shape[2]), frequencies(q.shape[3]), device=device)
    how = {"interleaved": interleaved}
    ways: dict[str, Way] = {
        "copy": lambda: (into[0].copy_(q), into[1].copy_(k)),
        "posenc out": lambda: apply_rope_qk(q, k, *table, out=into, **how),
        "posenc in place": lambda: apply_rope_qk(*own, *table, out=own, **how),
    }
    for name, way in chosen.items():
        inputs = drawn(shapes, device, way.tokens_first) if way.tokens_first else [q, k]
        ways[name] = lambda way=way, inputs=inputs: way.turn(*inputs)
    return ways, left


def backward(shapes: Shapes, device: str, interleaved: bool) -> Ways:
    """Ways to bring gradients of q and k back; a copy of both first."""
    chosen, left = candidates(shapes, device, interleaved)
    q, k = drawn(shapes, device)
    into = (torch.empty_like(q), torch.empty_like(k))
    ways: dict[str, Way] = {"copy": lambda: (into[0].copy_(q), into[1].copy_(k))}
    for name, way in chosen.items():
        if not way.differentiable:
            left[name] = "has no backward"
            continue
        leaves = [x.requires_grad_() for x in drawn(shapes, device, way.tokens_first)]
        try:
            turned = way.turn(*leaves)
            gradients = [torch.empty_like(y).copy_(y.detach()) for y in turned]
            one = lambda t=turned, x=leaves, g=gradients: torch.autograd.grad(  # noqa: E731
                t, x, g, retain_graph=True
            )
            one()
        except Exception as error:
            left[name] = f"failed: {type(error).__name__}: {str(error).splitlines()[0]}"
            continue
        ways[name] = one
    return ways, left


def decode(shapes: Shapes, device: str, interleaved: bool) -> Ways:
    """One token for each row of a batch, its position looked up; an empty kernel first."""
    q, k = drawn(shapes, device)
    table = rope_tables(range(4096), frequencies(q.shape[3]), device=device)
    at = torch.arange(100, 100 + q.shape[0], device=device)[:, None]
    how = {"interleaved": interleaved, "out": (q, k), "positions": at}
    chosen: dict[str, Way] = {
        "empty kernel": empty_kernel(q),
        "posenc in place": lambda: apply_rope_qk(q, k, *table, **how),
    }
    return {name: captured(way, device) for name, way in chosen.items()}, {}


LAUNCHES = 100
"""Launches in one CUDA graph."""


def captured(way: Way, device: str) -> Way:
    """The same many times over, as one CUDA graph."""
    way()
    if device == "cpu":
        return lambda: [way() for _ in range(2)]
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(LAUNCHES):
            way()
    return graph.replay


def empty_kernel(x: torch.Tensor) -> Way:
    """Launch a kernel that does nothing."""
    import triton

    @triton.jit
    def nothing(x):
        pass

    return lambda: nothing[(1,)](x)


ROWS = {
    f"{kind} {pairing}": (make, shapes, interleaved)
    for kind, make, shapes in (
        ("forward", forward, PREFILL),
        ("backward", backward, PREFILL),
        ("decode", decode, DECODE),
    )
    for pairing, interleaved in PAIRINGS.items()
}


def seconds(way: Way, device: str) -> float:
    """Time of one call on the device; the host runs ahead, and is not counted."""
    if device == "cpu":
        start = time.perf_counter()
        way()
        return time.perf_counter() - start
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(3_000_000)  # a millisecond or two, in which the host queues the work
    start.record()
    way()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 1e3


def measure(ways: dict[str, Way], rounds: int, device: str, moved: int) -> dict[str, Any]:
    """Medians of all candidates, and of their ratios to the first one of the same round."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(3):
        for way in ways.values():
            way()
    for _ in range(rounds):
        for name, way in ways.items():
            taken[name].append(seconds(way, device))
    reference = taken[next(iter(ways))]
    found = {}
    for name, times in taken.items():
        median = statistics.median(times)
        ratio = statistics.median(t / r for t, r in zip(times, reference, strict=True))
        found[name] = {
            "microseconds": float(f"{median * 1e6:.4g}"),
            "gigabytes_per_second": float(f"{moved / median / 1e9:.4g}"),
            "ratio": float(f"{ratio:.4g}"),
        }
    return found


def moved(shapes: Shapes) -> int:
    """Bytes that are read and written, at the least."""
    return 2 * 2 * sum(math.prod(shape) for shape in shapes.values())


def plans(shapes: Shapes, rounds: int, device: str) -> list[dict[str, Any]]:
    """The forward rows again, with other sizes of tiles."""
    found, usual = [], launch_triton.plan
    for tokens, loop, warps in itertools.product((8, 16, 32, 64), (1, 2, 4, 8), (4, 8)):
        sizes = launch_triton.Plan(tokens, 1, loop, warps)
        launch_triton.plan = lambda *_, sizes=sizes: sizes
        ratios = {}
        for pairing, interleaved in PAIRINGS.items():
            ways, _ = forward(shapes, device, interleaved)
            few = {name: ways[name] for name in ("copy", "posenc out")}
            ratios[pairing] = measure(few, rounds, device, moved(shapes))["posenc out"]["ratio"]
        found.append({**sizes._asdict(), **ratios})
    launch_triton.plan = usual
    return found


def report(device: str, rounds: int, rows: dict[str, Any], with_plans: bool) -> dict[str, Any]:
    """What the book stores: date, device, versions, medians, ratios."""
    on_gpu = device != "cpu"
    properties = torch.cuda.get_device_properties(0) if on_gpu else None
    ways, left = {}, {}
    for row, (make, shapes, interleaved) in rows.items():
        timed, left[row] = make(shapes, device, interleaved)
        ways[row] = measure(timed, rounds, device, moved(shapes))
        del timed
        if on_gpu:
            torch.cuda.empty_cache()
    import triton

    found = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "device": properties.name if properties else "cpu",
        "capability": f"{properties.major}.{properties.minor}" if properties else "",
        "memory_gib": round(properties.total_memory / 2**30) if properties else 0,
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__.split("+")[0],
            "triton": triton.__version__,
            "cuda": torch.version.cuda or "",
            **versions(),
        },
        "dtype": "bfloat16",
        "shapes": {row: shapes for row, (_, shapes, _) in rows.items()},
        "bytes": {row: moved(shapes) for row, (_, shapes, _) in rows.items()},
        "unit": {
            "ratio": "time of copy_ of q and k; decode: of an empty kernel, under a CUDA graph",
            "microseconds": f"median of a call; decode: of {LAUNCHES} launches in one graph",
        },
        "rounds": rounds,
        "rows": ways,
        "left_out": left,
    }
    if with_plans:
        found["plans"] = plans(next(iter(rows.values()))[1], rounds, device)
    return found


def verdicts(rows: dict[str, dict[str, Any]]) -> list[str]:
    """Print what each bound says; return what does not hold."""
    broken = []
    for row, found in rows.items():
        ours = {name: each["ratio"] for name, each in found.items() if name.startswith("posenc")}
        bounds = [(LAUNCH, "an empty kernel")] if row.startswith("decode") else [(BOUND, "copy_")]
        peers = {
            name: each["ratio"]
            for name, each in found.items()
            if name not in ours and name not in ("copy", "empty kernel")
        }
        if peers:
            best = min(peers, key=peers.__getitem__)
            bounds.append((TIE * peers[best], f"copy_, tie with {best}"))
        for most, what in bounds:
            ratio = min(ours.values()) if "tie" in what else max(ours.values())
            holds = ratio <= most
            said = f"{row}: {ratio:.3g} x {what} (bound {most:.3g})"
            print(said if holds else f"{said}  DOES NOT HOLD")
            broken += [] if holds else [said]
    return broken


def file_name(device: str) -> str:
    """gpu-nvidia-h200.json."""
    return f"gpu-{re.sub(r'[^a-z0-9]+', '-', device.lower()).strip('-')}.json"


def main(words: list[str] | None = None) -> None:
    """Print the report and hold it to the bounds; store it if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="folder in which to store the report as JSON")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--rows", nargs="+", default=[""], help="rows that hold one of the words")
    parser.add_argument("--plans", action="store_true", help="try other sizes of tiles as well")
    arguments = parser.parse_args(words)
    if not torch.cuda.is_available():
        print("No CUDA device: nothing to measure.")
        return
    rows = {row: how for row, how in ROWS.items() if any(word in row for word in arguments.rows)}
    found = report("cuda", arguments.rounds, rows, arguments.plans)
    text = json.dumps(found, indent=1) + "\n"
    print(text)
    broken = verdicts(found["rows"])
    if arguments.write:
        (arguments.write / file_name(found["device"])).write_text(text)
    if broken:
        sys.exit(f"{len(broken)} rows do not hold; is anything else running?")


if __name__ == "__main__":
    main()
