"""JSON values as YAML in blocks: as PyYAML writes them when told to quote doubly, in a tenth of its time.

Its emitter looks at each character in Python and knows all of YAML. These documents need mappings with their keys in
order, sequences that are not indented, and three styles of text: plain, quoted, and literal blocks. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ipc.text.gofmt import quoted
from ipc.text.safe_text import safe_text

MAX_SIMPLE_KEY_CHARS: Final = 127
"""A longer key stands behind a question mark (yaml.emitter, check_simple_key)."""

_CASELESS: Final = ("yes", "no", "true", "false", "on", "off", "null", "y", "n")
_WORDS: Final = frozenset(
    ("~", "<<", "=", "", *_CASELESS, *(word.capitalize() for word in _CASELESS), *(word.upper() for word in _CASELESS))
)
"""Texts that readers of YAML 1.1 take for something else."""
_NUMBER_OR_TIME: Final = re.compile(
    r"[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*(:[0-5]?[0-9])*)"
    r"|([-+]?[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)([eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+\.[0-9_]*"
    r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(\.[0-9]*)?"
    r"([ \t]*(Z|[-+][0-9]{1,2}(:[0-9]{2})?))?"
)
_NOT_PLAIN: Final = re.compile(r"\A(?:[ #,\[\]{}&*!|>'\"%@`]|[-?:](?: |\Z)|---|\.\.\.)|:(?: |\Z)| #| \Z|[\t\n]")
"""Begins like something else than a text, or ends one (yaml.emitter, analyze_scalar)."""
_NOT_LITERAL: Final = re.compile(r"\t| \n| \Z")


def as_yaml(value: Any) -> str:
    """A document of dicts, lists, texts, numbers, booleans and None: it reads back as it was. What does not print is
    escaped, in quotes."""
    return "".join(f"{line}\n" for line in _lines(value))


def _lines(value: Any) -> Iterator[str]:
    """The value as a block that begins in the first column."""
    if isinstance(value, Mapping) and value:
        for key in sorted(value):
            yield from _entry(key, value[key])
    elif isinstance(value, list | tuple) and value:
        for item in value:
            yield from _behind("- ", _lines(item))
    elif isinstance(value, str) and "\n" in value and _is_literal(value):
        yield from _literal(value)
    else:
        yield _scalar(value)


def _entry(key: str, value: Any) -> Iterator[str]:
    name = _scalar(key)
    if not 0 < len(key) <= MAX_SIMPLE_KEY_CHARS:
        yield f"? {name}"
        yield from _behind(": ", _lines(value))
    elif isinstance(value, Mapping) and value:
        yield f"{name}:"
        yield from map(_indented, _lines(value))
    elif isinstance(value, list | tuple) and value:
        yield f"{name}:"
        yield from _lines(value)
    else:
        first, *rest = _lines(value)
        yield f"{name}: {first}"
        yield from map(_indented, rest)


def _behind(mark: str, lines: Iterable[str]) -> Iterator[str]:
    """A block whose first line stands behind a mark of two characters."""
    first, *rest = lines
    yield mark + first
    yield from map(_indented, rest)


def _indented(line: str) -> str:
    return f"  {line}" if line else line


def _scalar(value: Any) -> str:
    match value:
        case str():
            return value if _is_plain(value) else quoted(value)
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case float():
            return _float(value)
        case int():
            return str(value)
    return "{}" if isinstance(value, Mapping) else "[]"


def _float(value: float) -> str:
    """With the dot that YAML 1.1 wants before an exponent (yaml.representer, represent_float)."""
    text = repr(value)
    return text if "." in text else text.replace("e", ".0e")


def _is_plain(text: str) -> bool:
    if text in _WORDS or _NOT_PLAIN.search(text) or _NUMBER_OR_TIME.fullmatch(text):
        return False
    return (text.isascii() and text.isprintable()) or safe_text(text) == text


def _is_literal(text: str) -> bool:
    return safe_text(text) == text and not _NOT_LITERAL.search(text)


def _literal(text: str) -> Iterator[str]:
    """Line by line; the head says how far they are indented where that cannot be seen, and how the text ends."""
    body = text.removesuffix("\n")
    ends = "-" if body == text else "+" if body.endswith("\n") or not body else ""
    yield "|" + ("2" if text[0] in " \n" else "") + ends
    yield from body.split("\n")
