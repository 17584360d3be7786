"""The configuration as it is shown: the file's names and forms, and nothing that is a secret. Pure."""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from ipc.host.text.durations import format_duration
from ipc.host.text.json_types import Json, JsonObject
from supervisor.config.settings import Seconds, Settings

HIDDEN: Final = "--- HIDDEN ---"


def shown_settings(settings: Settings) -> str:
    """JSON of every setting, as `shown_mapping`."""
    return msgspec.json.encode(shown_mapping(settings)).decode()


def shown_mapping(settings: Settings) -> JsonObject:
    """Every setting; of the headers that fetch manifests (credentials, as a rule) only the names."""
    headers = {name: [HIDDEN] * len(values) for name, values in settings.static_pod_url_header.items()}
    shown = msgspec.structs.replace(
        settings, static_pod_url=shown_url(settings.static_pod_url), static_pod_url_header=headers
    )
    return shown_section(shown)


def flat_settings(settings: Settings) -> dict[str, str]:
    """Settings by dotted names; each value as one line of JSON, text as it is."""
    return dict(_flat(shown_mapping(settings), settings, ""))


def _flat(values: Json, section: msgspec.Struct, prefix: str) -> Iterator[tuple[str, str]]:
    for field in msgspec.structs.fields(section):
        value, below = values[field.encode_name], getattr(section, field.name)
        if isinstance(below, msgspec.Struct):
            yield from _flat(value, below, f"{prefix}{field.encode_name}.")
        else:
            yield prefix + field.encode_name, value if isinstance(value, str) else msgspec.json.encode(value).decode()


def shown_section(section: msgspec.Struct) -> JsonObject:
    """Names and values as the file has them."""
    return {
        field.encode_name: _shown(field.name, getattr(section, field.name)) for field in msgspec.structs.fields(section)
    }


def _shown(attribute: str, value: object) -> object:
    match value:
        case msgspec.Struct():
            return shown_section(value)
        case Path():
            return str(value)
        case Seconds():
            return str(value)
        case float() if attribute.endswith("_s"):
            return format_duration(value)
    return value


def shown_url(url: str) -> str:
    """The URL without what may be a password or a token."""
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
