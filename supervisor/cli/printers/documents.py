"""Objects as JSON and YAML documents, written as kubectl writes them (cli-runtime printers, json.go and yaml.go)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ipc.text.safe_text import escaped, safe_text

Json = Mapping[str, Any]

_YAML_1_1_BOOLEANS: Final = ("y", "Y", "n", "N")
"""Other readers than PyYAML take them for booleans."""
_NO_WRAPPING: Final = 2**31


def as_list(items: Sequence[Json]) -> Json:
    """Several objects as kubectl prints them: a v1 List, whose resourceVersion is empty."""
    return {"apiVersion": "v1", "items": list(items), "kind": "List", "metadata": {"resourceVersion": ""}}


def as_json(obj: Json) -> str:
    """Four spaces, keys in order. What does not print is escaped: it reads back as it was."""
    import json

    return _escaped(json.dumps(obj, indent=4, sort_keys=True, ensure_ascii=False), json.dumps) + "\n"


def as_yaml(obj: Json) -> str:
    """Two spaces, keys in order, lists not indented; text over several lines as a block, quotes double. What does not
    print is escaped, in quotes: it reads back as it was."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Go's choices where YAML leaves one."""

        def choose_scalar_style(self) -> str:
            style: str = super().choose_scalar_style()
            return '"' if style == "'" else style

    def represent_str(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        is_safe = safe_text(text) == text
        style = '"' if text in _YAML_1_1_BOOLEANS or not is_safe else "|" if "\n" in text else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)

    Dumper.add_representer(str, represent_str)
    text: str = yaml.dump(
        obj, Dumper=Dumper, sort_keys=True, allow_unicode=True, default_flow_style=False, width=_NO_WRAPPING
    )
    return _escaped(text, escaped)


def _escaped(document: str, escape: Callable[[str], str]) -> str:
    """The document without characters that would steer a terminal: they stand within quotes, where both formats know
    escapes."""
    if safe_text(document) == document:
        return document
    return "".join(char if safe_text(char) == char else escape(char).strip('"') for char in document)
