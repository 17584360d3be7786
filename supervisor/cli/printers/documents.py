"""Objects as documents: lists of several, JSON as kubectl writes it (cli-runtime printers, json.go), YAML on demand."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ipc.host.text.json_types import Json
from ipc.host.text.safe_text import safe_text


def as_list(items: Sequence[Json]) -> Json:
    """Several objects as kubectl prints them: a v1 List, whose resourceVersion is empty."""
    return {"apiVersion": "v1", "items": list(items), "kind": "List", "metadata": {"resourceVersion": ""}}


def as_json(obj: Json) -> str:
    """Four spaces, keys in order. What does not print is escaped: it reads back as it was."""
    document = json.dumps(obj, indent=4, sort_keys=True, ensure_ascii=False) + "\n"
    if safe_text(document) == document:
        return document
    # Such characters stand within quotes, where JSON knows escapes.
    return "".join(char if safe_text(char) == char else json.dumps(char).strip('"') for char in document)


def _as_yaml(obj: Json) -> str:
    """PyYAML takes 10 ms to import."""
    from supervisor.cli.printers.yaml_document import as_yaml

    return as_yaml(obj)


def _as_kyaml(obj: Json) -> str:
    from supervisor.cli.printers.kyaml_document import as_kyaml

    return as_kyaml(obj)


DOCUMENTS: Final[Mapping[str, Callable[[Json], str]]] = {"json": as_json, "yaml": _as_yaml, "kyaml": _as_kyaml}
"""By the name of the output."""
