"""The source ``http``: the set that somebody has posted, or else the one that a URL answers
(pkg/kubelet/config/http.go; ``/container`` and ``/containers`` of the first kubelet's server).

Pods only. A set that is wrong in any place changes nothing. What was posted is kept, so that a restart does not take it
for gone; what a URL has answered is asked for again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from ipc.host.atomic_file import UntrustedFile, read_bounded, remove_durably, write_atomically
from ipc.host.private_directories import make_private
from supervisor.protocol.manifests import (
    HTTP_SOURCE,
    ManifestError,
    ManifestErrorKind,
    SourceSnapshot,
    error_about,
)
from supervisor.sources.applied import Key, conflicts
from supervisor.sources.objects.apart import decode_apart
from supervisor.sources.objects.identity import Origin

POSTED: Final = "the posted manifest"
"""Name of what was posted, in errors."""
PODS_ONLY: Final = "the source http states pods only: apply it, or write it into the manifest directory"


class HttpSource:
    """Decodes and keeps the set."""

    def __init__(self, file: Path, origin: Origin, max_bytes: int) -> None:
        """``file`` holds what was posted."""
        self._file = file
        self._origin = origin
        self._max_bytes = max_bytes
        self._posted = b""
        """The content of ``file``, as it was read or written last."""

    def read(self) -> SourceSnapshot:
        """The set that was posted before. Never raises: of a file that cannot be read, or is damaged, the pods stay as
        they were accepted, until the next set is posted."""
        try:
            body = read_bounded(self._file, self._max_bytes)
        except FileNotFoundError:
            return SourceSnapshot(source=HTTP_SOURCE, complete=True)
        except (OSError, UntrustedFile) as error:
            why = f"{self._file.name} cannot be used: {error}; its pods stay as they were, post them again"
            wrong = ManifestError(kind=ManifestErrorKind.UNREADABLE, file=POSTED, message=why)
            return SourceSnapshot(source=HTTP_SOURCE, errors=(wrong,), complete=True)
        self._posted = body
        return self.snapshot(POSTED, body)

    def keep(self) -> tuple[Path, ...]:
        """Write the file again if it has gone away, which nobody but this class lets it; its path if so. Raises
        OSError."""
        if not self._posted or os.path.lexists(self._file):
            return ()
        make_private(self._file.parent)
        write_atomically(self._file, self._posted)
        return (self._file,)

    def post(self, body: bytes, desired_elsewhere: Mapping[Key, str]) -> SourceSnapshot:
        """Make it the set, and keep it, unless it has errors; a name that another source holds is one (see
        `PodConfig.desired_elsewhere`). Raises OSError when the disk does not take it."""
        if len(body) > self._max_bytes:
            return failed(POSTED, f"more than {self._max_bytes} bytes")
        snapshot = self.snapshot(POSTED, body)
        if errors := snapshot.errors or conflicts(snapshot.pods, desired_elsewhere):
            return msgspec.structs.replace(snapshot, errors=errors)
        if snapshot.pods:
            make_private(self._file.parent)
            write_atomically(self._file, body)
        else:
            remove_durably(self._file)
        self._posted = body if snapshot.pods else b""
        return snapshot

    def snapshot(self, name: str, body: bytes) -> SourceSnapshot:
        """The whole set, or its errors alone. ``name`` is for error texts."""
        decoded = decode_apart(body, name, self._origin, "posted")
        errors = decoded.errors or tuple(
            error_about(item, ManifestErrorKind.INVALID, "kind", PODS_ONLY) for item in decoded.objects
        )
        return SourceSnapshot(source=HTTP_SOURCE, pods=() if errors else decoded.pods, errors=errors, complete=True)


def failed(name: str, why: str) -> SourceSnapshot:
    """Nothing is known of the set."""
    error = ManifestError(kind=ManifestErrorKind.UNREADABLE, file=name, message=why)
    return SourceSnapshot(source=HTTP_SOURCE, errors=(error,), complete=False)
