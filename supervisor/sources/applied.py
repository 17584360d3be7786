"""The pods that `rootlet apply` was given, kept as one file per pod until `rootlet delete`.

A stored pod is complete: defaults, UID and namespace as they were when it was applied, as an API server stores it. The
directory is read like any manifest directory, but nothing watches it, because only this class writes to it. One agent
of an instance runs at a time, and the master calls from one thread at a time.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from ipc.api import Pod, encode_pod
from supervisor.atomic_file import ensure_private_directory, remove_durably, write_atomically
from supervisor.sources.decode import decode_manifest
from supervisor.sources.directory import DEFAULT_MAX_MANIFEST_BYTES, ManifestReader, list_manifests
from supervisor.sources.identity import CONFIG_HASH, Origin
from supervisor.sources.types import (
    ManifestError,
    ManifestErrorKind,
    ManifestPod,
    PodKey,
    SourceSnapshot,
    pod_key,
)

MAX_APPLIED_PODS: Final = 1_000
"""Most pods kept at a time."""
MAX_STORED_POD_BYTES: Final = 4 << 20
"""Largest stored pod; defaults make it larger than what was applied."""
_PLAIN_STEM: Final = re.compile(r"[a-z0-9][a-z0-9.-]{0,199}")


class ApplyResult(msgspec.Struct, frozen=True):
    """What became of an apply: one line per pod as kubectl prints it, or what was wrong, and then nothing was done."""

    lines: tuple[str, ...] = ()
    errors: tuple[ManifestError, ...] = ()


class AppliedPods:
    """The store below ``<stateDir>/applied``: directory 0700, files 0600, replaced atomically."""

    def __init__(self, directory: Path, origin: Origin, max_bytes: int = DEFAULT_MAX_MANIFEST_BYTES) -> None:
        self._directory = directory
        self._origin = origin
        self._max_bytes = max_bytes
        self._reader = ManifestReader(directory, origin, MAX_STORED_POD_BYTES)

    def read(self) -> SourceSnapshot:
        """Everything that is applied. Never raises: a store that cannot be read gives an incomplete snapshot."""
        try:
            ensure_private_directory(self._directory)
        except OSError as error:
            message = error.strerror or str(error)
            wrong = ManifestError(kind=ManifestErrorKind.UNREADABLE, file=str(self._directory), message=message)
            return SourceSnapshot(source=self._origin.source, errors=(wrong,), complete=False)
        return self._reader.read(list_manifests(self._directory))

    def apply(self, file: str, body: bytes, stated_elsewhere: Mapping[PodKey, str]) -> ApplyResult:
        """Store every pod of ``body``, or none when anything is wrong with it.

        ``stated_elsewhere``: the pods that another source holds, and where (see `PodConfig.stated_elsewhere`). ``file``
        is for error texts. Raises OSError when the disk does not take it; what was stored until then is whole, and
        applying again continues.
        """
        if len(body) > self._max_bytes:
            return ApplyResult(errors=(_refused(file, f"more than {self._max_bytes} bytes"),))
        decoded = decode_manifest(body, file, self._origin)
        present = {pod_key(stored.pod): stored.pod for stored in self.read().pods}
        errors = decoded.errors or _conflicts(decoded.pods, stated_elsewhere)
        if not errors and len(present.keys() | {pod_key(item.pod) for item in decoded.pods}) > MAX_APPLIED_PODS:
            errors = (_refused(file, f"more than {MAX_APPLIED_PODS} applied pods"),)
        if errors:
            return ApplyResult(errors=errors)
        return ApplyResult(lines=tuple(self._store(item.pod, present.get(pod_key(item.pod))) for item in decoded.pods))

    def delete(self, namespace: str, name: str) -> bool:
        """Forget one pod; False when it is not here. Raises OSError."""
        return remove_durably(self._path(namespace, name))

    def _store(self, pod: Pod, present: Pod | None) -> str:
        if present is not None and _same(pod, present):
            return f"pod/{pod.metadata.name} unchanged"
        write_atomically(self._path(*pod_key(pod)), encode_pod(pod))
        return f"pod/{pod.metadata.name} {'created' if present is None else 'configured'}"

    def _path(self, namespace: str, name: str) -> Path:
        return self._directory / file_name(namespace, name)


def file_name(namespace: str, name: str) -> str:
    """``default.web.json``; of what is too long or no name at all, a hash."""
    stem = f"{namespace}.{name}"
    if not _PLAIN_STEM.fullmatch(stem):
        stem = hashlib.sha256(stem.encode(errors="surrogatepass")).hexdigest()
    return f"{stem}.json"


def _same(pod: Pod, other: Pod) -> bool:
    return (pod.metadata.uid, pod.metadata.annotations[CONFIG_HASH]) == (
        other.metadata.uid,
        other.metadata.annotations[CONFIG_HASH],
    )


def _conflicts(pods: tuple[ManifestPod, ...], stated_elsewhere: Mapping[PodKey, str]) -> tuple[ManifestError, ...]:
    """One error for every pod that another source or an earlier document claims."""
    holders = dict(stated_elsewhere)
    errors = []
    for item in pods:
        namespace, name = key = pod_key(item.pod)
        if key in holders:
            errors.append(
                ManifestError(
                    kind=ManifestErrorKind.CONFLICT,
                    file=item.file,
                    document=item.document,
                    field="metadata.name",
                    message=f"pod {namespace}/{name} is stated by {holders[key]}",
                    namespace=namespace,
                    name=name,
                )
            )
        holders.setdefault(key, f"document {item.document}")
    return tuple(errors)


def _refused(file: str, message: str) -> ManifestError:
    return ManifestError(kind=ManifestErrorKind.INVALID, file=file, message=message)
