"""The grammar of Kubernetes' JSONPath templates (client-go util/jsonpath, parser.go).

No library of Python's has it: a template is text with paths in braces, and its paths know ranges, unions of dotted
keys, and keys with escaped dots.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

MAX_CHARS: Final = 64 * 1024
"""Longest template that is taken, in characters."""


class JsonPathError(ValueError):
    """A template that cannot be parsed, or that does not fit the object."""


class Text(msgspec.Struct, frozen=True):
    """Stands for itself."""

    value: str | int | float | bool


class Field(msgspec.Struct, frozen=True):
    """The value of a key."""

    name: str


class Wildcard(msgspec.Struct, frozen=True):
    """All values of a map, or all elements of a list."""


class Recursive(msgspec.Struct, frozen=True):
    """A value with everything below it that has something below it."""


class Slice(msgspec.Struct, frozen=True):
    """Elements of a list. Without a ``stop`` to its end, unless there is one ``index`` only."""

    start: int | None
    stop: int | None
    step: int | None
    is_index: bool = False


class Union(msgspec.Struct, frozen=True):
    """The values of each of these paths."""

    paths: tuple[Path, ...]


class Filter(msgspec.Struct, frozen=True):
    """Elements of a list of which a comparison holds, or in which a path finds something."""

    left: Path
    operator: str
    """``exists``, or what stands between the two."""
    right: Path


class Keyword(msgspec.Struct, frozen=True):
    """``range`` or ``end``."""

    name: str


Node = Text | Field | Wildcard | Recursive | Slice | Union | Filter | Keyword
Path = tuple[Node, ...]
"""Steps within one pair of braces, or one piece of text."""

_TEXT: Final = re.compile(r"[^{]+")
_FIELD: Final = re.compile(r"(?:\\.|[^\\\s.,\[\]$@{}])*", re.DOTALL)
_NUMBER: Final = re.compile(r"[+-]?[0-9.]*")
_WORD: Final = re.compile(r"[^\s.,\[\]$@{}]+")
_ARRAY: Final = re.compile(r"\[([^\]\n]*)\]")
_QUOTED: Final = {
    '"': re.compile(r'"((?:\\[^\n]|[^"\\\n])*)"'),
    "'": re.compile(r"'((?:\\[^\n]|[^'\\\n])*)'"),
}
_KEY: Final = re.compile(r"'([^']*)'")
_SLICE: Final = re.compile(r"(-?[0-9]*)(:-?[0-9]*)?(:-?[0-9]*)?")
_FILTER: Final = re.compile(r"\[\?\(((?:\"(?:\\[^\n]|[^\"\\\n])*\"|'(?:\\[^\n]|[^'\\\n])*'|[^\"')\n])*)\)\]")
_COMPARISON: Final = re.compile(r"([^!<>=]+)([!<>=~]+)(.+)", re.DOTALL)
_ESCAPE: Final = re.compile(
    r"\\(?:([abfnrtv\\'\"])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3}))|(\\)"
)
_SIMPLE: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def parse_template(text: str) -> tuple[Path, ...]:
    """Texts and paths of a template, in their order. Raises JsonPathError."""
    if len(text) > MAX_CHARS:
        raise JsonPathError(f"a template has at most {MAX_CHARS} characters")
    return _Parser(text).template()


def relaxed(text: str) -> str:
    """A path without its braces and its first dot, as one with both (kubectl pkg/cmd/get,
    RelaxedJSONPathExpression). Raises JsonPathError."""
    if not text:
        return text
    inner = text[1:-1] if text.startswith("{") and text.endswith("}") else text
    inner = inner.removeprefix(".")
    if not inner or "{" in inner or "}" in inner:
        raise JsonPathError(
            "unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{name1.name2}' or '{.name1.name2}'"
        )
    return f"{{.{inner}}}"


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def template(self) -> tuple[Path, ...]:
        pieces: list[Path] = []
        while self._at < len(self._text):
            if self._text[self._at] == "{":
                self._at += 1
                pieces.append(self._path())
            else:
                pieces.append((Text(self._take(_TEXT, "text")[0]),))
        return tuple(pieces)

    def _path(self) -> Path:
        """Up to the closing brace."""
        nodes: list[Node] = []
        while True:
            rest = self._text[self._at : self._at + 3]
            if not rest or rest[0] in "\r\n":
                raise JsonPathError("unclosed action")
            if rest[0] == "}":
                self._at += 1
                return tuple(nodes)
            if rest[0] in " @$":
                self._at += 1
            else:
                nodes += self._nodes(rest, nodes)

    def _nodes(self, rest: str, before: list[Node]) -> Path:
        if rest == "[?(":
            return (self._filter(),)
        if rest.startswith(".."):
            return self._recursive(before)
        if rest[0].isdigit() or rest[0] in "+-":
            return (self._number(),)
        parse = self._BY_FIRST.get(rest[0])
        if parse is not None:
            return parse(self)
        if rest[0].isalpha() or rest[0] == "_":
            return (self._word(),)
        raise JsonPathError(f"unrecognized character in action: U+{ord(rest[0]):04X} '{rest[0]}'")

    def _recursive(self, before: list[Node]) -> Path:
        if before and isinstance(before[-1], Recursive):
            raise JsonPathError("invalid multiple recursive descent")
        self._at += 2
        following = self._text[self._at : self._at + 1]
        if following.isalnum() or following == "_":
            return (Recursive(), *self._field_at())
        return (Recursive(),)

    def _field(self) -> Path:
        self._at += 1
        return self._field_at()

    def _field_at(self) -> Path:
        name = self._take(_FIELD, "field")[0]
        return (Wildcard(),) if name == "*" else (Field(name.replace("\\", "")),)

    def _number(self) -> Node:
        digits = self._take(_NUMBER, "number")[0]
        try:
            return Text(int(digits))
        except ValueError:
            pass  # then it is one with a fraction
        try:
            return Text(float(digits))
        except ValueError:
            raise JsonPathError(f"cannot parse number {digits}") from None

    def _word(self) -> Node:
        word = self._take(_WORD, "identifier")[0]
        return Text(word == "true") if word in ("true", "false") else Keyword(word)

    def _quoted(self) -> Path:
        found = _QUOTED[self._text[self._at]].match(self._text, self._at)
        if found is None:
            raise JsonPathError("unterminated quoted string")
        self._at = found.end()
        return (Text(unquoted(found[1])),)

    def _array(self) -> Path:
        found = _ARRAY.match(self._text, self._at)
        if found is None:
            raise JsonPathError("unterminated array")
        self._at = found.end()
        parts = found[1].split(",")
        if len(parts) == 1:
            return _index(found[1])
        return (Union(tuple(_index(part.strip(" ")) for part in parts)),)

    def _filter(self) -> Node:
        found = _FILTER.match(self._text, self._at)
        if found is None:
            raise JsonPathError("unterminated filter")
        self._at = found.end()
        comparison = _COMPARISON.fullmatch(found[1])
        if comparison is None:
            return Filter(_inner(found[1]), "exists", ())
        return Filter(_inner(comparison[1]), comparison[2], _inner(comparison[3]))

    def _take(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        found = pattern.match(self._text, self._at)
        if found is None:
            raise JsonPathError(f"no {what} at character {self._at}")
        self._at = found.end()
        return found

    _BY_FIRST: Final[Mapping[str, Callable[[_Parser], Path]]] = {
        "[": _array,
        '"': _quoted,
        "'": _quoted,
        ".": _field,
    }


def _inner(text: str) -> Path:
    """A path within another one."""
    pieces = _Parser(f"{{{text}}}").template()
    if len(pieces) != 1:
        raise JsonPathError(f"not a path: {text}")
    return pieces[0]


def _index(text: str) -> Path:
    """Parse the inside of brackets: a key, an index, or a slice."""
    if text == "*":
        text = ":"
    if key := _KEY.fullmatch(text):
        return _inner(f".{key[1]}")
    found = _SLICE.fullmatch(text)
    if found is None:
        raise JsonPathError(f"invalid array index {text}")
    start, stop, step = (part and part.removeprefix(":") for part in found.groups())
    try:
        return (Slice(_integer(start), _integer(stop), _integer(step), is_index=found[2] is None),)
    except ValueError:
        raise JsonPathError(f"array index {text} is not a number") from None


def _integer(text: str | None) -> int | None:
    return int(text) if text else None


def unquoted(text: str) -> str:
    """Go's escapes replaced (UnquoteExtend). Raises JsonPathError for others."""

    def char(found: re.Match[str]) -> str:
        simple, two, four, eight, octal, bare = found.groups()
        if bare:
            raise JsonPathError(f"unquote string {text} error invalid syntax")
        if simple:
            return _SIMPLE.get(simple, simple)
        return chr(int(octal, 8) if octal else int(two or four or eight, 16))

    try:
        return _ESCAPE.sub(char, text)
    except (ValueError, OverflowError):
        raise JsonPathError(f"unquote string {text} error invalid syntax") from None
