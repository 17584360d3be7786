"""Objects as documents: lists of several, and JSON as kubectl writes it (cli-runtime printers, json.go)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ipc.text.safe_text import safe_text

Json = Mapping[str, Any]


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
