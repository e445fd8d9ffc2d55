"""Faults of the ways to carry out a rotation."""

from .fault import TESTS, Break, swap, unit

TRITON = "posenc/kernels/rotate_triton.py"


def interpreted(test: str) -> tuple[tuple[str, ...], ...]:
    """Name one test of the Triton kernel, which the interpreter runs."""
    return ((*TESTS, "-x", "tests/interpreter", "-k", test),)


BREAKS = (
    Break(
        "kind A: the other pairing",
        "posenc/kernels/rotate_numpy.py",
        swap("if interleaved:", "if not interleaved:"),
        unit("test_rotary.py::test_golden_rotations"),
    ),
    Break(
        "kind A: by minus the angle",
        "posenc/kernels/quick_torch.py",
        swap("cis = complex_table(cos, sin)", "cis = complex_table(cos, -sin)"),
        unit("test_rotary.py::test_golden_rotations"),
    ),
    Break(
        "kind B: arithmetic in 16 bits",
        "posenc/kernels/rotate_torch.py",
        swap(
            "        wide.copy_(piece)\n",
            "        wide.copy_(piece)\n        tables = [1.001 * t for t in tables]\n",
        ),
        unit("test_rotary.py::test_narrow_inputs_are_rounded_once"),
    ),
    Break(
        "kind B: float32 leaks out",
        "posenc/kernels/quick_torch.py",
        swap("results.append(room.to(dtype))", "results.append(room.clone())"),
        unit("test_rotary.py::test_narrow_inputs_are_rounded_once"),
    ),
    Break(
        "kind G: complex numbers while torch traces",
        "posenc/kernels/rotate_torch.py",
        swap(
            "return (\n        not torch.compiler.is_compiling()\n        and",
            "return (\n        True\n        and",
        ),
        unit("test_rotary_torch.py::test_compiled_in_one_graph_with_changing_length"),
    ),
    Break(
        "kind H: the gradient by the same angle",
        "posenc/kernels/rotate_torch.py",
        swap('"inverse": not inverse}', '"inverse": inverse}'),
        unit("test_rotary_torch.py::test_the_gradient_is_the_rotation_back"),
    ),
    Break(
        "kind H: the wrong rows of a block",
        "posenc/kernels/rotate_torch.py",
        swap("table.narrow(axis, start, count)", "table.narrow(axis, 0, count)"),
        unit("test_rotary.py::test_ways_of_every_size_agree_to_the_bit"),
    ),
    Break(
        "GPU: sign of the rotation",
        TRITON,
        swap("tl.join(a * c - b * s, b * c + a * s)", "tl.join(a * c + b * s, b * c - a * s)"),
        interpreted("test_every_width_dtype_and_pairing"),
    ),
    Break(
        "GPU: the gradient by the same angle",
        "posenc/kernels/rotate_cuda.py",
        swap(
            "rows, interleaved, not inverse)\n    return back",
            "rows, interleaved, inverse)\n    return back",
        ),
        interpreted("test_the_gradient_is_the_rotation_back"),
    ),
    Break(
        "GPU: half offset",
        TRITON,
        swap("b = tl.load(source + (channel + HALF)", "b = tl.load(source + (channel + PAIRS)"),
        interpreted("test_every_width_dtype_and_pairing"),
    ),
    Break(
        "GPU: a stride",
        TRITON,
        swap("source = x + (head * x_head", "source = x + (head * y_head"),
        interpreted("test_any_strides"),
    ),
    Break(
        "GPU: mask at the tail of the tokens",
        TRITON,
        swap(
            "live = (token < tokens) & (head < heads)", "live = (token <= tokens) & (head < heads)"
        ),
        interpreted("test_tails_of_tokens_and_heads"),
    ),
    Break(
        "GPU: mask at the tail of the heads",
        TRITON,
        swap(
            "live = (token < tokens) & (head < heads)", "live = (token < tokens) & (head <= heads)"
        ),
        interpreted("test_tails_of_tokens_and_heads"),
    ),
    Break(
        "GPU: arithmetic in the dtype of x",
        TRITON,
        swap(
            "    if INVERSE:  #",
            "    c, s = c.to(tl.float16), s.to(tl.float16)\n    if INVERSE:  #",
        ),
        interpreted("test_every_width_dtype_and_pairing"),
    ),
    Break(
        "GPU: a position clamped to the tables",
        TRITON,
        swap(
            "live = live & (at >= 0) & (at < length)",
            "at = tl.minimum(tl.maximum(at, 0), length - 1)",
        ),
        interpreted("test_a_position_outside_gives_nan_where_no_error_can_be_raised"),
    ),
    Break(
        "GPU: offsets in 32 bits",
        TRITON,
        swap(
            "token = (program % blocks * TOKENS + tile % TOKENS).to(tl.int64)",
            "token = program % blocks * TOKENS + tile % TOKENS",
        ),
        interpreted("test_addresses_beyond_32_bits"),
    ),
    Break(
        "exhibit 7: by minus the angle",
        "posenc/kernels/rotate_numpy.py",
        swap("s = -sin if inverse else sin", "s = sin if inverse else -sin"),
        unit("test_rotary.py::test_golden_scores_depend_on_the_distance"),
    ),
)
