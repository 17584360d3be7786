"""Texts as Go prints them, for messages that people know from the kubelet."""

from __future__ import annotations

from typing import Final

from ipc.host.text.safe_text import escaped


def quoted(text: str) -> str:
    """strconv.Quote: in quotation marks, on one line, nothing that does not print."""
    if text.isprintable():
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return '"' + "".join(_ESCAPES.get(char) or (char if char.isprintable() else escaped(char)) for char in text) + '"'


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


def head(text: bytes) -> str:
    """Bytes of an answer as text; bytes that are no UTF-8 are replaced."""
    return text.decode("utf-8", "replace")
