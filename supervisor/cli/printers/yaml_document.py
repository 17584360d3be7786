"""JSON values as YAML in blocks, as kubectl shows them (sigs.k8s.io/yaml, goyaml.v2/emitterc.go). Pure, linear.

PyYAML is not used: its import and libyaml's emitter take half of what a list of 300 pods may cost. Other than kubectl's
a long text stays on its line, where a search finds the whole of it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ipc.host.text.json_types import Json
from supervisor.cli.printers.yaml_keys import in_order
from supervisor.cli.printers.yaml_scalars import written_lines, written_number, written_text

STEP: Final = 2
"""Spaces of an indentation."""
MAX_SIMPLE_KEY_BYTES: Final = 128
"""A longer key, or one of several lines, stands behind a question mark (yaml_emitter_check_simple_key)."""

Write = Callable[[str], None]


class _Key(NamedTuple):
    """A key of a mapping."""

    key: str
    written: str
    is_simple: bool


def as_yaml(value: object) -> str:
    """A document of dicts, lists, texts, numbers, booleans and None: it reads back as it was, but for halves of
    surrogate pairs."""
    parts: list[str] = []
    if _is_in_block(value):
        _write(parts.append, value, "", 0)
    else:
        parts.append(f"{_scalar(value, STEP)}\n")
    return "".join(parts)


def _is_in_block(value: object) -> bool:
    return isinstance(value, dict | list) and bool(value)


def _write(write: Write, value: object, begun: str, indent: int) -> None:
    """Write a value into the line begun; its further lines stand behind ``indent`` spaces."""
    if isinstance(value, dict) and value:
        _write_mapping(write, value, begun, indent)
    elif isinstance(value, list) and value:
        _write_sequence(write, value, begun, indent)
    else:
        write(f"{begun}{_scalar(value, indent)}\n")


def _write_mapping(write: Write, mapping: Json, begun: str, indent: int) -> None:
    margin = " " * indent
    for key, written, is_simple in _keys(tuple(mapping)):
        value = mapping[key]
        if not is_simple:
            write(f"{begun}? {_scalar(key, indent + STEP)}\n")
            _write(write, value, f"{margin}: ", indent + STEP)
        elif isinstance(value, dict) and value:
            write(f"{begun}{written}:\n")
            _write_mapping(write, value, f"{margin}  ", indent + STEP)
        elif isinstance(value, list) and value:
            write(f"{begun}{written}:\n")
            _write_sequence(write, value, margin, indent)
        else:
            write(f"{begun}{written}: {_scalar(value, indent + STEP)}\n")
        begun = margin


def _write_sequence(write: Write, sequence: Sequence[object], begun: str, indent: int) -> None:
    margin = " " * indent
    for value in sequence:
        _write(write, value, f"{begun}- ", indent + STEP)
        begun = margin


def _scalar(value: object, indent: int) -> str:
    """A value that needs no block. Lines of a text of several stand behind ``indent`` spaces."""
    if isinstance(value, str):
        return written_lines(value, indent) if "\n" in value else written_text(value)
    if isinstance(value, dict | list):
        return "{}" if isinstance(value, dict) else "[]"
    return written_number(value)


@functools.lru_cache(maxsize=1024)
def _keys(keys: tuple[str, ...]) -> Sequence[_Key]:
    """Keys of a mapping in order. Most mappings have the same as many others."""
    return [_Key(key, written_text(key), _is_simple(key)) for key in in_order(keys)]


def _is_simple(key: str) -> bool:
    return "\n" not in key and len(key.encode(errors="replace")) <= MAX_SIMPLE_KEY_BYTES
