"""A published configuration becomes frequencies, pairing, rotary width and softmax scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from posenc._door import whole_number
from posenc._frequencies import Frequencies
from posenc.checkpoints.families import FAMILIES as FAMILIES
from posenc.checkpoints.family import Family as Family
from posenc.checkpoints.family import Rotation as Rotation
from posenc.checkpoints.reading import read
from posenc.checkpoints.rules import parameters, rule_frequencies
from posenc.checkpoints.widths import pairing, softmax_scale, widths


@dataclass(frozen=True)
class Rope:
    """What a configuration says about the rotations of one kind of layer.

    Attributes
    ----------
    frequencies : Frequencies
        The r/2 frequencies in radians per token, with the attention factor of cos and sin.
    interleaved : bool
        True: pairs (2i, 2i + 1). False: pairs (i, i + r/2). What `apply_rope` asks for.
    rotary_dim : int
        Channels r that turn.
    head_dim : int
        Channels of a query or key. The others pass.
    rotary_start : int
        First channel that turns: 0, and head_dim - rotary_dim where the last ones turn (DeepSeek
        and its kin, which keep them in a tensor of their own). `apply_rope` turns the first
        channels of what it gets: give it the slice.
    softmax_scale : float
        Factor of the scores before the softmax; the attention factor comes on top of it.
    base : float
        Base of the frequencies (``rope_theta``), before any rule.
    rope_type : str
        The rule; "ntk" where a ``dynamic`` dictionary has Hunyuan's ``alpha``.
    parameters : dict of str to object
        What the rule of `posenc.context` was given, defaults included.
    original_max_position_embeddings, max_position_embeddings : int
        Tokens of the first training, and tokens that the configuration allows.
    model_type : str
        Key of its row in ``posenc.checkpoints.FAMILIES``.
    layer_type : str or None
        The kind of layer, where there are several.
    source : dict of str to str
        Where each value came from: a key, a default of the ``model_type``, a quotient.

    Notes
    -----
    Elsewhere: the attributes of ``RotaryEmbedding`` and of the attention (transformers),
    ``get_rope`` (vLLM).
    """

    frequencies: Frequencies
    interleaved: bool
    rotary_dim: int
    head_dim: int
    rotary_start: int
    softmax_scale: float
    base: float
    rope_type: str
    parameters: dict[str, Any]
    original_max_position_embeddings: int
    max_position_embeddings: int
    model_type: str
    layer_type: str | None
    source: dict[str, str]


def rope_from_config(
    config: Any, *, layer_type: str | None = None, seq_len: int | None = None
) -> Rope:
    """Read what a published configuration says about the rotation of queries and keys.

    Parameters
    ----------
    config : mapping, str, path or configuration object
        What a config.json holds: the mapping itself, the file, the folder of a model, or an
        object with ``to_dict()`` such as a transformers configuration. Of a multimodal model
        the ``text_config`` is read.
    layer_type : str, optional
        The kind of layer, where kinds differ: ``"sliding_attention"``, ``"full_attention"``,
        DeepSeek-V4's ``"main"`` and ``"compress"``.
    seq_len : int, optional
        Tokens of the sequence, cache included; the rope types ``dynamic`` and ``longrope``
        depend on it, and need it.

    Returns
    -------
    Rope
        r/2 frequencies, pairing, widths (int) and softmax scale, each with its source.

    Raises
    ------
    TypeError
        If ``config`` is none of these, or a value in it has the wrong type.
    ValueError
        If ``model_type`` is missing or unknown; if a key of the rope dictionary, or a key that
        begins with ``rope_``, ``rotary_`` or ``partial_rotary``, is not one that this
        ``model_type`` reads; if two keys contradict each other; if a parameter is missing or
        impossible; if ``layer_type`` or ``seq_len`` is needed. The sentence names the key.
    OSError
        If a file cannot be read.

    Notes
    -----
    Other keys are left alone. A base, width or length that is missing is the default of the
    ``model_type``'s class in transformers 5.24, and ``source`` says so. The softmax scale is
    head_dim**-0.5, DeepSeek's with its factor, or what ``query_pre_attn_scalar`` or
    ``attention_multiplier`` says. Equation ``eq-softmax-scale`` of the book. Readings that differ
    between projects: ``attention_factor`` is the final factor of cos and sin; a rotary width is
    floor(head_dim * part), and must be even; PhiMoE takes its long factors for a long sequence;
    and where layers differ, ``type``, ``truncate`` and Olmo 3's ``rope_theta`` count wherever
    they stand (transformers 5.24 drops each of them in one place:
    tests/peers/test_checkpoints_peers.py shows it).
    Elsewhere: ``ROPE_INIT_FUNCTIONS`` (transformers), ``get_rope`` (vLLM).

    Examples
    --------
    >>> from posenc import rope_from_config
    >>> rope = rope_from_config({
    ...     "model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32,
    ...     "max_position_embeddings": 131072, "rope_theta": 500000.0,
    ...     "rope_scaling": {
    ...         "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
    ...         "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
    ...     },
    ... })
    >>> rope.interleaved, rope.rotary_dim, rope.head_dim
    (False, 128, 128)
    >>> len(rope.frequencies), rope.softmax_scale.hex()
    (64, '0x1.6a09e667f3bcdp-4')
    >>> rope.source["base"]
    'rope_theta'
    """
    if layer_type is not None and not isinstance(layer_type, str):
        raise TypeError(f"layer_type must be a str, got {type(layer_type).__name__}")
    if seq_len is not None:
        seq_len = whole_number("seq_len", seq_len, at_least=1)
    reading = read(config, layer_type)
    head, turning, start = widths(reading)
    base = reading.base()
    taken = parameters(reading)
    return Rope(
        frequencies=rule_frequencies(reading, turning, base, taken, seq_len),
        interleaved=pairing(reading),
        rotary_dim=turning,
        head_dim=head,
        rotary_start=start,
        softmax_scale=softmax_scale(reading, head, taken),
        base=base,
        rope_type=reading.rope_type,
        parameters=taken,
        original_max_position_embeddings=reading.original(),
        max_position_embeddings=reading.length(),
        model_type=reading.model_type,
        layer_type=reading.layer_type,
        source=reading.source,
    )
