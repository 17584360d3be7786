"""The key that signs the labels of what is ours, on disk: made at the first start, read at every other.

Format: one JSON object ``{"version", "secret": base64, "made_at": epoch seconds}``. It is never made anew while it can
be read: what carries its signature would be a stranger's. When it is lost or damaged there is a new one, and what is
older than that is adopted once, as at the upgrade from a version that did not sign
(`workers.kubecontainer.label_signatures`).
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Annotated, Final

import msgspec

from ipc.host.atomic_file import UntrustedFile, read_bounded, write_atomically
from ipc.host.state_file import StateUnusable, load_state
from ipc.k8s.kubecontainer.label_key import SECRET_BYTES, LabelKey

NAME: Final = "label-key.json"
VERSION: Final = 1
MAX_FILE_BYTES: Final = 4096

log = logging.getLogger(__name__)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    secret: Annotated[bytes, msgspec.Meta(min_length=SECRET_BYTES, max_length=SECRET_BYTES)]
    made_at: Annotated[float, msgspec.Meta(ge=0.0)]


def load_or_make(path: Path, now: float) -> LabelKey:
    """The key; ``now`` in epoch seconds. Its directory is there.

    A disk that cannot be read or written does not stop the agent: the key is then this run's own, and the next run
    adopts the pods that this one has made.
    """
    try:
        if (found := load_state(path, MAX_FILE_BYTES, _decode, "the key of labels")) is not None:
            return found
    except StateUnusable as error:
        log.error("%s; a new one is made", error)
    key = LabelKey(secret=os.urandom(SECRET_BYTES), made_at=now)
    try:
        save(path, key)
    except OSError as error:
        log.error("the key of labels is not kept on disk: %s", error.strerror or error)
    return key


def save(path: Path, key: LabelKey) -> None:
    """Replace the file. Raises OSError; it is whole then, the old or the new one."""
    write_atomically(path, msgspec.json.encode(_File(VERSION, key.secret, key.made_at)))


def load(path: Path) -> LabelKey:
    """The key, for a command: nothing is moved aside. Raises OSError, UntrustedFile, MsgspecError, ValueError."""
    return _decode(read_bounded(path, MAX_FILE_BYTES))


def _decode(data: bytes) -> LabelKey:
    file = msgspec.json.decode(data, type=_File)
    if file.version != VERSION:
        raise UntrustedFile(f"it is of version {file.version}, not {VERSION}")
    return LabelKey(secret=file.secret, made_at=file.made_at)
