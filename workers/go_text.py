"""Texts as Go prints them, for messages that people know from the kubelet."""

from __future__ import annotations

from typing import Final


def duration(seconds: int) -> str:
    """time.Duration.String for whole seconds: ``1s``, ``1m30s``, ``1h0m0s``."""
    minutes, rest = divmod(seconds, 60)
    if not minutes:
        return f"{rest}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{rest}s" if hours else f"{minutes}m{rest}s"


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


def join_host_port(host: str, port: int) -> str:
    """net.JoinHostPort: IPv6 addresses get brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
