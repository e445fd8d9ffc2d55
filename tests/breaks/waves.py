"""Faults of frequencies, phases, tables and shifts."""

from .fault import NBVAL, SHIFT, Break, swap, unit

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
        "kind B: the factor after the rounding",
        "posenc/turns.py",
        swap(
            "cast(factor * cos, target), cast(factor * sin, target)",
            "factor * cast(cos, target), factor * cast(sin, target)",
        ),
        unit("test_rotary.py::test_tables_are_phases_times_the_factor"),
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
        "sign of M_k, in the chapter",
        "posenc/sinusoidal.py",
        swap("= sin, -sin", "= -sin, sin"),
        ((*NBVAL, SHIFT),),
    ),
)
