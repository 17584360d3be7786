"""Texts without the values of Secrets: what a container, a registry or Podman says may repeat them. Pure.

A value is found wherever it stands as a whole: as it is, in base64 of both alphabets (also as a part of what was
encoded, and with line breaks in between), URL-quoted, and as JSON and Go quote it, once or twice. A text that was cut
may end within a value; it loses so much more at the cut that nothing of it is left.

The work is linear in the values once, and in the text each time, whatever both are made of: values are cut into blocks
of `BLOCK_BYTES`, which lie in sets, and the text is looked up block by block. Blocks of a value cover all of it; that a
text which has only a part of a long value loses that part too is welcome.
"""

from __future__ import annotations

import base64
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from ipc.host.text.json_types import UNDECODABLE
from ipc.k8s.api.v1.config_objects import Secret

MIN_VALUE_CHARS: Final = 4
"""Shorter values are left: they turn up in any text, and a hint at where they stood would tell them."""
BLOCK_BYTES: Final = 16
"""Longer values are found by blocks of this size, shorter ones whole."""
MAX_VALUES_BYTES: Final = 64 * 1024
"""Most that the values of all Secrets of one pod may have together for its texts to be looked through; some 2 MiB of
blocks, and 30 ms to make them."""
INSTEAD: Final = "<secret>"
WITHHELD: Final = "<withheld: Secrets of the pod are not known yet, or too large to be looked for in texts>"
"""Instead of a whole text, when it cannot be told what must not stand in it."""

_LOGIN_KEYS: Final = frozenset({"password", "auth", "identitytoken", "registrytoken"})
"""Keys of a file of registry logins whose values are secret."""
_MAX_DEPTH: Final = 3
_LOGIN_TYPES: Final = frozenset({"kubernetes.io/dockerconfigjson", "kubernetes.io/dockercfg"})


class Blocks(msgspec.Struct, frozen=True):
    """Blocks by which the values of one Secret are recognised. Its repr says none."""

    every: frozenset[bytes]
    sizes: dict[bytes, tuple[int, ...]]
    """How long the blocks are that begin with these `MIN_VALUE_CHARS` bytes, the longest first."""

    def __repr__(self) -> str:
        return f"Blocks({len(self.every)})"


def values_size(secret: Secret) -> int:
    """Bytes of a Secret's values together."""
    return sum(map(len, secret.data.values()))


def known_by(secrets: Iterable[Secret]) -> tuple[Blocks, ...] | None:
    """Blocks of the values of Secrets, for `redacted`; None when the Secrets are too large together."""
    found = tuple(secrets)
    return tuple(map(blocks_of, found)) if sum(map(values_size, found)) <= MAX_VALUES_BYTES else None


def blocks_of(secret: Secret) -> Blocks:
    """Blocks of the values of a Secret, to be made once and kept."""
    logins = tuple(_logins(secret))
    every = {block for value in secret.data.values() for block in _cut(value)}
    every -= {window for login in logins for window in _windows(_addresses(login, _MAX_DEPTH))}
    every |= {block for login in logins for value in _login_values(login, _MAX_DEPTH) for block in _cut(value)}
    sizes: dict[bytes, set[int]] = {}
    for block in every:
        sizes.setdefault(block[:MIN_VALUE_CHARS], set()).add(len(block))
    return Blocks(frozenset(every), {head: tuple(sorted(found, reverse=True)) for head, found in sizes.items()})


def redacted(text: str, known: Iterable[Blocks] | None, *, cut_start: bool = False, cut_end: bool = False) -> str:
    """The text with every value replaced by INSTEAD, without lone surrogates; WITHHELD if the values are not known.

    ``cut_start`` and ``cut_end`` say where the text was cut out of a longer one.
    """
    if not text:
        return text
    if known is None:
        return WITHHELD
    source = text.encode("utf-8", "backslashreplace")
    wanted = [blocks for blocks in known if blocks.every]
    if not wanted:
        return source.decode()
    spans = [span for reading in _readings(source) for blocks in wanted for span in _spans(reading, blocks)]
    begin, end = cut_start * _EDGE_BYTES, len(source) - cut_end * _EDGE_BYTES
    return _without(source, spans, begin, end).decode("utf-8", "ignore")


_EDGE_BYTES: Final = BLOCK_BYTES - 1
"""Most bytes that a value that was cut may leave beside the blocks of it that are found, or instead of any."""


# --- what a Secret is known by ---------------------------------------------------------------------------------------


def _cut(value: bytes) -> Iterator[bytes]:
    """Blocks that cover every form of a value."""
    for form in set(_forms(value)):
        size = min(len(form), BLOCK_BYTES)
        for start in (*range(0, len(form) - size, size), len(form) - size):
            yield form[start : start + size]


def _logins(secret: Secret) -> Iterator[object]:
    """The Secret's files of registry logins, decoded; broken ones are left out."""
    for value in secret.data.values() if secret.type in _LOGIN_TYPES else ():
        try:
            yield msgspec.json.decode(value)
        except UNDECODABLE:
            continue


def _addresses(found: object, depth: int) -> Iterator[bytes]:
    """Registries that a file of logins is about. Images and errors of pulls name them, so that they are no secret; one
    with a login in it is."""
    for key, value in found.items() if isinstance(found, dict) else ():
        if isinstance(value, dict):
            if "@" not in key:
                yield key.encode(errors="replace")
            if depth:
                yield from _addresses(value, depth - 1)


def _windows(texts: Iterable[bytes]) -> Iterator[bytes]:
    """Every part of them that is as long as a block."""
    for text in texts:
        for start in range(len(text) - BLOCK_BYTES + 1):
            yield text[start : start + BLOCK_BYTES]


