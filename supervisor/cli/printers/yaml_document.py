"""JSON values as YAML in blocks, as kubectl shows them: written by libyaml, quoted as go-yaml does. Pure.

libyaml is in PyYAML's wheels. Without it the same is written by PyYAML's own emitter, in ten times the time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import yaml

from ipc.text.safe_text import safe_text

ONE_LINE: Final = 2**31 - 1
"""Characters of a line that is never folded."""
_TEXT: Final = "tag:yaml.org,2002:str"
_END: Final = "\n...\n"
"""Mark of the end of a document; within a text it is indented."""
_SHORT_BOOLEANS: Final = frozenset(("y", "Y", "n", "N"))
"""YAML 1.1 has them, PyYAML reads them as texts."""


_resolve: Callable[[type[yaml.Node], str, tuple[bool, bool]], str] = yaml.resolver.Resolver().resolve


@functools.lru_cache(maxsize=4096)
def _tag_of(text: str, implicit: tuple[bool, bool]) -> str:
    """As what a plain text reads. Of most texts there are many of the same."""
    return _resolve(yaml.ScalarNode, text, implicit)


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Texts that would read as something else are quoted doubly; which of the others are quoted the emitter knows."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        writable = text if text.isascii() else text.encode(errors="replace").decode()
        node: yaml.ScalarNode = self.represent_scalar(_TEXT, writable, _style_of(text))
        return node

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        tag: str = _tag_of(value, implicit) if kind is yaml.ScalarNode else super().resolve(kind, value, implicit)
        return tag

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(str, _Dumper.represent_text)


def as_yaml(value: Any) -> str:
    """A document of dicts, lists, texts, numbers, booleans and None: it reads back as it was, but for halves of
    surrogate pairs. Where something does not print, all that is not ASCII is escaped."""
    written = _dump(value, allow_unicode=True)
    return written if safe_text(written) == written else _dump(value, allow_unicode=False)


def _style_of(text: str) -> str | None:
    if "\n" in text:
        return "|"
    return '"' if text in _SHORT_BOOLEANS or _tag_of(text, (True, False)) != _TEXT else None


def _dump(value: Any, *, allow_unicode: bool) -> str:
    """The mark at the end of a document that ends in empty lines is left out: nothing follows."""
    text: str = yaml.dump(value, Dumper=_Dumper, allow_unicode=allow_unicode, default_flow_style=False, width=ONE_LINE)
    return text.removesuffix(_END) + "\n" if text.endswith(_END) else text
