"""The configuration file: one YAML mapping, decoded into `Settings` and held against their rules."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from ipc.host.regular_files import read_regular_file
from ipc.host.text.json_types import JsonObject
from ipc.k8s.api.quantity import parse_quantity
from ipc.k8s.api.validation.names import LABEL_VALUE, qualified_name_problem
from supervisor.config.resolution.decode_errors import named_error, type_words
from supervisor.config.resolution.resolved_settings import resolve_settings, this_host
from supervisor.config.settings import (
    API_VERSION,
    KIND,
    Bytes,
    Check,
    Each,
    IpAddress,
    IpAddresses,
    NodeLabels,
    Pattern,
    Range,
    Seconds,
    Settings,
    SettingsError,
    seconds,
)
from supervisor.sources.documents.reader import read_documents

MAX_CONFIG_BYTES: Final = 1 << 20
MAX_ERRORS: Final = 50
"""Most errors of values that are told of one file."""


def load_settings(path: Path) -> Settings:
    """Read, check and resolve a configuration file. Raises SettingsError."""
    try:
        data = read_regular_file(path, MAX_CONFIG_BYTES + 1)
    except OSError as error:
        raise SettingsError(str(path), "", error.strerror or str(error)) from error
    settings = parse_settings(data, str(path))
    return resolve_settings(settings, path.absolute().parent, this_host(), str(path))


def default_settings() -> Settings:
    """The settings of this host when there is no file. Raises SettingsError."""
    return resolve_settings(Settings(), Path.cwd(), this_host(), "default settings")


def parse_settings(data: bytes, file: str) -> Settings:
    """Settings of a configuration file, checked and not yet resolved. Pure. Raises SettingsError, with all faults."""
    raw = _without_nulls(_one_mapping(data, file))
    for name, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        if raw.get(name) != wanted:
            raise SettingsError(file, name, f"must be {wanted}")
    settings, errors = _decoded(raw)
    errors += _findings(settings, "")
    if errors:
        raise SettingsError.of(SettingsError(file, path, message) for path, message in errors)
    return settings


def _one_mapping(data: bytes, file: str) -> JsonObject:
    if len(data) > MAX_CONFIG_BYTES:
        raise SettingsError(file, "", f"more than {MAX_CONFIG_BYTES} bytes")
    read = read_documents(data)
    for error in read.errors:
        raise SettingsError(file, error.field, error.message)
    if len(read.documents) != 1 or not isinstance(value := read.documents[0].value, dict):
        raise SettingsError(file, "", f"must be one YAML mapping of kind {KIND}")
    return value


def _without_nulls(value: Any) -> Any:
    """A key with nothing behind it is not set, as in the kubelet's configuration."""
    if not isinstance(value, dict):
        return value
    return {key: _without_nulls(item) for key, item in value.items() if item is not None}


def _decode_value(kind: type, value: object) -> object:
    return _DECODERS[kind](value)


def _decode_seconds(value: object) -> Seconds:
    if not isinstance(value, str):
        raise ValueError(f'must be a duration such as "1m30s", not {type_words(type(value).__name__)}')
    return seconds(value)


def _decode_bytes(value: object) -> Bytes:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f'must be a size such as "1Mi", not {type_words(type(value).__name__)}')
    amount = parse_quantity(value)
    if amount.denominator != 1:
        raise ValueError(f"must be whole bytes, not {value}")
    return Bytes(amount)


def _decode_path(value: object) -> Path:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError("must be a path")
    return Path(value)


_DECODERS: Final[Mapping[type, Callable[[object], object]]] = {
    Seconds: _decode_seconds,
    Bytes: _decode_bytes,
    Path: _decode_path,
}


def _decoded(raw: JsonObject) -> tuple[Settings, list[tuple[str, str]]]:
    """The settings without those that are wrong, and what is wrong: msgspec names the first fault, so each is taken out
    and the rest read again."""
    errors: list[tuple[str, str]] = []
    while len(errors) < MAX_ERRORS:
        try:
            return msgspec.convert(raw, Settings, dec_hook=_decode_value), errors
        except msgspec.ValidationError as error:
            path, message = named_error(str(error))
            errors.append((path, message))
            if not (path and _take_out(raw, path)):
                break
    return Settings(), errors


def _take_out(raw: JsonObject, path: str) -> bool:
    """Remove the value at the path, or the list or mapping that it lies in; whether there was one."""
    section: object = raw
    *parents, last = path.partition("[")[0].split(".")
    for name in parents:
        section = section.get(name) if isinstance(section, dict) else None
    return isinstance(section, dict) and section.pop(last, None) is not None


def _findings(section: msgspec.Struct, prefix: str) -> Iterator[tuple[str, str]]:
    """Values out of range and texts that do not look right, with their paths."""
    for field in msgspec.structs.fields(section):
        value, path = getattr(section, field.name), prefix + field.encode_name
        if isinstance(value, msgspec.Struct):
            yield from _findings(value, f"{path}.")
            continue
        for rule in getattr(field.type, "__metadata__", ()):
            if message := _broken(rule, value):
                yield path, message


def _broken(rule: object, value: Any) -> str:
    match rule:
        case Range() if not rule.low <= value <= rule.high:
            return f"{value} is not between {_like(value, rule.low)} and {_like(value, rule.high)}"
        case Pattern() if not re.fullmatch(rule.regex, value):
            return rule.says
        case IpAddress() if not _is_address(value):
            return f"{value!r} is not an IP address"
        case IpAddresses() if len(value) > rule.max_number:
            return f"{len(value)} addresses are more than {rule.max_number}"
        case IpAddresses():
            return next((f"{text!r} is not an IP address" for text in value if not _is_address(text)), "")
        case NodeLabels():
            return next((f"{key!r}: {problem}" for key, problem in _label_problems(value)), "")
        case Check():
            return rule.problem(value) or ""
        case Each() if len(value) > rule.max_number:
            return f"{len(value)} items are more than {rule.max_number}"
        case Each():
            return next(filter(None, map(rule.problem, value)), "")
    return ""


def _label_problems(labels: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for key, value in labels.items():
        if problem := qualified_name_problem(key) or (LABEL_VALUE.problem(value) if value else None):
            yield key, problem


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _like(value: Any, bound: float) -> str:
    return str(type(value)(bound))
