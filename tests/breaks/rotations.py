"""Faults of rotations, pairings, positions, and the modules around them."""

from .fault import Break, both, swap, unit

BREAKS = (
    Break(
        "row offset ignored",
        "posenc/modules/learned.py",
        swap("embedding(index + self.offset,", "embedding(index,"),
        unit("test_modules.py::test_a_position_has_the_row_behind_its_offset"),
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
        "kind H: batch axes matched from the right",
        "posenc/_rotation.py",
        swap(
            "return table.reshape(*batch, *[1] * (x.ndim - 2 - len(batch)), length, half)",
            "return table.reshape(*[1] * (x.ndim - 2 - len(batch)), *batch, length, half)",
        ),
        unit("test_rotary_door.py::test_rows_of_a_batch_have_their_own_positions"),
    ),
    Break(
        "kind H: an output that overlaps",
        "posenc/_rotation.py",
        swap("and _shares(out, other)", "and False"),
        unit("test_rotary_door.py::test_an_out_that_overlaps_in_part_is_refused"),
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
)
