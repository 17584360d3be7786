"""Content of the journal of containers' runs: one line a change, each with its own checksum. Pure.

The first line names the version. Each of the others is one pod: ``<CRC-32 in hex> {"uid", "ends", "began_at"}``; the
last line of a UID counts, and one with nothing else forgets the pod. A damaged line costs what it says alone;
a last line that has no end was being written when the power was cut.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from typing import Final

import msgspec

from ipc.host.text.json_types import UNDECODABLE
from ipc.k8s.kubecontainer.remembered_ends import RememberedPod, Runs, is_open

VERSION: Final = 1
"""Version of the format. Another version is not trusted, whatever it says."""
MAX_LINE_BYTES: Final = 128 << 10
"""Longest line: a pod of more has its ends without their messages, and then none."""
MAX_LIVE_BYTES: Final = 16 << 20
"""Most that is written anew; the pods that are longest over are left out."""


class _Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int


class _Pod(msgspec.Struct, frozen=True, omit_defaults=True):
    uid: str
    ends: Runs = ()
    began_at: float = 0.0


class Journal(msgspec.Struct, frozen=True):
    """Content of a journal."""

    pods: dict[str, RememberedPod]
    damaged: tuple[int, ...] = ()
    """Numbers of lines that are not as they were written, from 1 on."""
    is_torn: bool = False
    """The last line has no end."""


def encode_lines(pods: Mapping[str, RememberedPod]) -> bytes:
    """Lines to append."""
    return b"".join(_pod_line(uid, record) for uid, record in pods.items())


def encode_journal(pods: Mapping[str, RememberedPod]) -> bytes:
    """A whole journal of these pods, as far as they fit: first those that run, then the newest ends."""
    lines, size = [_line(msgspec.json.encode(_Header(VERSION)))], 0
    for uid in sorted(
        (uid for uid in pods if not pods[uid].is_empty()), key=lambda uid: _newest(pods[uid]), reverse=True
    ):
        line = _pod_line(uid, pods[uid])
        size += len(line)
        if size > MAX_LIVE_BYTES:
            break
        lines.append(line)
    return b"".join(lines)


def decode_journal(data: bytes) -> Journal:
    """The pods with ends, as far as their lines are whole. Never raises."""
    *lines, rest = data.split(b"\n")
    pods: dict[str, RememberedPod] = {}
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
        record = RememberedPod(pod.ends, pod.began_at)
        if not record.is_empty():
            pods[pod.uid] = record
    return Journal(pods, tuple(damaged), bool(rest))


def _pod_line(uid: str, record: RememberedPod) -> bytes:
    line = _line(msgspec.json.encode(_Pod(uid, record.runs, record.began_at)))
    if len(line) <= MAX_LINE_BYTES:
        return line
    short = tuple(msgspec.structs.replace(end, message="", error="", resources=None, devices={}) for end in record.runs)
    line = _line(msgspec.json.encode(_Pod(uid, short, record.began_at)))
    return line if len(line) <= MAX_LINE_BYTES else _line(msgspec.json.encode(_Pod(uid, (), record.began_at)))


def _line(payload: bytes) -> bytes:
    return b"%08x %b\n" % (zlib.crc32(payload), payload)


def _checked(line: bytes) -> bytes:
    """The payload of a line. Raises ValueError for one that is not as it was written."""
    checksum, payload = line[:8], line[9:]
    if len(line) > MAX_LINE_BYTES or int(checksum, 16) != zlib.crc32(payload):
        raise ValueError("its checksum is wrong")
    return payload


def _newest(record: RememberedPod) -> float:
    return max((math.inf if is_open(run) else run.finished_at for run in record.runs), default=record.began_at)
