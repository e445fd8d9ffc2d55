"""Faults of the rules for longer texts and of reading configurations."""

from .fault import Break, swap, unit

BREAKS = (
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
        "exhibit 19: a stated factor that multiplies",
        "posenc/context/_yarn.py",
        swap(
            'scale = positive_float("attention_factor", attention_factor)',
            'scale = positive_float("attention_factor", attention_factor) * float(_temperature(s))',
        ),
        unit("test_context.py::test_a_stated_attention_factor_is_final"),
    ),
)
