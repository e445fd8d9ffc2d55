"""What can be said of the CUDA way without a GPU: its imports, and the code it compiles to."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HAS_TRITON = importlib.util.find_spec("triton") is not None
needs_triton = pytest.mark.skipif(not HAS_TRITON, reason="triton is not installed (none for macOS)")

COMPILING = """
import json, re, sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from posenc.kernels import launch_triton, rotate_triton

COUNTS = ("tokens", "q_heads", "k_heads", "q_groups", "groups", "length")
sizes = launch_triton.plan(64, 8192, 32, 4)
usual = {
    "HALF": 64, "PAIRS": 64, "Q_REST": 0, "K_REST": 0, "GATHER": False, "PER_HEAD": False,
    "TOKENS": sizes.tokens, "HEADS": sizes.heads, "LOOP": sizes.loop, "INVERSE": False,
    "table_pair": 1, **{f"{x}_channel": 1 for x in ("q", "q_out", "k", "k_out")},
}
found = {}
for name, dtype, changes in json.loads(sys.argv[1]):
    known = {**usual, **changes}
    types, whole = {}, {}
    for i, each in enumerate(rotate_triton.rotate.arg_names):
        pointers = dict.fromkeys(("q", "q_out", "k", "k_out"), "*" + dtype)
        pointers |= dict.fromkeys(("cos", "sin"), "*fp64" if dtype == "fp64" else "*fp32")
        pointers["rows"] = "*i64" if known["GATHER"] else pointers["cos"]
        types[each] = "constexpr" if each in known else pointers.get(each, "i32")
        if each not in known and each not in COUNTS:
            whole[(i,)] = [["tt.divisibility", 16]]
    source = ASTSource(rotate_triton.rotate, types, known, whole)
    options = {"num_warps": sizes.warps, "enable_fp_fusion": True}
    ptx = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options).asm["ptx"]
    kinds = re.findall(r"(?:ld|st)\\.(?:global|shared|local)[\\w.:]*", ptx)
    found[name] = {kind: kinds.count(kind) for kind in kinds}
print(json.dumps(found))
"""
ONES = dict.fromkeys(("q_batch", "q_head", "k_head", "k_out_token", "table_head", "table_token"), 1)
OTHERS = [  # what a GPU may meet, each compiled once; strides of 1 are constants there
    ["rest", "fp16", {"HALF": 37, "Q_REST": 54, "K_REST": 130, "INVERSE": True}],
    ["rows of heads", "fp64", {"PER_HEAD": True, "GATHER": True, "rows_head": 1, "rows_token": 1}],
    ["strides of 1", "bf16", ONES],
    ["one token", "bf16", {"TOKENS": 1, "HEADS": 16, "LOOP": 1, "GATHER": True}],
    ["one pair", "fp32", {"HALF": 1, "PAIRS": 1, "TOKENS": 1, "HEADS": 1, "LOOP": 1}],
]


def python(code, *arguments, **environment):
    """Run code in a process of its own, where nothing is imported yet."""
    kept = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**kept, **environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_importing_and_rotating_on_a_cpu_loads_no_triton():
    """Catches an import of triton where no CUDA tensor has been turned."""
    code = (
        "import sys, posenc, torch; x = torch.ones(2, 3, 8);"
        "t = posenc.rope_tables(torch.arange(3), posenc.frequencies(8));"
        "posenc.apply_rope(x, *t, interleaved=True, positions=[0, 2, 1]);"
        "import posenc.kernels.rotate_cuda;"
        "print(sorted({'triton', 'matplotlib'} & set(sys.modules)))"
    )
    assert python(code).strip() == "[]"


@needs_triton
def test_the_kernel_compiles_to_128_bit_accesses(tmp_path):
    """Catches what only a compiler sees: a refusal, narrow accesses, spilled registers."""
    ways = [
        [f"{dtype} {interleaved} {gather}", dtype, {"INTERLEAVED": interleaved, "GATHER": gather}]
        for dtype in ("bf16", "fp32")
        for interleaved in (False, True)
        for gather in (False, True)
    ]
    others = [
        [f"{name} {interleaved}", dtype, {**changes, "INTERLEAVED": interleaved}]
        for name, dtype, changes in OTHERS
        for interleaved in (False, True)
    ]
    cache = {"TRITON_CACHE_DIR": str(tmp_path)}
    found = json.loads(python(COMPILING, json.dumps(ways + others), **cache))
    assert len(found) == len(ways) + len(others)
    for name, _, how in ways:
        kinds = set(found[name])
        rows = {kind for kind in kinds if re.fullmatch(r"ld\.global\.b64", kind)}
        assert bool(rows) == how["GATHER"], (name, kinds)
        memory = {kind for kind in kinds if ".global" in kind} - rows
        assert memory == {"ld.global.v4.b32", "st.global.v4.b32"}, (name, kinds)
        assert not any(".local" in kind for kind in kinds), (name, kinds)


def test_the_kernel_is_one_source_to_read():
    """Catches arithmetic that has moved where the chapter does not show it."""
    text = Path(importlib.util.find_spec("posenc").origin).parent / "kernels" / "rotate_triton.py"
    names = re.findall(r"^def (\w+)\(", text.read_text(), re.M)
    assert names == ["rotate", "turn", "table"]
