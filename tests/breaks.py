"""Break the code and the book on purpose, one fault at a time: a named check must fail.

Run as ``python tests/breaks.py [WORD ...]``: only breaks whose name holds one of the words, all
without. The tree is copied into a temporary folder first; nothing here is changed. A check that
fails on the unbroken copy, or passes on a broken one, makes the run fail.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
TRITON = "posenc/kernels/rotate_triton.py"
FORMULA, SHIFT = "book/2-waves/formula.ipynb", "book/2-waves/shift.ipynb"
NBVAL = ("-m", "pytest", "-q", "--nbval", "--nbval-current-env")
TESTS = ("-m", "pytest", "-q")
BUILD = (
    "-c",
    "from jupyter_book.cli.main import main; main()",
    "build",
    ".",
    "-W",
    "-n",
    "--keep-going",
    "--all",
    "-q",
)
ONE_PAGE = (*BUILD, "--builder", "singlehtml")


@dataclass(frozen=True)
class Break:
    """One fault: what it is, where it is put, and the commands of which the last must fail."""

    name: str
    file: str
    put: Callable[[str], str]
    check: tuple[tuple[str, ...], ...]


def swap(old: str, new: str) -> Callable[[str], str]:
    """Replace what must be there once: another place would hide a fault that nobody sees."""

    def put(text: str) -> str:
        if text.count(old) != 1:
            raise SystemExit(f"{text.count(old)} places to break, not one: {old!r}")
        return text.replace(old, new)

    return put


def both(first: Callable[[str], str], second: Callable[[str], str]) -> Callable[[str], str]:
    """Break two places of one file: some faults need a partner."""
    return lambda text: second(first(text))


def in_cells(change: Callable[[dict], bool]) -> Callable[[str], str]:
    """Change the first cell of a notebook that lets itself be changed."""

    def put(text: str) -> str:
        notebook = json.loads(text)
        if not any(change(cell) for cell in notebook["cells"]):
            raise SystemExit("nothing to break: no such cell")
        return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"

    return put


def another_digit(cell: dict) -> bool:
    """Change the last digit that a cell has printed."""
    for output in cell.get("outputs", []):
        text = "".join(output.get("text", []))
        found = list(re.finditer(r"\d", text))
        if found:
            at = found[-1].start()
            digit = str((int(text[at]) + 1) % 10)
            output["text"] = [text[:at] + digit + text[at + 1 :]]
            return True
    return False


def another_curve(cell: dict) -> bool:
    """Move one point of one curve of a stored figure by one unit."""
    for output in cell.get("outputs", []):
        picture = "".join(output.get("data", {}).get("image/svg+xml", []))
        point = re.search(r"\nL (\d+)", picture)
        if point:
            moved = f"\nL {int(point.group(1)) + 1}"
            output["data"]["image/svg+xml"] = picture.replace(point.group(0), moved, 1)
            return True
    return False


def misspelt_macro(cell: dict) -> bool:
    r"""Write \omegga for the first \omega of a text cell."""
    text = "".join(cell["source"])
    if cell["cell_type"] != "markdown" or r"\omega" not in text:
        return False
    cell["source"] = text.replace(r"\omega", r"\omegga", 1)
    return True


def no_alt_text(cell: dict) -> bool:
    """Take the alt text from a figure."""
    return cell["metadata"].get("mystnb", {}).pop("image", None) is not None


def a_label_more(cell: dict) -> bool:
    """Number an equation that no test bears."""
    if cell["cell_type"] != "markdown":
        return False
    cell["source"] = "".join(cell["source"]) + "\n\n```{math}\n:label: eq-untested\nx = x\n```"
    return True


def no_row(cell: dict) -> bool:
    """Take the head from a chapter's row of the table through the book."""
    text = "".join(cell["source"])
    cell["source"] = text.replace("| step | what it adds |", "| step | adds |")
    return "| step | what it adds |" in text


def unit(test: str) -> tuple[tuple[str, ...], ...]:
    """Name one test of the package or of the book's sources."""
    return ((*TESTS, f"tests/{test}"),)


def interpreted(test: str) -> tuple[tuple[str, ...], ...]:
    """Name one test of the Triton kernel, which the interpreter runs."""
    return ((*TESTS, "-x", "tests/interpreter", "-k", test),)


