"""JSON values as KYAML, as kubectl 1.34 and newer show them (KEP-5295, sigs.k8s.io/yaml/kyaml). Pure, linear.

A subset of YAML in flow style: every text stands in double quotes, a key only where it could be read as something
else; no space counts. Other than upstream what steers a terminal is escaped, and a line that begins with an odd space
reads back as it was.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ipc.host.text.json_types import Json
from ipc.host.text.safe_text import safe_text
from supervisor.cli.printers.yaml_scalars import written_number

HEADER: Final = "---\n"
"""Tells KYAML from JSON that is wrong."""
STEP: Final = "  "
_FOLD: Final = "\\\n"
"""The line goes on in the next one, behind its spaces."""
_ESCAPES: Final[Mapping[str, str]] = {
    "\0": "\\0",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\r": "\\r",
    "\v": "\\v",
    "\x1b": "\\e",
    '"': '\\"',
    "\\": "\\\\",
    "\x85": "\\N",
    "\xa0": "\\_",
    "\u2028": "\\L",
    "\u2029": "\\P",
}
_ESCAPED: Final = re.compile(r'["\\]|[^ -~]')
_WORDS: Final = frozenset(
    ["null", "true", "false", "t", "f", "y", "n", "yes", "no", "on", "off", "inf", "infinity", "nan"]
)
"""Keys that a reader takes for null, a boolean or a number, whatever their case."""
_NUMBER: Final = re.compile(
    r"""(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?
      | 0[xX][0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?(?:[pP][-+]?[0-9]+)? | 0[oO][0-7]+ | 0[bB][01]+""",
    re.VERBOSE,
)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}")
_INNER: Final = frozenset("-./")
"""Beside letters, numbers and underscores these stand in a key without quotes, but not at its ends."""

Write = Callable[[str], None]


def as_kyaml(obj: Json) -> str:
    """A document: it reads back as it was, but for halves of surrogate pairs."""
    parts = [HEADER]
    _write(parts.append, obj, "")
    return "".join((*parts, "\n"))


def _write(write: Write, value: object, margin: str) -> None:
    """Write a value into the line begun; its further lines stand behind the margin."""
    if isinstance(value, str):
        write(_text(value, margin + STEP))
    elif isinstance(value, dict) and value:
        _write_mapping(write, value, margin)
    elif isinstance(value, list) and value:
        _write_sequence(write, value, margin)
    else:
        write("{}" if isinstance(value, dict) else "[]" if isinstance(value, list) else written_number(value))


def _write_mapping(write: Write, mapping: Json, margin: str) -> None:
    inner = margin + STEP
    write("{\n")
    for key in sorted(mapping):
        write(f"{inner}{_key(key)}: ")
        _write(write, mapping[key], inner)
        write(",\n")
    write(f"{margin}}}")


def _write_sequence(write: Write, sequence: Sequence[object], margin: str) -> None:
    """Mappings and sequences share the lines of their brackets."""
    if all(isinstance(value, dict | list) for value in sequence):
        write("[")
        for number, value in enumerate(sequence):
            write(", " if number else "")
            _write(write, value, margin)
        write("]")
        return
    write("[\n")
    for value in sequence:
        write(margin + STEP)
        _write(write, value, margin + STEP)
        write(",\n")
    write(f"{margin}]")


def _key(key: str) -> str:
    return f'"{_escaped(key, is_folded=False)}"' if _needs_quotes(key) else key


def _needs_quotes(key: str) -> bool:
    plain = key.replace("_", "")
    if not key or key.lower() in _WORDS or _NUMBER.fullmatch(plain) or _DATE.fullmatch(key):
        return True
    if key[0] in _INNER or key[-1] in _INNER:
        return True
    return not all(char == "_" or char in _INNER or unicodedata.category(char)[0] in "LN" for char in key)


def _text(text: str, margin: str) -> str:
    """A text of several lines has one of the document for each, which begin behind the margin and a space."""
    if "\n" not in text:
        return f'"{_escaped(text, is_folded=True)}"'
    lines = text.split("\n")
    rest = lines.pop()
    folded = [f"{_line(line, margin)}\\n{_FOLD}" for line in lines]
    if rest:
        folded.append(f"{_line(rest, margin)}{_FOLD}")
    return "".join(('"', _FOLD, *folded, margin, '"'))


def _line(line: str, margin: str) -> str:
    """A space at its begin is kept."""
    begun = "\\" if line.startswith((" ", "\t")) else " "
    return f"{margin}{begun}{_escaped(line, is_folded=True)}"


def _escaped(text: str, *, is_folded: bool) -> str:
    writable = text if text.isascii() else text.encode(errors="replace").decode()
    found = _ESCAPED.sub(_escape, writable)
    return found if is_folded else found.replace("\t", "\\t")


def _escape(found: re.Match[str]) -> str:
    char = found[0]
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char == "\t" or (char > "\x9f" and char.isprintable() and safe_text(char) == char):
        return char
    code = ord(char)
    if code < 0x80:
        return "\\n" if char == "\n" else f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
