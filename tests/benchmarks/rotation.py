"""Time rotations: ratios to copies of the same memory, within one process.

Run as ``python tests/benchmarks/rotation.py [--write PATH] [--rows WORD ...] [--rounds N]``: one
thread, candidates interleaved, the median of the ratios over all rounds. Everything is measured
twice: cold, with the system's allocator as it is, and warm, in a second process whose allocator
keeps freed memory (a new tensor of 64 MiB costs page faults worth several copies). Time is the
processor time of the process. Run it with nothing else on the machine: other programs slow memory
and caches.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import rotary_embedding_torch
import torch
from tables import processor
from transformers.models.llama import modeling_llama
from x_transformers import x_transformers

from posenc import apply_rope_qk, frequencies, rope_tables

WARM = {
    "GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=4294967296"
    ":glibc.malloc.trim_threshold=8589934592:glibc.malloc.top_pad=268435456"
}
PREFILL, DECODE, TRAINING = (1, 32, 4096, 128), (8, 32, 1, 128), (1, 32, 4096, 128)
BOUNDS = {  # row: {candidate: (most, over which reference, cold or warm)}
    "prefill float32 interleaved": {
        "posenc out": (1.3, "copy", "cold"),
        "posenc in place": (0.95, "copy", "cold"),
    },
    "prefill float32 half": {
        "posenc out": (2.6, "copy", "cold"),
        "posenc compiled": (1.35, "clone", "warm"),
    },
    "prefill bfloat16 interleaved": {"posenc out": (3.2, "copy", "cold")},
    "prefill bfloat16 half": {"posenc out": (4.6, "copy", "cold")},
    "decode float32 interleaved": {"posenc": (3.8, "copy", "cold")},
    "decode float32 half": {"posenc": (8.5, "copy", "cold")},
    "decode bfloat16 interleaved": {"posenc": (10.5, "copy", "cold")},
    "decode bfloat16 half": {"posenc": (17.0, "copy", "cold")},
    "training float32 interleaved": {"posenc": (2.7, "copy", "warm")},
    "training float32 half": {"posenc": (5.0, "copy", "warm")},
    "tables": {"posenc": (6.5, "fill", "cold")},
}

PEERS = ("torch", "transformers", "rotary-embedding-torch", "x-transformers", "onnxruntime")

Way = Callable[[], object]
Rotation = Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]


def torchtune_formula(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotate pairs (2i, 2i + 1) in float32, as torchtune writes it, on [B, H, T, D]."""
    pairs = x.float().reshape(*x.shape[:-1], -1, 2)
    turned = torch.stack(
        [
            pairs[..., 0] * cos - pairs[..., 1] * sin,
            pairs[..., 1] * cos + pairs[..., 0] * sin,
        ],
        -1,
    )
    return turned.flatten(3).type_as(x)


def peers(cos: torch.Tensor, sin: torch.Tensor, dtype: Any, half: bool) -> dict[str, Rotation]:
    """Rotations of q and k by other libraries, tables made before."""
    found: dict[str, Rotation] = {}
    if half:
        twice = [torch.cat([t, t], -1).to(dtype)[None] for t in (cos, sin)]
        found["transformers"] = lambda q, k: modeling_llama.apply_rotary_pos_emb(q, k, *twice)
    else:
        angles = torch.atan2(sin.double(), cos.double()).float().repeat_interleave(2, -1)
        batch = angles[None]
        found["torchtune's formula"] = lambda q, k: (
            torchtune_formula(q, cos, sin),
            torchtune_formula(k, cos, sin),
        )
        found["rotary-embedding-torch"] = lambda q, k: (
            rotary_embedding_torch.apply_rotary_emb(angles, q),
            rotary_embedding_torch.apply_rotary_emb(angles, k),
        )
        found["x-transformers"] = lambda q, k: (
            x_transformers.apply_rotary_pos_emb(q, batch),
            x_transformers.apply_rotary_pos_emb(k, batch),
        )
    tables = [t.to(dtype)[None] for t in (cos, sin)]

    def operator(q: torch.Tensor, k: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows = [t.expand(q.shape[0], -1, -1) for t in tables]
        run = torch.onnx.ops.rotary_embedding
        return run(q, *rows, interleaved=not half), run(k, *rows, interleaved=not half)

    found["torch.onnx.ops"] = operator
    if dtype == torch.float32:
        found["onnxruntime"] = onnxruntime_rotation(cos, sin, half)
    return found


def onnxruntime_rotation(cos: torch.Tensor, sin: torch.Tensor, half: bool) -> Rotation:
    """Onnxruntime's RotaryEmbedding (opset 23), inputs and outputs bound to torch's memory."""
    kind = onnx.TensorProto.FLOAT
    value = onnx.helper.make_tensor_value_info
    node = onnx.helper.make_node(
        "RotaryEmbedding", ["x", "cos", "sin"], ["y"], interleaved=int(not half)
    )
    graph = onnx.helper.make_graph(
        [node],
        "rotation",
        [value("x", kind, "bhsd"), value("cos", kind, "bst"), value("sin", kind, "bst")],
        [value("y", kind, "bhsd")],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 23)])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )

    def one(x: torch.Tensor) -> torch.Tensor:
        binding, y = session.io_binding(), torch.empty_like(x)
        rows = [t.expand(x.shape[0], *t.shape).contiguous() for t in (cos, sin)]
        for name, t in zip(("x", "cos", "sin"), (x, *rows), strict=True):
            binding.bind_input(name, "cpu", 0, "float32", list(t.shape), t.data_ptr())
        binding.bind_output("y", "cpu", 0, "float32", list(y.shape), y.data_ptr())
        session.run_with_iobinding(binding)
        return y

    return lambda q, k: (one(q), one(k))


