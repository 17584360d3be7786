"""msgspec's sentences about a configuration, in plain words and with their fields. Pure."""

from __future__ import annotations

import re
import typing
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from supervisor.config.settings import Settings

_VALIDATION_ERROR: Final = re.compile(r"(?P<message>.*?)(?: - at `\$\.?(?P<path>[^`]*)`)?", re.DOTALL)
_UNKNOWN_FIELD: Final = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)
_WRONG_TYPE: Final = re.compile(r"Expected `(?P<wanted>[^`]*)`, got `(?P<found>[^`]*)`")
_TYPES: Final[Mapping[str, str]] = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "nothing",
}


def named_error(text: str) -> tuple[str, str]:
    """Path of the field, and what is wrong with it."""
    match = _VALIDATION_ERROR.fullmatch(text)
    message, path = (match["message"], match["path"] or "") if match else (text, "")
    if unknown := _UNKNOWN_FIELD.fullmatch(message):
        name = unknown["name"]
        return f"{path}.{name}".removeprefix("."), f"unknown field{_meant(name, path)}"
    if wrong := _WRONG_TYPE.fullmatch(message):
        return path, f"must be {type_words(wrong['wanted'])}, not {type_words(wrong['found'])}"
    if message.startswith("Invalid enum value"):
        return path, f"must be one of {', '.join(choice or 'nothing' for choice in _choices(path))}"
    return path, message.replace("`", "")


def type_words(names: str) -> str:
    """``int | str`` as people say it."""
    return " or ".join(_TYPES.get(name, name) for name in names.split(" | "))


def _meant(name: str, path: str) -> str:
    section = _type_at(path)
    known = [field.encode_name for field in msgspec.structs.fields(section)] if _is_section(section) else []
    from difflib import get_close_matches  # only for what is wrong

    close = get_close_matches(name, known, n=1)
    return f", did you mean {close[0]}?" if close else ""


def _is_section(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _choices(path: str) -> tuple[str, ...]:
    return typing.get_args(_type_at(path))


def _type_at(path: str) -> Any:
    """None where a list or a mapping of the file's own names lies between."""
    kind: Any = Settings
    for name in path.split(".") if path else ():
        if not _is_section(kind):
            return None
        kind = next((field.type for field in msgspec.structs.fields(kind) if field.encode_name == name), None)
    return kind
