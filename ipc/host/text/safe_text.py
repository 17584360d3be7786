"""Text from a container, an image, a registry, a manifest, a file's name or a client, made fit to be read by people.

Whoever writes such a text may want to steer a terminal, turn a line's direction around, forge a line of a log, or be
no Unicode at all. Every channel to people calls one function of this module once: the event recorder, the master's
texts about pods, the log's formatters, the links between processes, and what the command line prints. Pure; the work
is linear in the text, or in the maximum where there is one.

Nothing is dropped: a character that does not print becomes its escape, such as ``\\x1b``, as Go writes it.
That is done to bidirectional controls, zero-width and other format characters too.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

MAX_EVENT_BYTES: Final = 1024
"""Longest message of an event (upstream's API server refuses longer ones: NoteLengthLimit)."""


def escaped(char: str) -> str:
    """The character as ``\\n``, ``\\x1b``, ``\\u202e`` or ``\\U000e0001``, as strconv.Quote has it."""
    code = ord(char)
    if code < 0x80:
        return char.encode("unicode_escape").decode()
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def safe_line(text: str, max_bytes: int | None = None) -> str:
    """One line: what does not print is escaped; at most ``max_bytes`` in UTF-8. A safe line stays as it is."""
    return _safe(_NOT_IN_A_LINE, text, max_bytes)


def safe_text(text: str, max_bytes: int | None = None) -> str:
    """Make a text safe as `safe_line` does, but line feeds, tabs and spaces of any width stay."""
    return _safe(_NOT_IN_A_TEXT, text, max_bytes)


_NOT_IN_A_LINE: Final = re.compile(r"[^ -~]")
_NOT_IN_A_TEXT: Final = re.compile(r"[^ -~\n\t\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
"""Characters that may have to be escaped; all others stay."""


def _safe(pattern: re.Pattern[str], text: str, max_bytes: int | None) -> str:
    if text.isascii() and text.isprintable() and (max_bytes is None or len(text) <= max_bytes):
        return text  # as nearly all are
    made = pattern.sub(_shown, text if max_bytes is None else text[:max_bytes])
    return made if max_bytes is None else clipped(made, max_bytes)


def _shown(match: re.Match[str]) -> str:
    char = match[0]
    return char if char.isprintable() else escaped(char)


def clipped(text: str, max_bytes: int) -> str:
    """Longest beginning that takes at most ``max_bytes`` in UTF-8; characters that UTF-8 cannot carry become ``?``."""
    return text[:max_bytes].encode(errors="replace")[:max_bytes].decode(errors="ignore")


def clipped_end(data: bytes, max_bytes: int) -> str:
    """The end of it as text of at most ``max_bytes``: what is no UTF-8 is replaced, which must not make it longer."""
    text = data[-max_bytes:].decode(errors="replace").encode()
    return text[-max_bytes:].decode(errors="ignore")


def encodable_text(text: str) -> str:
    """The text, with lone surrogates escaped: they have no encoding."""
    return text.encode(errors="backslashreplace").decode()


def encodable(message: object) -> object:
    """A message that cannot be encoded for a lone surrogate in it, as plain values in which such are escaped."""
    return _encodable(msgspec.to_builtins(message, builtin_types=(bytes,)))


def _encodable(value: object) -> object:
    if isinstance(value, str):
        return encodable_text(value)
    if isinstance(value, dict):
        return {_encodable(key): _encodable(each) for key, each in value.items()}
    return [_encodable(each) for each in value] if isinstance(value, list | tuple) else value