def drawn(shape: tuple[int, ...], dtype: Any) -> tuple[torch.Tensor, ...]:
    """Distinct q and k, and memory for their results."""
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(shape, generator=generator).to(dtype) for _ in range(2))
    return q, k, torch.empty_like(q), torch.empty_like(k)


def forward(shape: tuple[int, ...], dtype: Any, half: bool) -> dict[str, Way]:
    """Ways to rotate q and k; a copy of both first."""
    q, k, q_out, k_out = drawn(shape, dtype)
    q_own, k_own = q.clone(), k.clone()
    cos, sin = rope_tables(range(shape[2]), frequencies(shape[3]), device="cpu")
    how = {"interleaved": not half}
    ways: dict[str, Way] = {
        "copy": lambda: (q_out.copy_(q), k_out.copy_(k)),
        "clone": lambda: (q.clone(), k.clone()),
        "posenc": lambda: apply_rope_qk(q, k, cos, sin, **how),
    }
    if shape[2] > 1:
        ways["posenc out"] = lambda: apply_rope_qk(q, k, cos, sin, out=(q_out, k_out), **how)
        ways["posenc in place"] = lambda: apply_rope_qk(
            q_own, k_own, cos, sin, out=(q_own, k_own), **how
        )
        compiled = torch.compile(lambda q, k: apply_rope_qk(q, k, cos, sin, **how), fullgraph=True)
        ways["posenc compiled"] = lambda: compiled(q, k)
    for name, rotation in peers(cos, sin, dtype, half).items():
        ways[name] = lambda rotation=rotation: rotation(q, k)
    return ways


def training(shape: tuple[int, ...], dtype: Any, half: bool) -> dict[str, Way]:
    """Ways to rotate q and k and to bring gradients back; a copy of both first."""
    q, k, q_out, k_out = drawn(shape, dtype)
    gradients = (torch.randn_like(q), torch.randn_like(k))
    leaves = (q.clone().requires_grad_(), k.clone().requires_grad_())
    cos, sin = rope_tables(range(shape[2]), frequencies(shape[3]), device="cpu")

    def there_and_back(rotation: Rotation) -> Way:
        return lambda: torch.autograd.grad(rotation(*leaves), leaves, gradients)

    ours: Rotation = lambda q, k: apply_rope_qk(q, k, cos, sin, interleaved=not half)  # noqa: E731
    ways: dict[str, Way] = {
        "copy": lambda: (q_out.copy_(q), k_out.copy_(k)),
        "posenc": there_and_back(ours),
    }
    others = peers(cos, sin, dtype, half)
    for name in ("onnxruntime", "torch.onnx.ops"):  # have no backward
        others.pop(name, None)
    return ways | {name: there_and_back(rotation) for name, rotation in others.items()}


