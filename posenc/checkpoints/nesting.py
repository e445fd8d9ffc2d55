"""One rope dictionary for all layers, or one for each kind of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from posenc._door import kind
from posenc.checkpoints.family import Family
from posenc.checkpoints.rope_types import meant

BOXES = ("rope_scaling", "rope_parameters")
"""The older and the newer name of the rope dictionary."""


def rope_dictionary(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rope dictionary, under its older or its newer name."""
    merged: dict[str, Any] = {}
    for name in BOXES:
        box = found.get(name)
        if box is None:
            continue
        if not isinstance(box, Mapping):
            raise TypeError(f"{name} must be a mapping, got {kind(box)}")
        for key, value in box.items():
            if merged.setdefault(key, value) != value:
                raise ValueError(
                    f"{key} is {merged[key]!r} in rope_scaling and {value!r} in rope_parameters: "
                    "one of them is wrong"
                )
    return merged


def layer_types(found: Mapping[str, Any]) -> Iterable[str]:
    """Return the type of each layer, where a configuration lists them."""
    types = found.get("layer_types")
    if types is None:
        return ()
    if not isinstance(types, (list, tuple)) or not all(isinstance(t, str) for t in types):
        raise TypeError(f"layer_types must be a list of str, got {kind(types)}")
    return types


def check_nesting(box: Mapping[str, Any], declared: tuple[str, ...], model_type: str) -> None:
    """A dictionary is nested by its declared layer types, and by nothing else."""
    for key, value in box.items():
        if key in declared and not (value is None or isinstance(value, Mapping)):
            raise TypeError(f"{key} in the rope dictionary must be a mapping, got {kind(value)}")
        if key not in declared and isinstance(value, Mapping):
            raise ValueError(
                f"{key} in the rope dictionary is no layer type of this {model_type!r}"
                f" ({', '.join(declared) or 'it names none'}){meant(key, declared)}"
            )
    flat = [key for key in box if key not in declared]
    if flat and len(flat) < len(box):
        raise ValueError(
            f"{flat[0]} stands beside {next(key for key in box if key in declared)} in the rope "
            "dictionary: it must be nested by layer type throughout, or not at all"
        )


def of_layer(
    box: Mapping[str, Any],
    nested: list[str],
    family: Family,
    model_type: str,
    declared: tuple[str, ...],
    layer_type: str | None,
    found: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the entry of the rope dictionary for the layers that are asked for."""
    if layer_type is not None and layer_type not in declared:
        words = " or ".join(map(repr, declared))
        raise ValueError(
            f"layer_type must be {words or 'None'} for this {model_type!r}, got {layer_type!r}"
        )
    if layer_type in family.still and found.get("sliding_window", 0) is not None:
        raise ValueError(
            f"layers of type {layer_type!r} do not rotate in model_type {model_type!r}"
        )
    if layer_type is None and (len(nested) > 1 or (family.labels and not nested)):
        words = " or ".join(map(repr, nested or family.labels))
        raise ValueError(f"layer_type must be {words} for this {model_type!r}, got None")
    if nested:
        asked = layer_type or nested[0]
        if asked not in box and not family.labels:
            raise ValueError(f"{asked} is missing in the rope dictionary of this {model_type!r}")
        entry = box.get(asked, {})
        if entry is None:
            raise ValueError(f"layers of type {asked!r} do not rotate: their entry is null")
        return dict(entry)
    if not family.labels:
        return dict(box)
    if box and not any(rotation.scaled for rotation in family.layers.values()):
        raise ValueError(
            f"the rope dictionary of model_type {model_type!r} must be nested by layer type: "
            + ", ".join(declared)
        )
    rotation = family.layers[layer_type or ""]
    if rotation.scaled:
        return dict(box)
    return {key: box[key] for key in box if key == rotation.name}  # no rule, but the base