def _login_values(found: object, depth: int) -> Iterator[bytes]:
    """Passwords and tokens, also those that an ``auth`` is made of."""
    for key, value in found.items() if isinstance(found, dict) else ():
        if isinstance(value, str) and key.lower() in _LOGIN_KEYS:
            yield value.encode(errors="replace")
            with_user = _from_base64(value) if key.lower() == "auth" else b""
            yield with_user.partition(b":")[2].rstrip(b"\0")
        elif depth:
            yield from _login_values(value, depth - 1)


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except ValueError:
        return b""


def _forms(value: bytes) -> Iterator[bytes]:
    """In which a text may hold it, where no reading of the text undoes them."""
    for plain in (value, value.strip()):
        text = plain.decode("utf-8", "replace")
        if len(text) >= MIN_VALUE_CHARS:
            yield plain
            yield text.encode()
            yield from _base64_forms(plain)


def _base64_forms(value: bytes) -> Iterator[bytes]:
    """At each of the three places at which it may begin in what is encoded: the digits that it alone decides."""
    for before in range(3):
        digits = base64.b64encode(bytes(before) + value)
        own = digits[-(-8 * before // 6) : 8 * (before + len(value)) // 6]
        yield own
        yield own.translate(_URL_SAFE)


_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")


# --- how a text can be read ------------------------------------------------------------------------------------------


class _Reading(msgspec.Struct, frozen=True):
    """A text as some decoder reads it. Byte i of it stands for ``source[starts[i]:ends[i]]``."""

    data: bytes
    starts: Sequence[int]
    ends: Sequence[int]


_SIMPLE: Final = {ord(key): value.encode() for key, value in zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True)}
_MAX_CODE: Final = 0x10FFFF
_QUOTING: Final = re.compile(
    rb"\\(?:x[0-9A-Fa-f]{2}|u[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}"
    rb"|[abfnrtv\"'\\/])"
)
_URL: Final = re.compile(rb"\+|%[0-9A-Fa-f]{2}")
_BREAK: Final = re.compile(rb"[\r\n][\r\n\t ]*")


def _unquoted(found: bytes) -> bytes:
    """Bytes that an escape of JSON or Go stands for."""
    if found[1] == ord("x"):
        return bytes([int(found[2:], 16)])
    if found[1] in b"uU":
        pair = [int(code, 16) for code in re.split(rb"\\[uU]", found)[1:]]
        code = pair[0] if len(pair) == 1 else 0x10000 + ((pair[0] - 0xD800) << 10) + (pair[1] - 0xDC00)
        return chr(min(code, _MAX_CODE)).encode(errors="replace")
    return _SIMPLE.get(found[1], found[1:])


def _from_url(found: bytes) -> bytes:
    return b" " if found == b"+" else bytes([int(found[1:], 16)])


_Decoder = tuple[re.Pattern[bytes], Callable[[bytes], bytes]]
_GO: Final[_Decoder] = (_QUOTING, _unquoted)
_FORM: Final[_Decoder] = (_URL, _from_url)
_WRAPPED: Final[_Decoder] = (_BREAK, lambda _: b"")
_READINGS: Final[tuple[tuple[_Decoder, ...], ...]] = ((_GO,), (_GO, _GO), (_FORM,), (_WRAPPED,), (_GO, _WRAPPED))


def _readings(source: bytes) -> Iterator[_Reading]:
    """The text as it is, and as all decoders read it that find something to decode."""
    plain = _Reading(source, range(len(source)), range(1, len(source) + 1))
    yield plain
    for decoders in _READINGS:
        reading: _Reading | None = plain
        for pattern, decode in decoders:
            reading = _decoded(reading, pattern, decode) if reading is not None else None
        if reading is not None:
            yield reading


def _decoded(reading: _Reading, pattern: re.Pattern[bytes], decode: Callable[[bytes], bytes]) -> _Reading | None:
    """None where there is nothing to decode."""
    data, starts, ends, at = bytearray(), list[int](), list[int](), 0
    for match in itertools.chain(pattern.finditer(reading.data), (None,)):
        start, end = match.span() if match is not None else (len(reading.data), len(reading.data))
        data += reading.data[at:start]
        starts += reading.starts[at:start]
        ends += reading.ends[at:start]
        at = end
        if match is not None:
            made = decode(match[0])
            data += made
            starts += [reading.starts[start]] * len(made)
            ends += [reading.ends[end - 1]] * len(made)
    return _Reading(bytes(data), starts, ends) if len(data) < len(reading.data) or data != reading.data else None


def _spans(reading: _Reading, blocks: Blocks) -> Iterator[tuple[int, int]]:
    """Where blocks stand, in the source; of several that begin at one place the longest."""
    data, starts, ends = reading.data, reading.starts, reading.ends
    for at in range(len(data) - MIN_VALUE_CHARS + 1):
        for size in blocks.sizes.get(data[at : at + MIN_VALUE_CHARS], ()):
            block = data[at : at + size]
            if block in blocks.every and len(block) == size:
                yield starts[at], ends[at + size - 1]
                break


def _without(source: bytes, spans: Iterable[tuple[int, int]], begin: int, end: int) -> bytes:
    """Bytes between ``begin`` and ``end``, each span replaced; spans that overlap or touch are replaced as one."""
    kept, at, is_first = bytearray(), begin, True
    for start, stop in sorted(spans):
        if start < end and stop > begin and (start > at or is_first):
            kept += source[at:start] + INSTEAD.encode()
            is_first = False
        at = max(at, stop)
    return bytes(kept + source[at:end])