BREAKS = (
    Break(
        "sine and cosine swapped",
        "posenc/sinusoidal.py",
        swap("xp.stack([sin, cos], axis=-1)", "xp.stack([cos, sin], axis=-1)"),
        unit("test_sinusoidal.py::test_golden_rows"),
    ),
    Break(
        "sine and cosine swapped in a range",
        "posenc/_contiguous.py",
        swap("else (sin, cos)", "else (cos, sin)"),
        unit("test_sinusoidal.py::test_a_range_writes_the_same_rows"),
    ),
    Break(
        "exponent 2i/(d-2)",
        "posenc/spectrum.py",
        swap("Fraction(2, dim))", "Fraction(2, max(2, dim - 2)))"),
        unit("test_spectrum.py::test_every_frequency_is_the_correctly_rounded_power"),
    ),
    Break(
        "cosine with its own exponent",
        "posenc/sinusoidal.py",
        swap(
            "rows = _laid_out(sin, cos,",
            "cos = phases(positions, spectrum(dim, 5e4, 'paper'), dtype=target.dtype,"
            " device=target.device)[0]\n        rows = _laid_out(sin, cos,",
        ),
        unit("test_sinusoidal.py::test_every_entry_follows_the_formula"),
    ),
    Break(
        "int(p) through float32",
        "posenc/_door.py",
        swap(
            "np.asarray(positions, dtype=np.int64)",
            "np.asarray(positions).astype(np.float32).astype(np.float64).clip(-2**62, 2**62)"
            ".astype(np.int64)",
        ),
        unit("test_turns.py::test_phases_are_exact_in_every_octave"),
    ),
    Break(
        "table built in float32",
        "posenc/_exact.py",
        swap("f64 = xp.float64", "f64 = xp.float32"),
        unit("test_turns.py::test_phases_are_exact_in_every_octave"),
    ),
    Break(
        "angles from float64 frequencies",
        "posenc/_frequencies.py",
        swap(
            "_fractions_of_a_turn(numbers, bits)",
            "_fractions_of_a_turn(*_fixed_point([libmp.from_float(float(w)) for w in omega]))",
        ),
        unit("test_spectrum.py::test_turns_are_the_nearest_128_bit_fraction"),
    ),
    Break(
        "a carry lost",
        "posenc/_exact.py",
        swap("+ _upper(middle) + _upper(middle_0)", "+ _upper(middle)"),
        unit("test_turns.py::test_phases_are_exact_in_every_octave"),
    ),
    Break(
        "sign of M_k",
        "posenc/sinusoidal.py",
        swap("= sin, -sin", "= -sin, sin"),
        unit("test_sinusoidal.py::test_the_shift_matrix_carries_every_row"),
    ),
    Break(
        "sign in the shift without a matrix",
        "posenc/sinusoidal.py",
        swap("c * cos - s * sin", "c * cos + s * sin"),
        unit("test_sinusoidal.py::test_shifting_without_the_matrix_is_the_addition_formula"),
    ),
    Break(
        "slopes from 2**0 on",
        "posenc/bias.py",
        swap("-8 * i / m", "-8 * (i - 1) / m"),
        unit("test_bias.py::test_golden_slopes"),
    ),
    Break(
        "slopes 2**(-8i/n) for every n",
        "posenc/bias.py",
        swap("m = 1 << (n.bit_length() - 1)", "m = n"),
        unit("test_bias.py::test_golden_slopes"),
    ),
    Break(
        "key form for both sides",
        "posenc/bias.py",
        swap("distance = 0.0 - xp.abs(distance)", "distance = 1.0 * distance"),
        unit("test_bias.py::test_the_key_form_is_wrong_for_encoders"),
    ),
    Break(
        "positions cast before the difference",
        "posenc/bias.py",
        swap(
            "q, k = q[..., :, None], k[..., None, :]",
            "import torch\n    q, k = (torch.as_tensor(p).bfloat16().long() for p in (q, k))\n"
            "    q, k = q[..., :, None], k[..., None, :]\n"
            "    q, k = (q, k) if device else (q.numpy(), k.numpy())",
        ),
        unit("test_bias.py::test_float32_biases_are_the_correctly_rounded_products"),
    ),
    Break(
        "bias cast to 16 bits",
        "posenc/lab/attention.py",
        swap("= _cast(bias, dtype, xp)", "= _cast(bias.to(x.dtype), dtype, xp)"),
        unit("test_bias.py::test_narrow_scores_and_the_bias_are_added_in_float32"),
    ),
    Break(
        "fewer queries aligned at the top",
        "posenc/bias.py",
        swap("key - query - (offset.to(torch.int64) if tensor else offset)", "key - query"),
        unit("test_bias.py::test_flex_attention_adds_the_explicit_bias"),
    ),
    Break(
        "bias rounded to what FlexAttention traces",
        "posenc/bias.py",
        swap("torch.promote_types(score.dtype, torch.float32)", "score.dtype"),
        unit("test_score_mod.py::test_flex_attention_adds_a_far_bias_in_float32"),
    ),
    Break(
        "sign of a bucket",
        "posenc/relative.py",
        swap("xp.where(relative > 0,", "xp.where(relative < 0,"),
        unit("test_relative.py::test_buckets_begin_at_the_published_distances"),
    ),
    Break(
        "boundary of a bucket",
        "posenc/relative.py",
        swap('side="right"', 'side="left"'),
        unit("test_relative.py::test_buckets_begin_at_the_published_distances"),
    ),
    Break(
        "row offset ignored",
        "posenc/modules/learned.py",
        swap("embedding(index + self.offset,", "embedding(index,"),
        unit("test_modules.py::test_a_position_has_the_row_behind_its_offset"),
    ),
    Break(
        "resized by a factor",
        "posenc/learned.py",
        swap(
            "    old = _grid(",
            "    new = tuple(int(table.shape[-2] * (n / table.shape[-2])) for n in new)\n"
            "    old = _grid(",
        ),
        unit("test_learned.py::test_the_size_is_hit_where_a_factor_misses_it"),
    ),
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
        "kind A: the inverse permutation",
        "posenc/pairing.py",
        swap("if to_interleaved else", "if not to_interleaved else"),
        unit("test_pairing.py::test_the_permutation_carries_one_pairing_to_the_other"),
    ),
    Break(
        "kind A: one head for all key heads",
        "posenc/pairing.py",
        swap("order[:, :width] = order[:, p", "order[:1, :width] = order[:1, p"),
        unit("test_pairing.py::test_converted_projections_keep_every_score"),
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
        "kind B: the factor after the rounding",
        "posenc/turns.py",
        swap(
            "cast(factor * cos, target), cast(factor * sin, target)",
            "factor * cast(cos, target), factor * cast(sin, target)",
        ),
        unit("test_rotary.py::test_tables_are_phases_times_the_factor"),
    ),
    Break(
        "kind B: float32 leaks out",
        "posenc/kernels/quick_torch.py",
        swap("results.append(room.to(dtype))", "results.append(room.clone())"),
        unit("test_rotary.py::test_narrow_inputs_are_rounded_once"),
    ),
    Break(
        "kind C: a position clamped to the table",
        "posenc/_rotation.py",
        swap(
            "    rows = cos.shape[0]\n",
            "    rows = cos.shape[0]\n    index = index.clip(0, rows - 1)\n",
        ),
        unit("test_rotary_door.py::test_a_position_outside_the_tables_raises_and_writes_nothing"),
    ),
    Break(
        "kind C: positions ignored",
        "posenc/_rotation.py",
        swap(
            "return cos[index], sin[index], None\n    import",
            "return cos[: len(index)], sin[: len(index)], None\n    import",
        ),
        unit("test_rotary_door.py::test_positions_choose_rows_in_any_order"),
    ),
    Break(
        "kind C: the next token at n - 1",
        "posenc/_cache.py",
        swap("return seen[..., None] + count", "return seen[..., None] - 1 + count"),
        unit("test_positions.py::test_decoding_goes_on_where_the_prompt_ended"),
    ),
    Break(
        "kind C: the shift of evicted keys turned round",
        "posenc/_cache.py",
        swap("shift = close - true", "shift = true - close"),
        unit("test_positions.py::test_evicted_caches_read_either_way"),
    ),
    Break(
        "kind D: positions that count padding",
        "posenc/positions.py",
        swap("tokens(mask).cumsum(-1)", "(0 * tokens(mask) + 1).cumsum(-1)"),
        unit("test_positions.py::test_left_padded_rows_equal_unpadded_ones"),
    ),
    Break(
        "kind D: documents counted on",
        "posenc/positions.py",
        swap("return at - ends[", "return at - 0 * ends["),
        unit("test_positions.py::test_packed_documents_equal_separate_ones"),
    ),
    Break(
        "kind D: ranks in a row",
        "posenc/positions.py",
        swap("chunks[2 * ranks - 1 - own]", "chunks[own + 1]"),
        unit("test_positions.py::test_shards_equal_the_whole"),
    ),
    Break(
        "kind E: shorter than trained",
        "posenc/context/_stretch.py",
        swap(
            'max(trained, whole_number("seq_len", seq_len, at_least=1))',
            'whole_number("seq_len", seq_len, at_least=1)',
        ),
        unit("test_context.py::test_dynamic_remembers_nothing"),
    ),
    Break(
        "kind E: a base that stays grown",
        "posenc/context/_stretch.py",
        swap(
            'length = max(trained, whole_number("seq_len", seq_len, at_least=1))',
            'length = max(trained, whole_number("seq_len", seq_len, at_least=1),'
            " *dynamic.__dict__.values())\n    dynamic.grown = length",
        ),
        unit("test_context.py::test_dynamic_remembers_nothing"),
    ),
    Break(
        "kind E: d for d - 2",
        "posenc/context/_stretch.py",
        swap("Fraction(1, pairs - 1)", "Fraction(1, pairs)"),
        unit("test_context.py::test_ntk_keeps_the_first_hand_and_slows_the_last_by_the_factor"),
    ),
    Break(
        "kind E: bound d/2 - 1",
        "posenc/context/_yarn.py",
        swap("last = MP.mpf(2 * pairs - 1)", "last = MP.mpf(pairs - 1)"),
        unit("test_context.py::test_golden_rules"),
    ),
    Break(
        "kind E: the ramp not truncated",
        "posenc/context/_yarn.py",
        swap("truncate: bool = True", "truncate: bool = False"),
        unit("test_context.py::test_golden_rules"),
    ),
    Break(
        "kind E: the paper's ramp",
        "posenc/context/_yarn.py",
        swap(
            "slowed = _slowed_by_index(low, high, len(omega))",
            "slowed = slowed_by_turns(omega, length, few, many)",
        ),
        unit("test_context.py::test_golden_rules"),
    ),
    Break(
        "kind E: mscales exchanged",
        "posenc/context/_yarn.py",
        swap(
            "_temperature(s, numerator) / _temperature(s, denominator)",
            "_temperature(s, denominator) / _temperature(s, numerator)",
        ),
        unit("test_context.py::test_coefficients_divide"),
    ),
    Break(
        "kind E: the attention factor lost",
        "posenc/context/_numbers.py",
        swap("scaled, attention_factor=attention_factor", "scaled"),
        unit("test_context.py::test_the_factor_reaches_cosines_and_sines_once"),
    ),
    Break(
        "kind E: one list for every length",
        "posenc/context/_families.py",
        swap(
            'divisors = long if whole_number("seq_len", seq_len, at_least=1) > trained else short',
            "divisors = long",
        ),
        unit("test_context.py::test_longrope_chooses_by_the_length_of_the_whole_text"),
    ),
    Break(
        "kind E: the long list a token early",
        "posenc/context/_families.py",
        swap(
            'whole_number("seq_len", seq_len, at_least=1) > trained',
            'whole_number("seq_len", seq_len, at_least=1) >= trained',
        ),
        unit("test_context.py::test_longrope_chooses_by_the_length_of_the_whole_text"),
    ),
    Break(
        "kind E: Llama's bands turned round",
        "posenc/context/_numbers.py",
        swap("0 if r >= many else 1 if r < few", "1 if r >= many else 0 if r < few"),
        unit("test_context.py::test_llama3_keeps_fast_hands_and_slows_slow_ones"),
    ),
    Break(
        "kind F: exponents of partial rotary",
        "posenc/context/_families.py",
        swap("omega[:turning])", "spectrum(2 * turning, base))"),
        unit("test_context.py::test_proportional_is_not_partial"),
    ),
    Break(
        "kind F: no zeros for standing hands",
        "posenc/context/_families.py",
        swap(", *still])", "])"),
        unit("test_context.py::test_proportional_is_not_partial"),
    ),
    Break(
        "kind F: an odd width",
        "posenc/context/_numbers.py",
        swap(
            "width = even_number(name, dim, at_least=at_least)",
            "width = even_number(name, dim + (int(dim) % 2 if dim == 7 else 0), at_least=at_least)",
        ),
        unit("test_context_door.py::test_width_base_and_factor_are_checked_at_the_door"),
    ),
    Break(
        "kind F: a list of another length",
        "posenc/context/_families.py",
        swap("if len(values) != pairs:", "if not len(values):"),
        unit("test_context_door.py::test_bad_input_gets_one_clear_sentence"),
    ),
    Break(
        "kind E: DeepSeek's softmax factor forgotten",
        "posenc/checkpoints/widths.py",
        swap('family.scale == "mscale" and', 'family.scale == "never" and'),
        unit("test_checkpoints.py::test_what_a_configuration_means"),
    ),
    Break(
        "kind E: an attention factor for DeepSeek-V4",
        "posenc/checkpoints/rules.py",
        swap('if word == "yarn" and', "if False and"),
        unit("test_checkpoints.py::test_what_a_configuration_means"),
    ),
    Break(
        "kind E: layers with a window scaled too",
        "posenc/checkpoints/nesting.py",
        swap("if rotation.scaled:", "if True:"),
        unit("test_checkpoints.py::test_what_a_configuration_means"),
    ),
    Break(
        "kind E: local and global base swapped",
        "posenc/checkpoints/families.py",
        swap(
            "GEMMA3_LAYERS = two(Rotation(1e6), Rotation(1e4,",
            "GEMMA3_LAYERS = two(Rotation(1e4), Rotation(1e6,",
        ),
        unit("test_checkpoints.py::test_what_a_configuration_means"),
    ),
    Break(
        "kind E: always the long list",
        "posenc/checkpoints/rules.py",
        swap('{"seq_len": seq_len}', '{"seq_len": 10**9}'),
        unit("test_checkpoints.py::test_what_a_configuration_means"),
    ),
    Break(
        "kind F: a nested dictionary read as a flat one",
        "posenc/checkpoints/nesting.py",
        swap("if key not in declared and isinstance(value, Mapping)", "if False"),
        unit("test_checkpoints.py::test_what_a_configuration_cannot_mean"),
    ),
    Break(
        "kind F: hidden size over heads, whatever head_dim says",
        "posenc/checkpoints/widths.py",
        swap('if found.get("head_dim") is not None or', "if False and"),
        unit("test_checkpoints.py::test_what_a_configuration_means"),
    ),
    Break(
        "kind F: a rotary width that reads the next head",
        "posenc/checkpoints/widths.py",
        swap("if turning > head:", "if False:"),
        unit("test_checkpoints.py::test_what_a_configuration_cannot_mean"),
    ),
    Break(
        "kind F: a width that floating point makes one less",
        "posenc/checkpoints/widths.py",
        swap("SLACK = 1e-6", "SLACK = 0.0"),
        unit("test_checkpoints.py::test_what_a_configuration_means"),
    ),
    Break(
        "kind F: partial and proportional swapped",
        "posenc/checkpoints/widths.py",
        swap('reading.rope_type == "proportional"', "reading.parts()"),
        unit("test_checkpoints.py::test_what_a_configuration_means"),
    ),
    Break(
        "kind F: a typo in a key left alone",
        "posenc/checkpoints/reading.py",
        swap("if key.startswith(PREFIXES) and", "if False and"),
        unit("test_checkpoints.py::test_what_a_configuration_cannot_mean"),
    ),
    Break(
        "kind F: a family of the other pairing",
        "posenc/checkpoints/families.py",
        swap('"glm4": Family(NEIGHBOURS', '"glm4": Family(HALVES'),
        unit(
            "peers/test_checkpoints_peers.py::"
            "test_a_layer_gets_the_queries_keys_and_scale_that_are_predicted[glm4-None]"
        ),
    ),
    Break(
        "an error that leaves status 0",
        "posenc/__main__.py",
        swap("    return 2\n", "    return 0\n"),
        unit("test_command.py::test_errors_are_one_sentence_and_status_2"),
    ),
    Break(
        "kind G: frequencies in a buffer",
        "posenc/modules/rotary.py",
        swap(
            "        self.frequencies = frequencies\n",
            "        self.register_buffer('f', torch.as_tensor(frequencies.omega.copy()))\n"
            "        self.frequencies = property(lambda s: s)\n",
        ),
        unit("test_modules_rotary.py::test_nothing_done_to_the_module_moves_its_angles"),
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
        "kind H: batch axes matched from the right",
        "posenc/_rotation.py",
        swap(
            "return table.reshape(*batch, *[1] * (x.ndim - 2 - len(batch)), length, half)",
            "return table.reshape(*[1] * (x.ndim - 2 - len(batch)), *batch, length, half)",
        ),
        unit("test_rotary_door.py::test_rows_of_a_batch_have_their_own_positions"),
    ),
    Break(
        "kind H: the gradient by the same angle",
        "posenc/kernels/rotate_torch.py",
        swap('"inverse": not inverse}', '"inverse": inverse}'),
        unit("test_rotary_torch.py::test_the_gradient_is_the_rotation_back"),
    ),
    Break(
        "kind H: an output that overlaps",
        "posenc/_rotation.py",
        swap("and _shares(out, other)", "and False"),
        unit("test_rotary_door.py::test_an_out_that_overlaps_in_part_is_refused"),
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
    Break(
        "exhibit 8: tables remembered by their length",
        "posenc/rotary.py",
        swap(
            "return tables(positions, frequencies, True, dtype, device, out)",
            "key, memory = (len(positions), dtype), rope_tables.__dict__\n"
            "    if key not in memory:\n"
            "        memory[key] = tables(positions, frequencies, True, dtype, device, out)\n"
            "    return memory[key]",
        ),
        unit("test_rotary.py::test_prefill_and_decode_agree_to_the_bit"),
    ),
    Break(
        "exhibit 9: every chunk from 0",
        "posenc/_cache.py",
        swap("return seen[..., None] + count", "return 0 * seen[..., None] + count"),
        unit("book/test_cache.py::test_every_split_of_a_text_gives_the_rows_of_the_whole"),
    ),
    Break(
        "exhibit 10: the first query beside the first key",
        "posenc/bias.py",
        swap(
            "    q, k = q[..., :, None], k[..., None, :]\n",
            "    q = q - q[..., :1] + k[..., :1]\n    q, k = q[..., :, None], k[..., None, :]\n",
        ),
        unit("test_bias.py::test_positions_say_where_queries_stand"),
    ),
    Break(
        "exhibit 11: a row for each text",
        "posenc/modules/sinusoidal.py",
        swap(
            "        return (x.to(wide) + table).to(x.dtype)",
            "        if x.ndim == 3 and x.shape[0] <= length:\n"
            "            table = table[: x.shape[0], None]\n"
            "        return (x.to(wide) + table).to(x.dtype)",
        ),
        unit("test_modules.py::test_time_is_the_last_axis_but_one"),
    ),
    Break(
        "exhibit 13: tables wider than a head",
        "posenc/_rotation.py",
        swap("if 2 * cos.shape[-1] > value.shape[-1]:", "if False:"),
        unit("test_rotary_door.py::test_bad_input_gets_one_clear_sentence"),
    ),
    Break(
        "exhibit 14: positions in bfloat16",
        "posenc/_door.py",
        swap(
            "return positions.to(torch.int64)",
            "return positions.to(torch.bfloat16).double().clip(-(2**62), 2**62).to(torch.int64)",
        ),
        unit("test_rotary.py::test_neighbours_beyond_256_have_rows_of_their_own"),
    ),
    Break(
        "exhibits 15 and 16: frequencies in a buffer",
        "posenc/modules/rotary.py",
        both(
            swap(
                "        self.frequencies = frequencies\n",
                "        self.frequencies = frequencies\n"
                "        omega = torch.tensor(frequencies.omega)\n"
                "        self.register_buffer('omega', omega, persistent=False)\n",
            ),
            swap(
                "positions, self.frequencies, dtype",
                "positions, Frequencies(self.omega.double().numpy()), dtype",
            ),
        ),
        unit("test_modules_rotary.py::test_nothing_done_to_the_module_moves_its_angles"),
    ),
    Break(
        "exhibit 17: queries and keys overwritten",
        "posenc/modules/rotary.py",
        swap(
            "q, k = apply_rope_qk(q, k, cos, sin, **how)",
            "rows = tuple(x.detach() for x in (q, k))\n"
            "        turned = apply_rope_qk(q, k, cos, sin, **how)\n"
            "        apply_rope_qk(*rows, cos, sin, out=rows, **how)\n"
            "        q, k = turned",
        ),
        unit("test_modules_rotary.py::test_gradients_pass_and_inputs_stay"),
    ),
    Break(
        "exhibit 19: a stated factor that multiplies",
        "posenc/context/_yarn.py",
        swap(
            'scale = positive_float("attention_factor", attention_factor)',
            'scale = positive_float("attention_factor", attention_factor) * float(_temperature(s))',
        ),
        unit("test_context.py::test_a_stated_attention_factor_is_final"),
    ),
    Break("one stored digit", FORMULA, in_cells(another_digit), ((*NBVAL, FORMULA),)),
    Break("one curve of a stored figure", FORMULA, in_cells(another_curve), ((*NBVAL, FORMULA),)),
    Break(
        "sign of M_k, in the chapter",
        "posenc/sinusoidal.py",
        swap("= sin, -sin", "= -sin, sin"),
        ((*NBVAL, SHIFT),),
    ),
    Break(
        "a misspelt TeX macro",
        FORMULA,
        in_cells(misspelt_macro),
        (BUILD, (*TESTS, "tests/site/test_site.py", "-k", "shows_every_formula and formula")),
    ),
    Break(
        "a missing alt text",
        FORMULA,
        in_cells(no_alt_text),
        ((*TESTS, "tests/book/test_notebooks.py"),),
    ),
    Break(
        "a chapter without its row",
        FORMULA,
        in_cells(no_row),
        unit("book/test_notebooks.py::test_no_chapter_has[no_summary_row-2-waves/formula]"),
    ),
    Break(
        "an index that leads nowhere",
        "_ext/book_index.py",
        swap('            bold["ids"].append(name)\n', ""),
        unit("book/test_extensions.py::test_a_link_of_the_index_leads_to_its_word"),
    ),
    Break(
        "motion for who asked for none",
        "_static/book.css",
        swap("animation: none !important; transition: none !important;", ""),
        (BUILD, (*TESTS, "tests/site/test_site.py", "-k", "less_motion and formula")),
    ),
    Break(
        "printed before its pages were known",
        "_ext/printing/press.py",
        swap("if places == known:", "if places:"),
        (ONE_PAGE, (*TESTS, "tests/site/test_pdf_finds.py", "-k", "sound_book")),
    ),
    Break(
        "contents that fall into letters",
        "_ext/printing/paper.css",
        swap(".leader::before { content", ".leader::before { visibility: hidden; content"),
        (ONE_PAGE, (*TESTS, "tests/site/test_pdf.py", "-k", "copying")),
    ),
    Break(
        "a label without a test",
        FORMULA,
        in_cells(a_label_more),
        unit("book/test_equations.py::test_no_edge_dangles"),
    ),
)


