"""From the bytes of a manifest to plain data: YAML or JSON, one document or many. Pure.

Content that begins with ``{`` is JSON, everything else YAML, whatever the file's name (apimachinery
pkg/util/yaml/decoder.go, ToJSON). YAML scalars mean what they mean to Kubernetes (sigs.k8s.io/yaml,
goyaml.v2/resolve.go): ``yes``, ``on`` and ``y`` are booleans, ``0644`` and ``0o644`` are octal, ``1e3`` is a number,
``12:30`` and ``2024-01-01`` are strings, and a key that is no string becomes one.

On purpose stricter than upstream: a duplicate key is an error, so is a tag other than YAML's own scalars, a number that
JSON cannot say, and anything above one of the maxima below. Aliases share their value, so that a file which expands to
billions of values costs no memory before it is refused.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
import yaml

MAX_DOCUMENTS: Final = 1_000
"""Most documents in one file."""
MAX_VALUES: Final = 200_000
"""Most values in one document, aliases expanded. Also bounds what merge keys copy."""
MAX_DEPTH: Final = 64
"""Deepest nesting of one document, in levels, aliases expanded."""
MAX_SHOWN_CHARS: Final = 64
"""Longest piece of a manifest that an error repeats, in characters."""

_Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's parser where PyYAML was built with it: ten times faster, the same events."""

_WORDS: Final[Mapping[str, bool | None]] = {
    spelling: value
    for word, value in {
        "y": True,
        "yes": True,
        "true": True,
        "on": True,
        "n": False,
        "no": False,
        "false": False,
        "off": False,
        "null": None,
        "~": None,
        "": None,
    }.items()
    for spelling in (word, word.capitalize(), word.upper())
}
_INTEGER: Final = re.compile(r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_BASES: Final = (16, 2, 8, 10)
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_INFINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_MAX_INTEGER: Final = 2**64 - 1
_MIN_INTEGER: Final = -(2**63)
_MAX_NUMBER_CHARS: Final = 64
_BETWEEN_JSON: Final = re.compile(r"(?:\s|---(?=\s|$))*")

_TAG_PREFIX: Final = "tag:yaml.org,2002:"
_TAG_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    f"{_TAG_PREFIX}bool": (bool,),
    f"{_TAG_PREFIX}int": (int,),
    f"{_TAG_PREFIX}float": (int, float),
    f"{_TAG_PREFIX}null": (type(None),),
}
_STRING_TAGS: Final = frozenset({"!", f"{_TAG_PREFIX}str"})
_COLLECTION_TAGS: Final = frozenset({None, "!", f"{_TAG_PREFIX}map", f"{_TAG_PREFIX}seq"})


class Document(msgspec.Struct, frozen=True):
    """One readable document; ``value`` is what JSON can say, never None."""

    number: int
    """Counted from 1, empty documents included."""
    value: Any


class DocumentError(msgspec.Struct, frozen=True):
    """Why a document, or what follows it, cannot be read."""

    number: int
    """The document, counted from 1; 0 is the file as a whole."""
    field: str
    message: str


class DocumentsRead(msgspec.Struct, frozen=True):
    """What could be read of a file, and what could not. Empty documents are left out."""

    documents: tuple[Document, ...] = ()
    errors: tuple[DocumentError, ...] = ()


