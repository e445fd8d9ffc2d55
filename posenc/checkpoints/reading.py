"""What a configuration says about one kind of layer, before any frequency is computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from posenc._door import INT64, positive_float, whole_number
from posenc.checkpoints.families import FAMILIES
from posenc.checkpoints.family import Family, Rotation
from posenc.checkpoints.loading import PREFIXES, load
from posenc.checkpoints.nesting import (
    BOXES,
    check_nesting,
    layer_types,
    of_layer,
    rope_dictionary,
)
from posenc.checkpoints.rope_types import ORIGINAL, PARAMETERS, meant, rope_type


@dataclass
class Reading:
    """The part of a configuration that holds for one kind of layer.

    Attributes
    ----------
    model_type : str
        Key of its family.
    layer_type : str, optional
        The kind of layer, where a configuration has several.
    rope_type : str
        The rule of these layers.
    found : dict
        The whole configuration.
    rule : dict
        The rope dictionary of these layers; null values are left out.
    nulls : set of str
        Its keys with null values.
    rotation : Rotation
        What the family falls back on.
    thetas : list
        Bases of all kinds of layers.
    source : dict of str to str
        Where each value came from, filled as values are read.
    """

    model_type: str
    layer_type: str | None
    rope_type: str
    found: dict[str, Any]
    rule: dict[str, Any]
    nulls: set[str]
    rotation: Rotation
    thetas: list[Any]
    source: dict[str, str] = field(default_factory=dict)

    @property
    def family(self) -> Family:
        """What the code of this ``model_type`` does."""
        return FAMILIES[self.model_type]

    def agreed(self, name: str, values: Mapping[str, Any], default: Any = None) -> Any:
        """Return the one value that several keys give, and note which key gave it.

        Raises
        ------
        ValueError
            If two keys give different values, or none gives one and there is no default.
        """
        given = {where: value for where, value in values.items() if value is not None}
        first = next(iter(given), "")
        for where, value in given.items():
            if value != given[first]:
                raise ValueError(
                    f"{where} is {value} and {first} is {given[first]}: one of them is wrong"
                )
        if given:
            self.source[name] = first
            return given[first]
        if default is None:
            raise ValueError(f"{' or '.join(values)} is missing")
        self.source[name] = f"default of model_type {self.model_type!r}"
        return default

    def length(self) -> int:
        """Tokens that the configuration allows: ``max_position_embeddings``."""
        name = "max_position_embeddings"
        values = self.named(name) | {inside_of(name): self.rule.get(name)}
        return _tokens(name, self.agreed(name, values, self.family.length))

    def named(self, name: str) -> dict[str, Any]:
        """Return the values of a key, under the usual name and under the family's own."""
        names = dict.fromkeys((name, self.family.names.get(name, name)))
        return {key: self.found.get(key) for key in names}

    def original(self) -> int:
        """Tokens of the first training: ``original_max_position_embeddings``, or `length`."""
        values = {
            inside_of(ORIGINAL): self.rule.get(ORIGINAL),
            ORIGINAL: self.found.get(ORIGINAL),
        }
        scaled = ORIGINAL in PARAMETERS[self.rope_type]
        default = self.family.original if scaled else None
        if default is None and all(value is None for value in values.values()):
            self.source[ORIGINAL] = "max_position_embeddings"
            return self.length()
        value = _tokens(ORIGINAL, self.agreed(ORIGINAL, values, default))
        if self.rope_type == "dynamic" and value != self.length():
            raise ValueError(
                f"{ORIGINAL} is {value}, but rope_type 'dynamic' starts from "
                f"max_position_embeddings, which is {self.length()}"
            )
        return value

    def parts(self) -> dict[str, float]:
        """Parts of a head that the configuration gives, by key."""
        values = {
            inside_of("partial_rotary_factor"): self.rule.get("partial_rotary_factor"),
            "partial_rotary_factor": self.found.get("partial_rotary_factor"),
        }
        if "rotary_pct" in self.family.reads:
            values["rotary_pct"] = self.found.get("rotary_pct")
        given = {
            key: positive_float("partial_rotary_factor", value)
            for key, value in values.items()
            if value is not None
        }
        for key, part in given.items():
            if part > 1:
                raise ValueError(f"{key} must be at most 1, got {part}")
        return given

    def base(self) -> float:
        """Base of the frequencies: ``rope_theta`` under each of its names."""
        if self.family.fixed:
            self.source["base"] = f"fixed in the code of model_type {self.model_type!r}"
            return self.rotation.base
        names = [self.rotation.name, *(n for n in self.family.reads if n == "rotary_emb_base")]
        values = {inside_of("rope_theta"): self.rule.get("rope_theta")}
        for name in filter(None, names):
            value = self.found.get(name)
            inside = self.rule.get("rope_theta")
            if inside is None or value == inside or value not in self.thetas:
                values[name] = value  # else it is the base of another kind of layer
        base = positive_float("rope_theta", self.agreed("base", values, self.rotation.base))
        ratio = self.found.get("rope_ratio")
        if ratio is not None:
            self.source["base"] += ", times rope_ratio"
            base *= positive_float("rope_ratio", ratio)
        return base


