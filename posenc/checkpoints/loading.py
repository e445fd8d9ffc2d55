"""Where a configuration comes from: a mapping, a file, a model folder, a configuration object."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from posenc._door import is_tensor, kind, unmasked
from posenc.checkpoints.nesting import BOXES

PREFIXES = ("rope_", "rotary_", "partial_rotary")
"""How the keys begin that say something about rotation: an unknown one is an error."""


LONGEST = 1000
"""Digits of an integer beyond which a file holds no configuration."""


def load(config: object) -> dict[str, Any]:
    """Take the configuration of a text model as a dict, whatever form it comes in.

    Raises
    ------
    TypeError
        If it is no mapping, path or object with ``to_dict``.
    ValueError
        If a file is not JSON, or holds a key twice; if the parts of a multimodal configuration
        contradict each other.
    OSError
        If a file cannot be read.
    """
    found: Any
    if isinstance(config, (str, os.PathLike)):
        if not os.fspath(config):
            raise ValueError("config must be the path of a file or a folder, got an empty one")
        found = _read(Path(config))
    elif callable(getattr(config, "to_dict", None)) and not isinstance(config, type):
        found = config.to_dict()  # type: ignore[attr-defined]
    else:
        found = config
    if not isinstance(found, Mapping):
        raise TypeError(
            f"config must be a mapping, a path or an object with to_dict(), got {kind(found)}"
        )
    return _text(_own(found))


def _own(found: Mapping[Any, Any], inner: tuple[str, ...] = BOXES) -> dict[str, Any]:
    """A copy, down to the rope dictionaries of single layers, with lists in place of arrays."""
    copied: dict[str, Any] = {}
    for key, value in found.items():
        if not isinstance(key, str):
            raise TypeError(f"the keys of a configuration must be str, got {key!r}")
        if isinstance(value, Mapping) and (key in inner or not inner):
            value = _own(value, () if inner else ("",))
        elif is_tensor(value) or isinstance(value, (np.ndarray, np.generic, list)):
            unmasked(key, value)
            value = list(value) if isinstance(value, list) else value.tolist()
        copied[key] = value
    return copied


def _read(path: Path) -> dict[str, Any]:
    if path.is_dir():
        path = path / "config.json"
    try:
        found = json.loads(
            path.read_bytes().decode("utf-8-sig"),
            object_pairs_hook=_once,
            parse_constant=_no_number,
            parse_int=_integer,
        )
    except RecursionError:
        raise ValueError(f"{path} is nested too deeply for a configuration") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path} must hold a JSON object, got {kind(found)}")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found and found[key] != value:
            raise ValueError(f"{key} stands twice, as {found[key]!r} and as {value!r}")
        found[key] = value
    return found


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON number")


def _integer(digits: str) -> int:
    if len(digits) > LONGEST:
        raise ValueError(f"an integer of {len(digits)} digits is none of a configuration")
    return int(digits)


def _text(found: dict[str, Any]) -> dict[str, Any]:
    """Take the part of a multimodal configuration that describes its language model."""
    inner = found.get("text_config")
    if inner is None:
        return found
    if callable(getattr(inner, "to_dict", None)):
        inner = inner.to_dict()
    if not isinstance(inner, Mapping):
        raise TypeError(f"text_config must be a mapping, got {kind(inner)}")
    text = _own(inner)
    for key, value in found.items():
        if key.startswith(PREFIXES) and value is not None:
            if text.get(key) is None:
                text[key] = value
            elif text[key] != value:
                raise ValueError(
                    f"{key} is {value!r}, and {text[key]!r} in text_config: one of them is wrong"
                )
    text.setdefault("model_type", found.get("model_type"))
    return text
