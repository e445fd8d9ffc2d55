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
import json, re, sys, warnings
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from posenc.kernels import rotate_cuda, rotate_triton

found = {}
for dtype, interleaved, gather in json.loads(sys.argv[1]):
    sizes = rotate_cuda.plan(64, 8192, 32, 4)
    known = {
        "HALF": 64, "PAIRS": 64, "Q_REST": 0, "K_REST": 0, "GATHER": gather, "PER_HEAD": False,
        "TOKENS": sizes.tokens, "HEADS": sizes.heads, "LOOP": sizes.loop,
        "INTERLEAVED": interleaved, "INVERSE": False,
    }
    names, types, whole = rotate_triton.rotate.arg_names, {}, {}
    for i, name in enumerate(names):
        if name in known or name.endswith("_channel") or name == "table_pair":
            types[name] = "constexpr"
            known.setdefault(name, 1)
            continue
        pointers = {"cos": "*fp32", "sin": "*fp32", "rows": "*i64" if gather else "*fp32"}
        tensors = ("q", "q_out", "k", "k_out")
        types[name] = "*" + dtype if name in tensors else pointers.get(name, "i32")
        counts = ("tokens", "q_heads", "k_heads", "q_groups", "groups", "length")
        if name not in counts:
            whole[(i,)] = [["tt.divisibility", 16]]
    source = ASTSource(rotate_triton.rotate, types, known, whole)
    options = {"num_warps": sizes.warps, "enable_fp_fusion": True}
    ptx = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options).asm["ptx"]
    kinds = re.findall(r"(?:ld|st)\\.(?:global|shared|local)[\\w.:]*", ptx)
    found[f"{dtype} {interleaved} {gather}"] = {kind: kinds.count(kind) for kind in kinds}
print(json.dumps(found))
"""


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
    ways = [(d, i, g) for d in ("bf16", "fp32") for i in (False, True) for g in (False, True)]
    found = json.loads(python(COMPILING, json.dumps(ways), TRITON_CACHE_DIR=str(tmp_path)))
    assert len(found) == len(ways)
    for way, kinds in found.items():
        positions = {k for k in kinds if re.fullmatch(r"ld\.global\.b64", k)}
        assert bool(positions) == way.endswith("True"), (way, kinds)
        memory = {k for k in kinds if ".global" in k} - positions
        assert memory == {"ld.global.v4.b32", "st.global.v4.b32"}, (way, kinds)
        assert not any(".local" in k for k in kinds), (way, kinds)


def test_the_kernel_is_one_source_to_read():
    """Catches arithmetic that has moved where the chapter does not show it."""
    text = Path(importlib.util.find_spec("posenc").origin).parent / "kernels" / "rotate_triton.py"
    names = re.findall(r"^def (\w+)\(", text.read_text(), re.M)
    assert names == ["rotate", "turn", "table"]