def read_documents(data: bytes) -> DocumentsRead:
    """Every document of a file. After a syntax error the rest of the file is unknown; other errors end one document."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = f"byte 0x{data[error.start]:02x} at offset {error.start}"
        return DocumentsRead(errors=(DocumentError(0, "", f"is not UTF-8 text: {where}"),))
    found = _json_documents(text) if text.lstrip()[:1] == "{" else _yaml_documents(text)
    documents, errors = [], []
    for item in found:
        if isinstance(item, DocumentError):
            errors.append(item)
        elif item.number > MAX_DOCUMENTS:
            errors.append(DocumentError(item.number, "", f"more than {MAX_DOCUMENTS} documents in one file"))
            break
        elif item.value is not None:
            documents.append(item)
    return DocumentsRead(tuple(documents), tuple(errors))


# --- JSON -------------------------------------------------------------------------------------------------------


def _json_documents(text: str) -> Iterator[Document | DocumentError]:
    """JSON objects one after the other, with or without ``---`` between them."""
    number, position = 0, _skip(text, 0)
    while position < len(text):
        number += 1
        duplicates: list[str] = []
        try:
            value, position = _json_decoder(duplicates).raw_decode(text, position)
        except json.JSONDecodeError as error:
            yield DocumentError(number, "", f"line {error.lineno}: {error.msg}")
            return
        except (ValueError, RecursionError) as error:
            yield DocumentError(number, "", "nested too deeply" if isinstance(error, RecursionError) else str(error))
            return
        position = _skip(text, position)
        problem = f"duplicate key {_cut(duplicates[0])}" if duplicates else _too_large(value)
        yield DocumentError(number, "", problem) if problem else Document(number, value)


def _skip(text: str, position: int) -> int:
    match = _BETWEEN_JSON.match(text, position)
    return match.end() if match else position


def _json_decoder(duplicates: list[str]) -> json.JSONDecoder:
    """A strict decoder that adds the keys which occur twice in one object to ``duplicates``."""

    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in pairs:
            if key in result:
                duplicates.append(key)
            result[key] = value
        return result

    return json.JSONDecoder(object_pairs_hook=mapping, parse_int=_integer, parse_float=_finite, parse_constant=_finite)


def _integer(text: str) -> int | float:
    return _finite(text) if len(text) > _MAX_NUMBER_CHARS else _integer_or_float(int(text))


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{_cut(text)} is not a number that JSON can say")
    return value


def _too_large(value: object) -> str:
    """Why a JSON value is above a maximum; empty when it is not."""
    level, count, depth = [value], 0, 0
    while level:
        count += len(level)
        depth += 1
        if count > MAX_VALUES:
            return f"more than {MAX_VALUES} values"
        if depth > MAX_DEPTH:
            return f"nested more than {MAX_DEPTH} levels deep"
        level = [child for item in level for child in _children(item)]
    return ""


def _children(value: object) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


# --- YAML -------------------------------------------------------------------------------------------------------


class _Node(msgspec.Struct, frozen=True):
    """A finished value and what it weighs when its aliases are expanded."""

    value: Any
    size: int = 1
    depth: int = 0


class _Merge(msgspec.Struct, frozen=True):
    """Stands where a mapping has the key ``<<``."""


class _RefusedError(Exception):
    """This document is refused; those after it can still be read."""

    def __init__(self, field: str, line: int, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = f"line {line}: {message}"


def _yaml_documents(text: str) -> Iterator[Document | DocumentError]:
    number = 0
    builder = _Builder()
    events = iter(yaml.parse(text, Loader=_Loader))
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
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        yield DocumentError(max(number, 1), "", f"{line}{error.problem or 'is not YAML'}")
    except yaml.YAMLError as error:
        yield DocumentError(max(number, 1), "", str(error).splitlines()[0])


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
        return "" if self.expects_key() else f".{_cut(str(self.children[-1].value))}"


class _Builder:
    """Makes one document of YAML events, without recursion."""

    def __init__(self) -> None:
        self.root: Any = None
        self._open: list[_Collection] = []
        self._anchors: dict[str, _Node] = {}
        self._values = 0

    def add(self, event: yaml.Event) -> None:
        """Take the next event. Raises _RefusedError."""
        line = event.start_mark.line + 1
        match event:
            case yaml.ScalarEvent():
                self._finish(_Node(self._scalar(event, line)), event.anchor, 1, line)
            case yaml.AliasEvent():
                target = self._anchors.get(event.anchor)
                if target is None:
                    raise self._refused(line, f"unknown alias *{_cut(event.anchor)}")
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
            raise self._refused(line, f"tag {_cut(event.tag)} is not supported")
        if self._open and self._open[-1].expects_key():
            raise self._refused(line, "a key must be a scalar")
        if len(self._open) >= MAX_DEPTH:
            raise self._refused(line, f"nested more than {MAX_DEPTH} levels deep")
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

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> Any:
        text: str = event.value
        if event.tag in _STRING_TAGS or (event.tag is None and not event.implicit[0]):
            return text
        if event.tag is None and text == "<<" and self._open and self._open[-1].expects_key():
            return _Merge()
        value = resolve_plain(text)
        if event.tag is not None and type(value) not in _TAG_TYPES.get(event.tag, ()):
            raise self._refused(line, f"tag {_cut(event.tag)} is not supported here")
        if isinstance(value, float) and not math.isfinite(value):
            raise self._refused(line, f"{_cut(text)} is not a number that JSON can say")
        return value

    def _fold(self, collection: _Collection) -> _Node:
        children = collection.children
        depth = 1 + max((child.depth for child in children), default=0)
        if depth > MAX_DEPTH:
            raise self._refused(collection.line, f"nested more than {MAX_DEPTH} levels deep, aliases expanded")
        value = self._mapping(collection) if collection.is_mapping else [child.value for child in children]
        return _Node(value, 1 + sum(child.size for child in children), depth)

    def _mapping(self, collection: _Collection) -> dict[str, Any]:
        """Own keys first: what is merged never replaces them, and of several merged mappings the first wins."""
        result: dict[str, Any] = {}
        merged: list[dict[str, Any]] = []
        children = collection.children
        for key, child in zip(children[::2], children[1::2], strict=True):
            if isinstance(key.value, _Merge):
                merged += self._merged(child.value, collection.line)
                continue
            name = self._key(key.value, collection.line)
            if name in result:
                raise self._refused(collection.line, "duplicate key", f".{_cut(name)}")
            result[name] = child.value
        for mapping in merged:
            result = {**mapping, **result}
        return result

    def _merged(self, value: object, line: int) -> list[dict[str, Any]]:
        mappings = value if isinstance(value, list) else [value]
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


def resolve_plain(text: str) -> bool | int | float | str | None:
    """What a scalar without quotes and tag means (goyaml.v2/resolve.go, resolve). `.inf` and `.nan` are given as such."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    if _INFINITE.fullmatch(text):
        return math.nan
    plain = text if text[0] == "." else text.replace("_", "")
    if len(plain) > _MAX_NUMBER_CHARS:
        return text
    if match := _INTEGER.fullmatch(plain):
        digits, base = next(
            (digits, base) for digits, base in zip(match.groups()[1:], _BASES, strict=True) if digits is not None
        )
        return _integer_or_float(int(match[1] + digits, base))
    if _FLOAT.fullmatch(plain) and math.isfinite(value := float(plain)):
        # Go prints a whole float without a fraction: `1e3` is good for an integer field.
        return int(value) if value.is_integer() and abs(value) < -_MIN_INTEGER else value
    return text


def _integer_or_float(value: int) -> int | float:
    """Go's integers have 64 bits; what is longer is a float to it, and no integer field takes that."""
    return value if _MIN_INTEGER <= value <= _MAX_INTEGER else float(value)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}…"
