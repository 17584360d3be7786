"""Content of the journal of ended containers: one line a change, each with its own checksum. Pure.

The first line names the version. Each of the others is one pod: ``<CRC-32 in hex> {"uid", "ends"}``; the last line of
a UID counts, and one without ends forgets the pod. A damaged line costs what it says and nothing else; a last line that
has no end was being written when the power was cut.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from ipc.kubecontainer.pod_status import RuntimeContainerStatus
from ipc.text.json_types import UNDECODABLE

VERSION: Final = 1
"""Version of the format. Another version is not trusted, whatever it says."""
MAX_LINE_BYTES: Final = 128 << 10
"""Longest line: a pod of more has its ends without their messages, and then none."""
MAX_LIVE_BYTES: Final = 16 << 20
"""Most that is written anew; the pods that are longest over are left out."""

Ends = tuple[RuntimeContainerStatus, ...]


class _Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int


class _Pod(msgspec.Struct, frozen=True):
    uid: str
    ends: Ends = ()


class Journal(msgspec.Struct, frozen=True):
    """Content of a journal."""

    pods: dict[str, Ends]
    damaged: tuple[int, ...] = ()
    """Numbers of lines that are not as they were written, from 1 on."""
    is_torn: bool = False
    """The last line has no end."""


def encode_lines(pods: Mapping[str, Ends]) -> bytes:
    """Lines to append."""
    return b"".join(_pod_line(_Pod(uid, ends)) for uid, ends in pods.items())


def encode_journal(pods: Mapping[str, Ends]) -> bytes:
    """A whole journal of these pods, as far as they fit: the newest ends first."""
    lines, size = [_line(msgspec.json.encode(_Header(VERSION)))], 0
    for uid in sorted((uid for uid, ends in pods.items() if ends), key=lambda uid: _newest(pods[uid]), reverse=True):
        line = _pod_line(_Pod(uid, pods[uid]))
        size += len(line)
        if size > MAX_LIVE_BYTES:
            break
        lines.append(line)
    return b"".join(lines)


def decode_journal(data: bytes) -> Journal:
    """The pods with ends, as far as their lines are whole. Never raises."""
    *lines, rest = data.split(b"\n")
    pods: dict[str, Ends] = {}
    damaged = list[int]()
    for number, line in enumerate(lines, 1):
        try:
            payload = _checked(line)
            if number == 1:
                if msgspec.json.decode(payload, type=_Header).version != VERSION:
                    return Journal({}, (1,))
                continue
            pod = msgspec.json.decode(payload, type=_Pod)
        except UNDECODABLE:
            damaged.append(number)
            continue
        pods.pop(pod.uid, None)
        if pod.ends:
            pods[pod.uid] = pod.ends
    return Journal(pods, tuple(damaged), bool(rest))


def _pod_line(pod: _Pod) -> bytes:
    line = _line(msgspec.json.encode(pod))
    if len(line) <= MAX_LINE_BYTES:
        return line
    short = tuple(msgspec.structs.replace(end, message="", error="", resources=None, devices={}) for end in pod.ends)
    line = _line(msgspec.json.encode(_Pod(pod.uid, short)))
    return line if len(line) <= MAX_LINE_BYTES else _line(msgspec.json.encode(_Pod(pod.uid)))


def _line(payload: bytes) -> bytes:
    return b"%08x %b\n" % (zlib.crc32(payload), payload)


def _checked(line: bytes) -> bytes:
    """The payload of a line. Raises ValueError for one that is not as it was written."""
    checksum, payload = line[:8], line[9:]
    if len(line) > MAX_LINE_BYTES or int(checksum, 16) != zlib.crc32(payload):
        raise ValueError("its checksum is wrong")
    return payload


def _newest(ends: Iterable[RuntimeContainerStatus]) -> float:
    return max(end.finished_at for end in ends)