def copied_to(folder: Path) -> Path:
    """Copy what git knows, and what it would take in."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    return folder


def passes(tree: Path, check: tuple[tuple[str, ...], ...]) -> tuple[bool, str]:
    """Whether the commands of a check all succeed, and what they said last."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "WAVES_REQUIRE_SITE": "1"}
    said = ""
    for command in check:
        own = {"TRITON_INTERPRET": "1"} if "tests/interpreter" in command else {}
        done = subprocess.run(
            [sys.executable, *command],
            cwd=tree,
            env={**environment, **own},
            capture_output=True,
            text=True,
        )
        said = done.stdout + done.stderr
        if done.returncode:
            return False, said
    return True, said


def main(words: list[str]) -> None:
    """Try each break; print one line for each."""
    chosen = [b for b in BREAKS if not words or any(word in b.name for word in words)]
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        tree = copied_to(Path(folder))
        for check in dict.fromkeys(b.check for b in chosen):
            well, said = passes(tree, check)
            if not well:
                raise SystemExit(f"fails before anything is broken: {check[-1]}\n{said[-2000:]}")
        for fault in chosen:
            file = tree / fault.file
            sound = file.read_text()
            file.write_text(fault.put(sound))
            unseen, said = passes(tree, fault.check)
            file.write_text(sound)
            failed = re.findall(r"^FAILED (\S+?)(?: - .*)?$", said, re.M)
            seen = "NOT SEEN" if unseen else (failed[0] if failed else fault.check[0][-1])
            print(f"{fault.name:36} {seen}", flush=True)
            if unseen:
                wrong.append(fault.name)
    if wrong:
        raise SystemExit(f"no check failed for: {', '.join(wrong)}")


if __name__ == "__main__":
    main(sys.argv[1:])