def table_ways() -> dict[str, Way]:
    """Ways to make cosines and sines of 131072 positions; a fill of both first."""
    cos, sin = (torch.empty(131072, 64) for _ in range(2))
    f = frequencies(128, 500000.0)

    def float32() -> None:
        omega = 1.0 / 500000.0 ** (torch.arange(0, 128, 2).float() / 128)
        angle = torch.outer(torch.arange(131072).float(), omega)
        torch.cos(angle, out=cos)
        torch.sin(angle, out=sin)

    return {
        "fill": lambda: (cos.fill_(1.0), sin.fill_(1.0)),
        "posenc": lambda: rope_tables(range(131072), f, out=(cos, sin)),
        "float32 angles": float32,
    }


def ways_of(row: str) -> tuple[dict[str, Way], int]:
    """Candidates of a row, and how often each is called at a time."""
    if row == "tables":
        return table_ways(), 1
    kind, name, pairing = row.split()
    dtype, half = getattr(torch, name), pairing == "half"
    if kind == "training":
        return training(TRAINING, dtype, half), 1
    if kind == "decode":
        return forward(DECODE, dtype, half), 200
    return forward(PREFILL, dtype, half), 1


def measure(row: str, rounds: int) -> dict[str, float]:
    """Median ratio of each candidate to the first one of its own round."""
    ways, calls = ways_of(row)
    reference = next(iter(ways))
    ratios: dict[str, list[float]] = {name: [] for name in ways}

    def repeated(way: Way) -> Way:
        def run() -> None:
            for _ in range(calls):
                way()

        return run

    for number in range(rounds + 1):
        seconds = {}
        for name, way in ways.items():
            seconds[name] = min(_timed(repeated(way)) for _ in range(3 if calls == 1 else 5))
        for name, spent in seconds.items():
            if number:  # the first round warms up, and compiles
                ratios[name].append(spent / seconds[reference])
    return {name: float(f"{statistics.median(values):.3g}") for name, values in ratios.items()}


def _timed(way: Way) -> float:
    start = time.process_time()
    way()
    return time.process_time() - start


def both(rows: list[str], rounds: int) -> dict[str, dict[str, dict[str, float]]]:
    """Ratios of all rows, cold in a process of its own and warm in another."""
    found = {}
    for memory, change in (("cold", {}), ("warm", WARM)):
        command = [sys.executable, __file__, "--child", "--rounds", str(rounds), "--rows", *rows]
        environment = {k: v for k, v in os.environ.items() if k not in WARM} | change
        done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
        found[memory] = json.loads(done.stdout.splitlines()[-1])
    return found


def verdicts(found: dict[str, dict[str, dict[str, float]]]) -> list[str]:
    """Print what each bound and each peer says; return what does not hold."""
    broken = []
    for row in found["cold"]:
        for name, (most, reference, memory) in BOUNDS[row].items():
            ratios = found[memory][row]
            ratio = ratios[name] / ratios[reference]
            holds = ratio <= most
            said = f"{row}, {name}: {ratio:.3g} x {reference}, {memory} (bound {most})"
            print(said if holds else f"{said}  DOES NOT HOLD")
            broken += [] if holds else [said]
        for memory, rows in found.items():
            ratios = rows[row]
            ours = min(ratio for name, ratio in ratios.items() if name.startswith("posenc"))
            theirs = {
                name: ratio
                for name, ratio in ratios.items()
                if not name.startswith("posenc") and name not in ("copy", "clone", "fill")
            }
            for name, ratio in theirs.items():
                if ratio < ours:
                    broken.append(f"{row}, {memory}: {name} is faster, {ratio} against {ours}")
                    print(broken[-1])
    return broken


def main() -> None:
    """Print the report and hold it to the bounds; store it if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="store the report as JSON")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--rows", nargs="+", default=[""], help="rows that hold one of the words")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    rows = [row for row in BOUNDS if any(word in row for word in arguments.rows)]
    if arguments.child:
        torch.set_num_threads(1)
        print(json.dumps({row: measure(row, arguments.rounds) for row in rows}))
        return
    found = both(rows, arguments.rounds)
    report = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": processor(),
        "threads": 1,
        "versions": {
            "python": platform.python_version(),
            **{name: version(name).split("+")[0] for name in PEERS},
        },
        "shapes": {"prefill": PREFILL, "decode": DECODE, "training": TRAINING},
        "unit": "time of copy_ (of fill_, for tables) of the same memory",
        **found,
    }
    text = json.dumps(report, indent=1) + "\n"
    print(text)
    broken = verdicts(found)
    if arguments.write:
        arguments.write.write_text(text)
    if broken:
        raise SystemExit(f"{len(broken)} rows do not hold; is anything else running?")


if __name__ == "__main__":
    main()
