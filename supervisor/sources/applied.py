"""Objects of `rootlet apply`, kept as one file per object until `rootlet delete`.

A stored object is complete: defaults, UID and namespace as they were when it was applied, as an API server stores it.
Secrets are kept in memory only, so that they are gone when the host reboots, and all else below the state directory.
Both are read like any manifest directory, but nothing watches them, because only this class writes there. One agent of
an instance runs at a time, and the master calls from one thread at a time.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from ipc.api.annotations import CONFIG_HASH
from ipc.api.v1.config_objects import Secret
from ipc.api.v1.pod import Pod
from ipc.host.atomic_file import remove_durably, write_atomically
from ipc.host.memory_directory import NotMemory, make_memory_directory
from ipc.host.private_directories import make_private
from ipc.kubecontainer.config_objects import ConfigObject, ObjectKey, ObjectKind
from supervisor.protocol.manifests import (
    ManifestError,
    ManifestErrorKind,
    ManifestObject,
    ManifestPod,
    PodKey,
    SourceSnapshot,
    error_about,
)
from supervisor.sources.decode import decode_manifest
from supervisor.sources.directory import DEFAULT_MAX_MANIFEST_BYTES, ManifestReader, list_manifests
from supervisor.sources.identity import Origin
from supervisor.sources.merge_objects import changes_refused

MAX_APPLIED_OBJECTS: Final = 1_000
"""Most pods and objects beside them kept at a time."""
MAX_STORED_BYTES: Final = 8 << 20
"""Largest stored object; defaults and escapes make it larger than what was applied."""
_PLAIN_STEM: Final = re.compile(r"[a-z0-9][a-z0-9.-]{0,199}")

Key = PodKey | ObjectKey
Item = ManifestPod | ManifestObject


class ApplyResult(msgspec.Struct, frozen=True):
    """Outcome of an apply: one line per object as kubectl prints it, or what was wrong, and then nothing was
    done."""

    lines: tuple[str, ...] = ()
    errors: tuple[ManifestError, ...] = ()


class AppliedStore:
    """The store: directories 0700, files 0600, replaced atomically."""

    def __init__(
        self,
        directory: Path,
        origin: Origin,
        max_bytes: int = DEFAULT_MAX_MANIFEST_BYTES,
        *,
        secrets_directory: Path | None = None,
    ) -> None:
        """Without a ``secrets_directory`` Secrets are refused."""
        self._directory = directory
        self._secrets_directory = secrets_directory
        self._origin = origin
        self._max_bytes = max_bytes
        self._reader = ManifestReader(directory, origin, MAX_STORED_BYTES)
        self._secrets_reader = ManifestReader(secrets_directory or directory, origin, MAX_STORED_BYTES)

    def read(self) -> SourceSnapshot:
        """All objects that are applied. Never raises: a store that cannot be read gives an incomplete snapshot."""
        try:
            make_private(self._directory)
        except OSError as error:
            return self._unreadable(self._directory, error)
        kept = self._reader.read(list_manifests(self._directory))
        secrets = self._read_secrets()
        return msgspec.structs.replace(
            kept,
            objects=kept.objects + secrets.objects,
            errors=kept.errors + secrets.errors,
            complete=kept.complete and secrets.complete,
        )

    def _read_secrets(self) -> SourceSnapshot:
        """Where there is no memory for them, or no directory and none can be made, there are none of ours."""
        nothing = SourceSnapshot(source=self._origin.source, complete=True)
        if self._secrets_directory is None:
            return nothing
        try:
            make_memory_directory(self._secrets_directory)
        except NotMemory:
            return nothing
        except OSError as error:
            is_there = os.path.lexists(self._secrets_directory)
            return self._unreadable(self._secrets_directory, error) if is_there else nothing
        return self._secrets_reader.read(list_manifests(self._secrets_directory))

    def _unreadable(self, directory: Path, error: OSError) -> SourceSnapshot:
        message = error.strerror or str(error)
        wrong = ManifestError(kind=ManifestErrorKind.UNREADABLE, file=str(directory), message=message)
        return SourceSnapshot(source=self._origin.source, errors=(wrong,), complete=False)

    def apply(self, file: str, body: bytes, stated_elsewhere: Mapping[Key, str]) -> ApplyResult:
        """Store every object of ``body``, or none when anything is wrong with it.

        ``stated_elsewhere``: what another source holds, and where (see `PodConfig.stated_elsewhere`). ``file`` is for
        error texts. Raises OSError when the disk does not take it; what was stored until then is whole, and applying
        again continues.
        """
        if len(body) > self._max_bytes:
            return ApplyResult(errors=(_refused(file, f"more than {self._max_bytes} bytes"),))
        decoded = decode_manifest(body, file, self._origin)
        items: list[Item] = sorted((*decoded.pods, *decoded.objects), key=lambda item: item.document)
        stored = self.read()
        present: dict[Key, Item] = {
            **{item.key: item for item in stored.pods},
            **{item.key: item for item in stored.objects},
        }
        errors = decoded.errors or conflicts(items, stated_elsewhere) or _unchangeable(items, present)
        if not errors and len(present.keys() | {item.key for item in items}) > MAX_APPLIED_OBJECTS:
            errors = (_refused(file, f"more than {MAX_APPLIED_OBJECTS} applied objects"),)
        errors = errors or self._without_memory(items)
        if errors:
            return ApplyResult(errors=errors)
        return ApplyResult(lines=tuple(self._store(item, present.get(item.key)) for item in items))

    def delete(self, key: Key) -> bool:
        """Forget one object; False when it is not here. Raises OSError."""
        return remove_durably(self._path(key))

    def _without_memory(self, items: Iterable[Item]) -> tuple[ManifestError, ...]:
        """Why Secrets cannot be kept, if there are any."""
        secrets = [item for item in items if isinstance(item, ManifestObject) and isinstance(item.object, Secret)]
        if not secrets:
            return ()
        try:
            if self._secrets_directory is None:
                raise NotMemory("there is no directory in memory")
            make_memory_directory(self._secrets_directory)
        except (NotMemory, OSError) as error:
            why = f"Secrets are kept in memory only: {error}"
            return tuple(error_about(item, ManifestErrorKind.UNREADABLE, "", why) for item in secrets)
        return ()

    def _store(self, item: Item, present: Item | None) -> str:
        name = f"{item.value.kind.lower()}/{item.value.metadata.name}"
        if present is not None and _same(item.value, present.value):
            return f"{name} unchanged"
        write_atomically(self._path(item.key), msgspec.json.encode(item.value))
        return f"{name} {'created' if present is None else 'configured'}"

    def _path(self, key: Key) -> Path:
        is_secret = isinstance(key, ObjectKey) and key.kind is ObjectKind.SECRET
        return ((self._secrets_directory if is_secret else None) or self._directory) / file_name(key)


def file_name(key: Key) -> str:
    """``default.web.json`` or ``configmap_default.web.json``; of what is too long or no name at all, a hash."""
    if isinstance(key, ObjectKey):
        prefix, stem = f"{key.kind.lower()}_", ".".join(filter(None, (key.namespace, key.name)))
    else:
        prefix, stem = "", ".".join(key)
    if not _PLAIN_STEM.fullmatch(stem):
        stem = hashlib.sha256(stem.encode(errors="surrogatepass")).hexdigest()
    return f"{prefix}{stem}.json"


def _same(one: Pod | ConfigObject, other: Pod | ConfigObject) -> bool:
    if not (isinstance(one, Pod) and isinstance(other, Pod)):
        return one == other
    return (one.metadata.uid, one.metadata.annotations[CONFIG_HASH]) == (
        other.metadata.uid,
        other.metadata.annotations[CONFIG_HASH],
    )


def conflicts(items: Iterable[Item], stated_elsewhere: Mapping[Key, str]) -> tuple[ManifestError, ...]:
    """One error for every object that another source or an earlier document claims."""
    holders = dict(stated_elsewhere)
    errors = []
    for item in items:
        if item.key in holders:
            why = f"{item.title} already comes from {holders[item.key]}"
            errors.append(error_about(item, ManifestErrorKind.CONFLICT, "metadata.name", why))
        holders.setdefault(item.key, f"document {item.document}")
    return tuple(errors)


def _unchangeable(items: Iterable[Item], present: Mapping[Key, Item]) -> tuple[ManifestError, ...]:
    """Errors for the changes of an object that may not change."""
    return tuple(
        error_about(item, ManifestErrorKind.IMMUTABLE, error.path, f"{item.title}: {error.message}")
        for item in items
        if isinstance(item, ManifestObject) and isinstance(existing := present.get(item.key), ManifestObject)
        for error in changes_refused(item.object, existing.object)
    )


def _refused(file: str, message: str) -> ManifestError:
    return ManifestError(kind=ManifestErrorKind.INVALID, file=file, message=message)
