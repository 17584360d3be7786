"""Objects as JSON and YAML documents, written as kubectl writes them (cli-runtime printers, json.go and yaml.go)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

Json = Mapping[str, Any]

_YAML_1_1_BOOLEANS: Final = ("y", "Y", "n", "N")
"""Other readers than PyYAML take them for booleans."""
_OTHER_LINE_BREAKS: Final = frozenset("\r\x85\u2028\u2029")
"""A block would make line feeds of them."""
_NO_WRAPPING: Final = 2**31


def as_list(items: Sequence[Json]) -> Json:
    """What kubectl makes of several objects: a v1 List, whose resourceVersion is empty."""
    return {"apiVersion": "v1", "items": list(items), "kind": "List", "metadata": {"resourceVersion": ""}}


def as_json(obj: Json) -> str:
    """Four spaces, keys in order."""
    return json.dumps(obj, indent=4, sort_keys=True, ensure_ascii=False) + "\n"


def as_yaml(obj: Json) -> str:
    """Two spaces, keys in order, lists not indented; text over several lines as a block, quotes double."""
    import yaml  # 30 ms that the other formats need not pay

    class Dumper(yaml.SafeDumper):
        """Go's choices where YAML leaves one."""

        def choose_scalar_style(self) -> str:
            style: str = super().choose_scalar_style()
            return '"' if style == "'" else style

    def represent_str(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        lines = "\n" in text and _OTHER_LINE_BREAKS.isdisjoint(text)
        style = "|" if lines else '"' if text in _YAML_1_1_BOOLEANS else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)

    Dumper.add_representer(str, represent_str)
    text: str = yaml.dump(
        obj, Dumper=Dumper, sort_keys=True, allow_unicode=True, default_flow_style=False, width=_NO_WRAPPING
    )
    return text
