"""YAML documents, built of the parser's events: without recursion, with a path for every error. Pure.

No error repeats a value, nor an alias or tag, as which a value without quotes may be read: it may be a Secret's.

A key that is no string becomes one, as in JSON (sigs.k8s.io/yaml, convertToJSONableObject).
"""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
import yaml

from supervisor.sources.documents.model import (
    MAX_DEPTH,
    MAX_SLOWLY_PARSED_CHARS,
    MAX_TAG_DIRECTIVES,
    MAX_VALUES,
    Document,
    DocumentError,
    cut,
)
from supervisor.sources.documents.scalars import resolve_plain

_GO_ESCAPES: Final = {**yaml.SafeLoader.ESCAPE_REPLACEMENTS, "'": "'"}
_GoLoader: Final[Any] = type("_GoLoader", (yaml.SafeLoader,), {"ESCAPE_REPLACEMENTS": _GO_ESCAPES})
"""PyYAML's own parser with the escapes of Go's (goyaml.v2/scannerc.go, yaml_parser_scan_flow_scalar)."""
_Loader: Final = getattr(yaml, "CSafeLoader", _GoLoader)
"""libyaml's parser where PyYAML was built with it: ten times faster, the same events, but for one escape."""

_UNKNOWN_ESCAPE: Final = "found unknown escape character"
_UNKNOWN_TAG: Final = "found undefined tag handle"
_TAB: Final = "is indented with a tab: YAML wants spaces"
_TAG_DIRECTIVE: Final = "%TAG"
_TAG_PREFIX: Final = "tag:yaml.org,2002:"
_TAG_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    f"{_TAG_PREFIX}bool": (bool,),
    f"{_TAG_PREFIX}int": (int,),
    f"{_TAG_PREFIX}float": (int, float),
    f"{_TAG_PREFIX}null": (type(None),),
}
_STRING_TAGS: Final = frozenset({"!", f"{_TAG_PREFIX}str"})
_COLLECTION_TAGS: Final = frozenset({None, "!", f"{_TAG_PREFIX}map", f"{_TAG_PREFIX}seq"})


class _Node(msgspec.Struct, frozen=True):
    """A finished value and what it weighs when its aliases are expanded."""

    value: Any
    size: int = 1
    depth: int = 0


class _Merge(msgspec.Struct, frozen=True):
    """Stands where a mapping has the key ``<<``."""

    def __str__(self) -> str:
        return "<<"


