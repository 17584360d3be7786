"""The sequence of keys that leaves an attached container alone, as Docker and kubectl write it. Pure."""

from __future__ import annotations

from typing import Final

_CTRL: Final = "ctrl-"
_AFTER_CTRL: Final = "@abcdefghijklmnopqrstuvwxyz[\\]^_"
"""In the order of their control characters, from NUL on."""


def parse_detach_keys(text: str) -> bytes:
    """``ctrl-p,ctrl-q``, or plain characters between the commas (moby/term, ascii.go). Raises ValueError."""
    return bytes(map(_key, text.split(","))) if text else b""


def _key(word: str) -> int:
    if len(word) == 1 and word.isascii():
        return ord(word)
    name = word.removeprefix(_CTRL)
    if word.startswith(_CTRL) and len(name) == 1 and name.lower() in _AFTER_CTRL:
        return _AFTER_CTRL.index(name.lower())
    raise ValueError(f"unknown key {word!r}: one character, or ctrl- and one of {_AFTER_CTRL}")


class KeyFilter:
    """Filter of typed bytes that takes out the detach sequence; its beginning is held back until it is clear what it
    is."""

    def __init__(self, sequence: bytes) -> None:
        self._sequence = sequence
        self._held = b""
        self.detached = False

    def feed(self, data: bytes) -> bytes:
        """Bytes that go on to the container; nothing more once the sequence was typed."""
        if not self._sequence:
            return data
        data = self._held + data
        found = data.find(self._sequence)
        if found >= 0:
            self.detached, self._held = True, b""
            return data[:found]
        held = next(n for n in range(len(self._sequence) - 1, -1, -1) if data.endswith(self._sequence[:n]))
        self._held = data[len(data) - held :]
        return data[: len(data) - held]
