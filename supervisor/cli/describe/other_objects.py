"""Descriptions of objects of which there is little to say (kubectl pkg/describe)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from ipc.host.text.json_types import Json
from ipc.k8s.resources.times import NONE
from supervisor.cli.describe.lines import aligned, label_lines, pair_lines

_WORD: Final = re.compile(r"[A-Z]+s?(?=[A-Z][a-z]|$)|[A-Z]?[a-z0-9]+|[A-Z]+")
_ACRONYMS: Final = {word.lower(): word for word in ("API", "URL", "UID", "OSB", "GUID")}
_HIDDEN: Final = frozenset(("managedFields",))


def describe_namespace(found: Json) -> str:
    """Everything about a Namespace (describeNamespace)."""
    meta = found["metadata"]
    lines = [
        f"Name:\t{meta['name']}",
        *label_lines(meta.get("labels", {})),
        f"Annotations:\t{NONE}",
        f"Status:\t{found['status']['phase']}",
        "",
        "No resource quota.",
        "",
        "No LimitRange resource.",
    ]
    return aligned(lines)


def describe_event(found: Json) -> str:
    """Everything about an Event, field by field."""
    return describe_fields(found)


def describe_worker(found: Json) -> str:
    """Everything about a process of the agent, field by field."""
    return describe_fields(found)


def describe_fields(found: Json) -> str:
    """Name, namespace, labels and annotations, then every other field under a title made of its name
    (genericDescriber)."""
    meta = found["metadata"]
    lines = [f"Name:\t{meta['name']}", f"Namespace:\t{meta.get('namespace', '')}"]
    for title, pairs in (("Labels", meta.get("labels")), ("Annotations", meta.get("annotations"))):
        lines += pair_lines(title, pairs or {})
    rest = {key: value for key, value in found.items() if key != "metadata"}
    return aligned([*lines, *_fields(rest, 0)])


def _fields(found: Json, depth: int) -> Iterator[str]:
    for key in sorted(set(found) - _HIDDEN):
        value, title = found[key], f"{'  ' * depth}{smart_label(key)}:"
        match value:
            case Mapping():
                yield title
                yield from _fields(value, depth + 1)
            case list():
                yield title
                yield from _elements(value, depth + 1)
            case _:
                yield f"{title}\t{_scalar(value)}"


def _elements(values: list[object], depth: int) -> Iterator[str]:
    for value in values:
        if isinstance(value, Mapping):
            yield from _fields(value, depth)
        else:
            yield f"{'  ' * depth}{_scalar(value)}"


def _scalar(value: object) -> str:
    if value is None:
        return NONE
    return str(value).lower() if isinstance(value, bool) else str(value)


def smart_label(field: str) -> str:
    """``respectPDBs`` as ``Respect PDBs``, ``apiURL`` as ``API URL`` (smartLabelFor)."""
    if not field[:1].islower():
        return field
    words = _WORD.findall(field)
    return " ".join(_ACRONYMS.get(word.lower(), word[:1].upper() + word[1:]) for word in words)