class _RefusedError(Exception):
    """This document is refused; those after it can still be read."""

    def __init__(self, field: str, line: int, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = f"line {line}: {message}"


def yaml_documents(text: str) -> Iterator[Document | DocumentError]:
    """Every document of a YAML stream, up to the first syntax error."""
    if text.count(_TAG_DIRECTIVE) > MAX_TAG_DIRECTIVES:
        yield DocumentError(0, "", f"more than {MAX_TAG_DIRECTIVES} times {_TAG_DIRECTIVE}")
        return
    number = 0
    builder = _Builder()
    events = _events(text)
    try:
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                number += 1
                builder = _Builder()
            elif isinstance(event, yaml.DocumentEndEvent):
                yield Document(number, builder.root)
            else:
                try:
                    builder.add(event)
                except _RefusedError as refused:
                    yield DocumentError(number, refused.field, refused.message)
                    _skip_document(events)
    except yaml.MarkedYAMLError as error:
        line = _line(error.problem_mark)
        message = f"line {line}: {_TAB if _is_indented_by_tab(text, line) else _problem(error)}"
        yield DocumentError(max(number, 1), "", message)
    except yaml.YAMLError as error:
        yield DocumentError(max(number, 1), "", str(error).splitlines()[0])


def _is_indented_by_tab(text: str, line: int) -> bool:
    """Whether there is a tab before the first other character of that line; lines count from 1."""
    found = next(itertools.islice(io.StringIO(text, newline=None), line - 1, line), "")
    return "\t" in found[: len(found) - len(found.lstrip())]


def _problem(error: yaml.MarkedYAMLError) -> str:
    """Without the handle of a tag, which only one of the two parsers tells."""
    problem: str = error.problem or "is not YAML"
    return _UNKNOWN_TAG if problem.startswith(_UNKNOWN_TAG) else problem


def _events(text: str) -> Iterator[yaml.Event]:
    """The parser's events up to the first that is nested too deeply: behind it parsing takes quadratic time."""
    depth = 0
    for event in _parsed(text):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise yaml.YAMLError(f"line {_line(event.start_mark)}: nested more than {MAX_DEPTH} levels deep")
        yield event


def _parsed(text: str) -> Iterator[yaml.Event]:
    """Where libyaml meets an escape that it does not know, the slow parser begins anew and goes on from there."""
    count = 0
    try:
        for event in yaml.parse(text, Loader=_Loader):
            yield event
            count += 1
        return
    except yaml.MarkedYAMLError as error:
        if error.problem != _UNKNOWN_ESCAPE or len(text) > MAX_SLOWLY_PARSED_CHARS:
            raise
    yield from itertools.islice(yaml.parse(text, Loader=_GoLoader), count, None)


def _line(mark: Any) -> int:
    """The line of a mark of either parser, counted from 1."""
    return mark.line + 1 if mark else 0


def _skip_document(events: Iterator[yaml.Event]) -> None:
    for event in events:
        if isinstance(event, yaml.DocumentEndEvent):
            return


class _Collection:
    """A sequence or mapping that is being read: its children in order (of a mapping: key, value, key, ...)."""

    def __init__(self, *, is_mapping: bool, anchor: str | None, line: int) -> None:
        self.is_mapping = is_mapping
        self.anchor = anchor
        self.line = line
        self.children: list[_Node] = []

    def expects_key(self) -> bool:
        return self.is_mapping and len(self.children) % 2 == 0

    def step(self) -> str:
        """Path of the child that is being read, from here."""
        if not self.is_mapping:
            return f"[{len(self.children)}]"
        return "" if self.expects_key() else f".{cut(str(self.children[-1].value))}"


class _Builder:
    """Makes one document of YAML events, without recursion."""

    def __init__(self) -> None:
        self.root: object = None
        self._open: list[_Collection] = []
        self._anchors: dict[str, _Node] = {}
        self._values = 0

    def add(self, event: yaml.Event) -> None:
        """Take the next event. Raises _RefusedError."""
        line = _line(event.start_mark)
        match event:
            case yaml.ScalarEvent():
                self._finish(_Node(self._scalar(event, line)), event.anchor, 1, line)
            case yaml.AliasEvent():
                target = self._anchors.get(str(event.anchor))
                if target is None:
                    raise self._refused(line, "unknown alias")
                self._finish(target, None, target.size, line)
            case yaml.CollectionStartEvent():
                self._start(event, line)
            case yaml.CollectionEndEvent():
                collection = self._open.pop()
                self._finish(self._fold(collection), collection.anchor, 1, collection.line)

    def _refused(self, line: int, message: str, below: str = "") -> _RefusedError:
        path = "".join(collection.step() for collection in self._open)
        return _RefusedError(f"{path}{below}".removeprefix("."), line, message)

    def _start(self, event: yaml.CollectionStartEvent, line: int) -> None:
        if event.tag not in _COLLECTION_TAGS:
            raise self._refused(line, "this tag is not supported")
        if self._open and self._open[-1].expects_key():
            raise self._refused(line, "a key must be a scalar")
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        self._open.append(_Collection(is_mapping=is_mapping, anchor=event.anchor, line=line))

    def _finish(self, node: _Node, anchor: str | None, new_values: int, line: int) -> None:
        """A value is complete: it goes into its collection and is known by its anchor. An alias brings all it holds."""
        self._values += new_values
        if self._values > MAX_VALUES:
            raise self._refused(line, f"more than {MAX_VALUES} values, aliases expanded")
        if anchor is not None:
            self._anchors[anchor] = node
        if self._open:
            self._open[-1].children.append(node)
        else:
            self.root = node.value

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> object:
        text: str = event.value
        if event.tag in _STRING_TAGS or (event.tag is None and not event.implicit[0]):
            return text
        if event.tag is None and text == "<<" and self._open and self._open[-1].expects_key():
            return _Merge()
        value = resolve_plain(text)
        if event.tag is not None and type(value) not in _TAG_TYPES.get(event.tag, ()):
            raise self._refused(line, "this tag is not supported here")
        if isinstance(value, float) and not math.isfinite(value):
            raise self._refused(line, "not a number that JSON can say")
        return value

    def _fold(self, collection: _Collection) -> _Node:
        children = collection.children
        depth = 1 + max((child.depth for child in children), default=0)
        if depth > MAX_DEPTH:
            raise self._refused(collection.line, f"nested more than {MAX_DEPTH} levels deep, aliases expanded")
        value = self._mapping(collection) if collection.is_mapping else [child.value for child in children]
        return _Node(value, 1 + sum(child.size for child in children), depth)

    def _mapping(self, collection: _Collection) -> dict[str, object]:
        """Own keys first: what is merged never replaces them, and of several merged mappings the first wins."""
        result: dict[str, object] = {}
        merged: list[dict[str, object]] = []
        children = collection.children
        for key, child in zip(children[::2], children[1::2], strict=True):
            if isinstance(key.value, _Merge):
                merged += self._merged(child.value, collection.line)
                continue
            name = self._key(key.value, collection.line)
            if name in result:
                raise self._refused(collection.line, "duplicate key", f".{cut(name)}")
            result[name] = child.value
        for mapping in merged:
            for name, value in mapping.items():
                result.setdefault(name, value)
        return result

    def _merged(self, value: Any, line: int) -> list[dict[str, Any]]:
        mappings: list[Any] = value if isinstance(value, list) else [value]
        if not all(isinstance(mapping, dict) for mapping in mappings):
            raise self._refused(line, "<< needs a mapping or a sequence of mappings")
        return mappings

    def _key(self, key: object, line: int) -> str:
        """A key as JSON has it (sigs.k8s.io/yaml, convertToJSONableObject)."""
        match key:
            case str():
                return key
            case bool():
                return str(key).lower()
            case int() | float():
                return str(key)
        raise self._refused(line, "a key must not be null or a collection")
