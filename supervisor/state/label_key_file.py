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

from ipc.host.atomic_file import UntrustedFile, move_aside, read_bounded, write_atomically
from ipc.kubecontainer.label_key import SECRET_BYTES, LabelKey

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
        return load(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        log.error("the key of labels %s cannot be read: %s; a new one is made", path, error.strerror or error)
    except (UntrustedFile, msgspec.MsgspecError) as error:
        log.error("the key of labels %s cannot be used: %s%s; a new one is made", path, error, move_aside(path))
    key = LabelKey(secret=os.urandom(SECRET_BYTES), made_at=now)
    try:
        write_atomically(path, msgspec.json.encode(_File(VERSION, key.secret, key.made_at)))
    except OSError as error:
        log.error("the key of labels is not kept on disk: %s", error.strerror or error)
    return key


def load(path: Path) -> LabelKey:
    """The key, where there is one. Raises OSError, UntrustedFile, MsgspecError."""
    file = msgspec.json.decode(read_bounded(path, MAX_FILE_BYTES), type=_File)
    if file.version != VERSION:
        raise UntrustedFile(f"it is of version {file.version}, not {VERSION}")
    return LabelKey(secret=file.secret, made_at=file.made_at)
