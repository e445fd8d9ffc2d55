"""What a row of the table of families says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Scale = Literal["head_dim", "query_pre_attn_scalar", "attention_multiplier", "mscale", "one"]


@dataclass(frozen=True)
class Rotation:
    """What one kind of layer falls back on where its configuration is silent.

    Parameters
    ----------
    base : float
        Base (``rope_theta``) of the configuration class.
    name : str, default "rope_theta"
        Key of the base beside the rope dictionary; "" if there is none.
    scaled : bool, default True
        Whether a ``rope_scaling`` that names no layer type holds for these layers.
    rule : mapping, optional
        Rope dictionary of the class, used where the configuration has none.
    head_dim : tuple (str, int), optional
        Key and default of a head width of these layers only.
    attention_factor : float, optional
        Attention factor of YaRN where the configuration gives none.
    """

    base: float = 10000.0
    name: str = "rope_theta"
    scaled: bool = True
    rule: Mapping[str, Any] | None = None
    head_dim: tuple[str, int] | None = None
    attention_factor: float | None = None


@dataclass(frozen=True)
class Family:
    """How the models of one ``model_type`` rotate.

    Parameters
    ----------
    interleaved : bool
        True: pairs (2i, 2i + 1). False: pairs (i, i + r/2).
    length : int
        ``max_position_embeddings`` of the configuration class.
    head_dim : int, optional
        Head width of the class; None: hidden size over heads.
    part : float, optional
        Part of a head that turns where the configuration does not say; None: whole heads only.
    width : int, optional
        The same as a number of channels (``rotary_dim``).
    fixed : bool, default False
        The frequencies stand in the code: there is no rope dictionary and no base to set.
    layers : mapping of str to Rotation
        One rotation for each layer type; the key "" stands for all layers.
    still : tuple of str
        Layer types that do not rotate.
    scale : str
        What sets the softmax scale: the head width; ``query_pre_attn_scalar``;
        ``attention_multiplier``; DeepSeek's ``mscale``; or nothing ("one").
    scalar : float, optional
        Default of that key.
    original : int, optional
        ``original_max_position_embeddings`` of the configuration class.
    latent : tuple (int, int), optional
        Multi-head latent attention: defaults of ``qk_nope_head_dim`` and ``qk_rope_head_dim``.
        The last channels turn.
    last : bool, default False
        The last channels of a head turn, not the first.
    reads : tuple of str
        Further keys that the family has: ``rotary_pct``, ``rotary_dim``, ...
    names : mapping of str to str
        The family's own names of ``hidden_size``, ``num_attention_heads`` and
        ``max_position_embeddings``.
    extra : tuple of str
        Keys of the rope dictionary that change no frequency.
    types : mapping of str to str
        Older names of rope types.
    note : str
        What else a reader of the configuration must know.
    """

    interleaved: bool
    length: int
    head_dim: int | None = None
    part: float | None = None
    width: int | None = None
    fixed: bool = False
    layers: Mapping[str, Rotation] = field(default_factory=lambda: {"": Rotation()})
    still: tuple[str, ...] = ()
    scale: Scale = "head_dim"
    scalar: float | None = None
    original: int | None = None
    latent: tuple[int, int] | None = None
    last: bool = False
    reads: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    extra: tuple[str, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)
    note: str = ""

    @property
    def labels(self) -> tuple[str, ...]:
        """Layer types with a rotation each; none if all layers share one."""
        return tuple(label for label in self.layers if label)