def _tokens(name: str, value: object) -> int:
    """Take a length in tokens, each of which has a position."""
    if whole_number(name, value, at_least=1) not in INT64:
        raise ValueError(f"{name} must fit in int64, got {value}")
    return whole_number(name, value)


def inside_of(key: str) -> str:
    """Name a key of the rope dictionary in a sentence."""
    return f"{key} in the rope dictionary"


def read(config: object, layer_type: str | None) -> Reading:
    """Find the family, the rope dictionary and the layers that are meant.

    Raises
    ------
    TypeError
        If a value has the wrong type.
    ValueError
        If ``model_type`` is unknown or missing, if a key that speaks of rotation is unknown, if
        two keys contradict each other, or if ``layer_type`` names no layers that rotate.
    OSError
        If a file cannot be read.
    """
    found = load(config)
    model_type = found.get("model_type")
    if model_type is None:
        raise ValueError(
            "model_type is missing: it says which channels form a pair "
            "(a params.json of Meta has none: its weights are interleaved)"
        )
    if not isinstance(model_type, str) or model_type not in FAMILIES:
        raise ValueError(f"model_type {model_type!r} is unknown{meant(model_type, FAMILIES)}")
    family = FAMILIES[model_type]
    _check_keys(found, family, model_type)
    if model_type == "falcon" and found.get("alibi"):
        raise ValueError("alibi is true: this model adds biases to its scores and rotates nothing")
    box = rope_dictionary(found)
    declared = family.labels or tuple(dict.fromkeys(layer_types(found)))
    check_nesting(box, declared, model_type)
    nested = [key for key in box if key in declared]
    rule = of_layer(box, nested, family, model_type, declared, layer_type, found)
    key = layer_type if layer_type in family.layers else ""
    if key == "" and "" not in family.layers:
        (key,) = nested  # one kind of layer is described, and none was asked for
    rotation = family.layers[key or ""]
    silent = not rule and rotation.rule is not None
    if silent:
        rule = dict(rotation.rule or {})
    reading = Reading(
        model_type,
        layer_type or (nested[0] if nested else None),
        rope_type(rule, family),
        found,
        {key: value for key, value in rule.items() if value is not None},
        {key for key, value in rule.items() if value is None},
        rotation,
        [entry.get("rope_theta") for entry in map(box.get, nested) if entry],
    )
    if silent:
        reading.source["rope_type"] = f"default of model_type {model_type!r}"
    if family.note:
        reading.source["note"] = family.note
    return reading


def _check_keys(found: Mapping[str, Any], family: Family, model_type: str) -> None:
    bases = {rotation.name for rotation in family.layers.values()}
    known = {*family.reads}
    if not family.fixed:
        known |= {*BOXES, *bases, "partial_rotary_factor"}
    for key in found:
        if key.startswith(PREFIXES) and key not in known:
            if found[key] is None and key in (*BOXES, "rope_theta", "partial_rotary_factor"):
                continue
            raise ValueError(
                f"{key} is no key that model_type {model_type!r} reads{meant(key, known)}"
            )
