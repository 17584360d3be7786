"""Objects as JSON and YAML documents, written as kubectl writes them (cli-runtime printers, json.go and yaml.go)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

Json = Mapping[str, Any]


def as_list(items: Sequence[Json]) -> Json:
    """What kubectl makes of several objects: a v1 List, whose resourceVersion is empty."""
    return {"apiVersion": "v1", "items": list(items), "kind": "List", "metadata": {"resourceVersion": ""}}


def as_json(obj: Json) -> str:
    """Four spaces, keys in order."""
    return json.dumps(obj, indent=4, sort_keys=True, ensure_ascii=False) + "\n"


def as_yaml(obj: Json) -> str:
    """Two spaces, keys in order, lists not indented."""
    import yaml  # 30 ms that the other formats need not pay

    text: str = yaml.safe_dump(obj, sort_keys=True, allow_unicode=True, default_flow_style=False, width=2**31)
    return text
