"""The last accepted desired set on disk, so that running pods stay supervised while a source cannot be read.

Format: that of `supervisor.state.checked_file`. Upstream checkpoints no desired set any more, because its
API server has it; here there is none.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from ipc.host.atomic_file import replace_file, write_atomically
from ipc.host.private_directories import make_private
from ipc.host.state_file import load_state, seen_state
from ipc.k8s.api.annotations import API_SOURCE
from ipc.k8s.api.decode import decode_pod, encode_pod
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.status import TERMINAL_PHASES, PodStatus
from supervisor.protocol.manifests import DesiredPod
from supervisor.state.checked_file import decode_checked, encode_checked

VERSION: Final = 1
"""Version of the format. Another version is not trusted, whatever it says."""
MAX_CHECKPOINT_BYTES: Final = 64 << 20
"""Largest checkpoint that is read: some 10,000 pods."""


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    source: str
    file: str
    document: int
    pod: msgspec.Raw


def save(path: Path, desired: Iterable[DesiredPod], *, durable: bool = True) -> None:
    """Replace the checkpoint: 0600, atomic. Not ``durable``: after a power cut the previous one may be there. Raises
    OSError; the previous checkpoint is whole then."""
    entries = [_Entry(item.source, item.file, item.document, msgspec.Raw(encode_pod(item.pod))) for item in desired]
    payload = msgspec.json.encode(entries)
    make_private(path.parent)
    replace = write_atomically if durable else replace_file
    replace(path, encode_checked(VERSION, payload))


def load(path: Path) -> tuple[DesiredPod, ...] | None:
    """The desired set as it was saved; None when there is no checkpoint.

    Raises StateUnusable: also for one that is of another version, or with a pod that does not decode.
    """
    return load_state(path, MAX_CHECKPOINT_BYTES, _decode, "checkpoint")


def seen(path: Path) -> tuple[DesiredPod, ...]:
    """The desired set as it was saved, for those who only look: none where it cannot be used."""
    return seen_state(path, MAX_CHECKPOINT_BYTES, _decode) or ()


def _decode(data: bytes) -> tuple[DesiredPod, ...]:
    entries = msgspec.json.decode(decode_checked(VERSION, data), type=tuple[_Entry, ...])
    return tuple(
        DesiredPod(source=entry.source, file=entry.file, document=entry.document, pod=_pod(entry)) for entry in entries
    )


def _pod(entry: _Entry) -> Pod:
    """A pod of a cluster has a status, too, if that says that the pod has ended for good: nothing of it may be left to
    say so. Any other is older than what will be observed."""
    try:
        pod = msgspec.json.decode(entry.pod, type=Pod)
    except msgspec.ValidationError:
        if entry.source == API_SOURCE:
            raise
        return decode_pod(_plain(entry.pod))  # what is wrong with it, in words
    if entry.source == API_SOURCE and pod.status.phase in TERMINAL_PHASES:
        return pod
    return msgspec.structs.replace(pod, status=PodStatus())


def _plain(raw: msgspec.Raw) -> object:
    return msgspec.json.decode(raw)
