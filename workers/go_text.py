"""Texts as Go prints them, for messages that people know from the kubelet."""

from __future__ import annotations

from typing import Final


def quoted(text: str) -> str:
    """strconv.Quote: in quotation marks, on one line, nothing that does not print."""
    return '"' + "".join(_ESCAPES.get(char) or _printable(char) for char in text) + '"'


_ESCAPES: Final = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def _printable(char: str) -> str:
    if char.isprintable():
        return char
    if ord(char) < 0x80:
        return f"\\x{ord(char):02x}"
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"


def head(text: bytes) -> str:
    """What was answered, as text."""
    return text.decode("utf-8", "replace")
