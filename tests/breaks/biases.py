"""Faults of biases and learned tables."""

from .fault import Break, swap, unit

BREAKS = (
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
        "exhibit 10: the first query beside the first key",
        "posenc/bias.py",
        swap(
            "    q, k = q[..., :, None], k[..., None, :]\n",
            "    q = q - q[..., :1] + k[..., :1]\n    q, k = q[..., :, None], k[..., None, :]\n",
        ),
        unit("test_bias.py::test_positions_say_where_queries_stand"),
    ),
)
