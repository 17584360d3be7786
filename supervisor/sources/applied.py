"""Objects of `rootlet apply`, kept as one file per object until `rootlet delete`.

A stored object is complete: defaults, UID and namespace as they were when it was applied, as an API server stores it.
Secrets are kept in a place of their own (`supervisor.sources.secret_places`), all else below the state directory. Both
are read like any manifest directory, but nothing watches them, because only this class writes there. What goes away
all the same (somebody has emptied the state directory) was not deleted: the next reading writes it again. One agent of
an instance runs at a time, and the master calls from one thread at a time.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from ipc.host.atomic_file import (
    UntrustedFile,
    remove_durably,
    replace_file,
    sync_directory,
    write_atomically,
)
from ipc.host.private_directories import make_private
from ipc.host.state_file import usable_state
from ipc.k8s.api.annotations import CONFIG_HASH
from ipc.k8s.api.errors import FieldErrors
from ipc.k8s.api.support.warnings import field_warnings
from ipc.k8s.api.v1.config_objects import Secret
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.patching.values import PatchError
from ipc.k8s.podobjects.config_objects import ConfigObject, ObjectKey, ObjectKind
from ipc.link.messages.api_server import ApplyVerb
from supervisor.protocol.manifests import (
    DecodedFile,
    ManifestError,
    ManifestErrorKind,
    ManifestObject,
    ManifestPod,
    PodKey,
    SourceSnapshot,
    error_about,
)
from supervisor.sources.applied_changes import Item, Value, changed_object, merged, presence_refused
from supervisor.sources.directory import DEFAULT_MAX_MANIFEST_BYTES, Listing, ManifestReader, list_manifests
from supervisor.sources.objects.apart import decode_apart
from supervisor.sources.objects.decode import decode_manifest
from supervisor.sources.objects.identity import Origin
from supervisor.sources.objects.merge_objects import changes_refused
from supervisor.sources.secret_places import SecretPlace, last_directory
from supervisor.state.memory_directory import NotMemory
from supervisor.state.remembered_files import RememberedFiles

MAX_APPLIED_OBJECTS: Final = 1_000
"""Most pods and objects beside them kept at a time."""
MAX_STORED_BYTES: Final = 8 << 20
"""Largest stored object; defaults and escapes make it larger than what was applied."""
MAX_SEALED_BYTES: Final = MAX_STORED_BYTES // 2 * 3
"""In base64, with what belongs to it."""
MAX_LAST_BYTES: Final = 64 << 20
"""Most that is remembered of objects as they were applied last."""
log = logging.getLogger(__name__)

_PLAIN_STEM: Final = re.compile(r"[a-z0-9][a-z0-9.-]{0,199}")

Key = PodKey | ObjectKey
WarningsOf = Callable[[Pod], Sequence[str]]
"""Warnings of a pod that is taken: of fields that have no effect, or another one than is meant."""


class ApplyOptions(msgspec.Struct, frozen=True):
    """Wishes of an apply."""

    verb: ApplyVerb = "apply"
    namespace: str = ""
    """Namespace of objects that state none; all others must state this one. Empty: ``default``, and any other."""
    dry_run: bool = False


class ApplyResult(msgspec.Struct, frozen=True):
    """Outcome of an apply: one line per object as kubectl prints it, or what was wrong, and then nothing was
    done."""

    lines: tuple[str, ...] = ()
    errors: tuple[ManifestError, ...] = ()
    warnings: tuple[str, ...] = ()
    values: tuple[Pod | ConfigObject, ...] = ()
    """The objects as they became."""


_AS_STATED: Final = ApplyOptions()


class AppliedStore:
    """The store: directories 0700, files 0600, replaced atomically."""

    def __init__(
        self,
        directory: Path,
        origin: Origin,
        max_bytes: int = DEFAULT_MAX_MANIFEST_BYTES,
        *,
        secrets: SecretPlace | None = None,
        warnings_of: WarningsOf = field_warnings,
    ) -> None:
        """Without a place for ``secrets`` they are refused."""
        self._warnings_of = warnings_of
        self._directory = directory
        self._secrets = secrets
        self._origin = origin
        self._max_bytes = max_bytes
        self._reader = ManifestReader(directory, origin, MAX_STORED_BYTES)
        self._secrets_reader = (
            self._reader
            if secrets is None
            else ManifestReader(secrets.directory, origin, MAX_SEALED_BYTES, secrets.open)
        )
        self._known: dict[str, Item] = {}
        """By the name of its file: what was stored when this was last read or written."""
        self._lasts = RememberedFiles(MAX_LAST_BYTES)
        """Contents of each object that a command has changed, as it was applied last."""
        self._written_again: list[Path] = []

    def read(self) -> SourceSnapshot:
        """All objects that are applied. Never raises: a store that cannot be read gives an incomplete snapshot."""
        try:
            make_private(self._directory)
            if not self._directory.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            kept = self._reader.read(self._without_gaps(self._reader))
        except OSError as error:
            return self._unreadable(self._directory, error)
        secrets = self._read_secrets()
        items: tuple[Item, ...] = (*kept.pods, *kept.objects, *secrets.objects)
        for item in items:
            if item.file == file_name(item.key):
                self._known[item.file] = item
        try:
            self._keep_lasts()
        except OSError as error:
            return self._unreadable(last_directory(self._directory), error)
        return msgspec.structs.replace(
            kept,
            objects=kept.objects + secrets.objects,
            errors=kept.errors + secrets.errors,
            complete=kept.complete and secrets.complete,
            skipped=frozenset(),  # nobody is meant to put a file there
        )

    def _read_secrets(self) -> SourceSnapshot:
        """Where there is no memory for them, or no directory and none can be made, there are none of ours."""
        nothing = SourceSnapshot(source=self._origin.source, complete=True)
        if self._secrets is None:
            return nothing
        try:
            self._secrets.make()
            return self._secrets_reader.read(self._without_gaps(self._secrets_reader))
        except NotMemory:
            return nothing
        except OSError as error:
            is_known = os.path.lexists(self._secrets.directory) or self._of(self._secrets_reader)
            return self._unreadable(self._secrets.directory, error) if is_known else nothing

    def has_gaps(self) -> bool:
        """Whether files have gone away that this class has not removed. Raises OSError."""
        readers = {self._reader, self._secrets_reader}
        return bool(self._lasts.look()) or any(self._of(each).keys() - _names_in(each.path) for each in readers)

    def expect(self, pods: Iterable[Pod]) -> None:
        """Take these for the pods that are stored, if there is no directory at all: it went away while no agent ran.
        To be called before the first reading."""
        if not os.path.lexists(self._directory):
            self._known = {file_name(item.key): item for item in (ManifestPod(pod=pod) for pod in pods)}

    def take_written_again(self) -> tuple[Path, ...]:
        """Files that had gone away and were written again since this was last asked."""
        taken, self._written_again = tuple(self._written_again), []
        return taken

    def _without_gaps(self, reader: ManifestReader) -> Listing:
        """The directory's files, with those that had gone away. Raises OSError where these cannot be written."""
        listing = list_manifests(reader.path)
        missing = [] if listing.errors else sorted(self._of(reader).keys() - listing.files.keys())
        if not missing:
            return listing
        for name in missing:
            self._write(self._known[name])
            self._written_again.append(reader.path / name)
        sync_directory(reader.path)
        return list_manifests(reader.path)

    def _keep_lasts(self) -> None:
        """Write again what has gone away of the objects as they were applied. Raises OSError."""
        directories = {reader: last_directory(reader.path) for reader in {self._reader, self._secrets_reader}}
        gone = self._lasts.look(
            path / name for reader, path in directories.items() for name in _names_in(path) & self._of(reader).keys()
        )
        for path in (lost := self._lasts.write(gone)):
            self._lasts.discard(path)
            log.error("%s is gone: the next apply does not know what commands have changed since the last one", path)
        self._written_again += set(gone).difference(lost)

    def _of(self, reader: ManifestReader) -> dict[str, Item]:
        """Known objects of that reader's directory, by file."""
        return {name: item for name, item in self._known.items() if self._reader_of(item.key) is reader}

    def _unreadable(self, directory: Path, error: OSError) -> SourceSnapshot:
        message = error.strerror or str(error)
        wrong = ManifestError(kind=ManifestErrorKind.UNREADABLE, file=str(directory), message=message)
        return SourceSnapshot(source=self._origin.source, errors=(wrong,), complete=False)

    def apply(
        self, file: str, body: bytes, desired_elsewhere: Mapping[Key, str], options: ApplyOptions = _AS_STATED
    ) -> ApplyResult:
        """Store every object of ``body``, or none when anything is wrong with it: then all that is wrong is told.

        ``desired_elsewhere``: what another source holds, and where (see `PodConfig.desired_elsewhere`). ``file`` is for
        error texts. Raises OSError when the disk does not take it; what was stored until then is whole, and applying
        again continues.
        """
        if len(body) > self._max_bytes:
            return ApplyResult(errors=(_refused(file, f"more than {self._max_bytes} bytes"),))
        origin = msgspec.structs.replace(self._origin, namespace=options.namespace or self._origin.namespace)
        decoded = decode_apart(body, file, origin)
        items: list[Item] = sorted((*decoded.pods, *decoded.objects), key=lambda item: item.document)
        present = self._present()
        stated = {item.key: item for item in items}
        items, unmerged = self._with_changes(items, present, options)
        checks = (
            decoded.errors,
            unmerged,
            _of_other_namespaces(items, options.namespace),
            conflicts(items, desired_elsewhere),
            presence_refused(items, present, options.verb),
            _unchangeable(items, present),
            self._without_memory(items),
        )
        errors = tuple(error for found in checks for error in found)
        if not errors and len(present.keys() | {item.key for item in items}) > MAX_APPLIED_OBJECTS:
            errors = (_refused(file, f"more than {MAX_APPLIED_OBJECTS} applied objects"),)
        if errors:
            return ApplyResult(errors=errors)
        lines = tuple(self._store(item, present.get(item.key), stated[item.key], options) for item in items)
        if not options.dry_run:
            self._sync(items)
        return ApplyResult(
            lines=lines,
            warnings=tuple(warning for item in items for warning in self._warnings(item)),
            values=tuple(item.value for item in items),
        )

    def find(self, key: Key) -> Item | None:
        """The object, if it is here."""
        return self._present().get(key)

    def changed(self, present: Item, patch_type: str, body: bytes) -> Value:
        """An object after a patch. It looks at nothing that is stored: others are changed meanwhile.

        Made in a thread of the master and not apart, as heavy files are: a body has at most 1 MiB (``MAX_BODY_BYTES``),
        and the costliest of thirteen such bodies kept the loop waiting for 92 ms on an idle host, 193 ms on a busy one.

        Raises FieldErrors for what would come of it, and PatchError for a patch that does not fit.
        """
        return changed_object(present.value, patch_type, body, self._origin)

    def replace(self, present: Item, value: Value, *, dry_run: bool = False) -> ApplyResult | None:
        """Give the object that was found this value; None when it is another one by now, or gone. The line says
        ``patched`` or ``unchanged``. Raises OSError."""
        key = present.key
        found = self._present().get(key)
        if found is None or found.value != present.value:
            return None
        item: Item = ManifestPod(pod=value) if isinstance(value, Pod) else ManifestObject(object=value)
        errors = (*_unchangeable((item,), {key: present}), *self._without_memory((item,)))
        if errors:
            return ApplyResult(errors=errors)
        if not _same(value, present.value) and not dry_run:
            if not self._last_path(key).exists():
                self._keep_last(key, present.value)
            self._write(item)
            self._sync((item,))
        outcome = "unchanged" if _same(value, present.value) else "patched"
        return ApplyResult(lines=(f"{_name(item)} {outcome}",), warnings=self._warnings(item), values=(value,))

    def _warnings(self, item: Item) -> tuple[str, ...]:
        if isinstance(item, ManifestPod):
            return tuple(self._warnings_of(item.pod))
        if isinstance(item.object, Secret) and self._secrets is not None and self._secrets.loss:
            return (f"{_name(item)} {self._secrets.loss}: appliedSecrets: Encrypted keeps it on disk",)
        return ()

    def _present(self) -> dict[Key, Item]:
        stored = self.read()
        return {**{item.key: item for item in stored.pods}, **{item.key: item for item in stored.objects}}

    def delete(self, key: Key) -> bool:
        """Forget one object; False when it is not here. Raises OSError."""
        self._forget_last(key)
        is_removed = remove_durably(self._path(key))
        return self._known.pop(file_name(key), None) is not None or is_removed

    def _without_memory(self, items: Iterable[Item]) -> tuple[ManifestError, ...]:
        """Why Secrets cannot be kept, if there are any."""
        secrets = [item for item in items if isinstance(item, ManifestObject) and isinstance(item.object, Secret)]
        if not secrets:
            return ()
        try:
            if self._secrets is None:
                raise NotMemory("there is no directory in memory")
            self._secrets.make()
        except (NotMemory, OSError) as error:
            why = f"Secrets cannot be kept: {error}"
            return tuple(error_about(item, ManifestErrorKind.UNREADABLE, "", why) for item in secrets)
        return ()

    def _with_changes(
        self, items: Iterable[Item], present: Mapping[Key, Item], options: ApplyOptions
    ) -> tuple[list[Item], tuple[ManifestError, ...]]:
        """The items with what commands have changed of the objects since they were applied, unless these are to be
        replaced; and errors of what cannot be merged."""
        found: list[Item] = []
        errors: list[ManifestError] = []
        for item in items:
            last = self._last(item.key) if options.verb == "apply" and item.key in present else None
            try:
                found.append(item if last is None else merged(last, item, present[item.key].value, self._origin))
            except PatchError as error:
                errors.append(error_about(item, ManifestErrorKind.INVALID, "", str(error)))
            except FieldErrors as wrong:
                errors += [
                    error_about(item, ManifestErrorKind.INVALID, error.path, error.message) for error in wrong.errors
                ]
        return found, tuple(errors)

    def _last(self, key: Key) -> Pod | ConfigObject | None:
        """The object as it was applied last, if a command has changed it since."""
        path = self._last_path(key)

        def decode(data: bytes) -> Pod | ConfigObject:
            decoded = decode_manifest(self._opened(key, path.name, data), path.name, self._origin)
            if decoded.errors:
                raise UntrustedFile(str(decoded.errors[0]))
            items: tuple[Item, ...] = (*decoded.pods, *decoded.objects)
            return items[0].value

        found = usable_state(path, MAX_SEALED_BYTES, decode, "what was applied last", log)
        if found is None:
            self._lasts.discard(path)
        return found

    def _forget_last(self, key: Key) -> None:
        path = self._last_path(key)
        self._lasts.discard(path)
        remove_durably(path)

    def _keep_last(self, key: Key, value: Pod | ConfigObject) -> None:
        make_private(self._last_path(key).parent)
        write_atomically(self._last_path(key), self._sealed(key, value))
        self._lasts.look((self._last_path(key),))

    def _last_path(self, key: Key) -> Path:
        path = self._path(key)
        return last_directory(path.parent) / path.name

    def _store(self, item: Item, present: Item | None, stated: Item, options: ApplyOptions) -> str:
        is_same = present is not None and _same(item.value, present.value)
        if not options.dry_run:
            if item is not stated:
                self._keep_last(item.key, stated.value)
            elif options.verb == "replace":
                self._forget_last(item.key)
        if not is_same and not options.dry_run:
            self._write(item)
        if options.verb == "replace":
            outcome = "replaced"
        else:
            outcome = "unchanged" if is_same else "created" if present is None else "configured"
        return f"{_name(item)} {outcome}{' (server dry run)' if options.dry_run else ''}"

    def _write(self, item: Item) -> None:
        """Store the object, and what a reading of its file would find; `_sync` makes it durable. Raises OSError."""
        path, reader = self._path(item.key), self._reader_of(item.key)
        replace_file(path, self._sealed(item.key, item.value))
        if isinstance(item, ManifestPod):
            found = DecodedFile(pods=(ManifestPod(pod=item.pod, file=path.name, document=1),))
        else:
            found = DecodedFile(objects=(ManifestObject(object=item.object, file=path.name, document=1),))
        reader.remember(path, found)
        self._known[path.name] = item

    def _sealed(self, key: Key, value: Pod | ConfigObject) -> bytes:
        """The object in the form of its place. Raises OSError."""
        content = msgspec.json.encode(value)
        return self._secrets.seal(file_name(key), content) if self._secrets and _is_secret(key) else content

    def _opened(self, key: Key, name: str, content: bytes) -> bytes:
        """Raises NotOpened."""
        return self._secrets.open(name, content) if self._secrets and _is_secret(key) else content

    def _sync(self, items: Iterable[Item]) -> None:
        """Make the stored objects survive a power cut. Raises OSError."""
        for directory in {self._reader_of(item.key).path for item in items}:
            sync_directory(directory)

    def _path(self, key: Key) -> Path:
        return self._reader_of(key).path / file_name(key)

    def _reader_of(self, key: Key) -> ManifestReader:
        return self._secrets_reader if _is_secret(key) else self._reader


def _is_secret(key: Key) -> bool:
    return isinstance(key, ObjectKey) and key.kind is ObjectKind.SECRET


def file_name(key: Key) -> str:
    """``default.web.json`` or ``configmap_default.web.json``; of what is too long or no name at all, a hash."""
    if isinstance(key, ObjectKey):
        prefix, stem = f"{key.kind.lower()}_", ".".join(filter(None, (key.namespace, key.name)))
    else:
        prefix, stem = "", ".".join(key)
    if not _PLAIN_STEM.fullmatch(stem):
        stem = hashlib.sha256(stem.encode(errors="surrogatepass")).hexdigest()
    return f"{prefix}{stem}.json"


def _names_in(directory: Path) -> frozenset[str]:
    """None where there is no directory. Raises OSError."""
    try:
        return frozenset(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()


def _name(item: Item) -> str:
    return f"{item.value.kind.lower()}/{item.value.metadata.name}"


def _same(one: Pod | ConfigObject, other: Pod | ConfigObject) -> bool:
    if not (isinstance(one, Pod) and isinstance(other, Pod)):
        return one == other
    return (one.metadata.uid, one.metadata.annotations[CONFIG_HASH]) == (
        other.metadata.uid,
        other.metadata.annotations[CONFIG_HASH],
    )


def conflicts(items: Iterable[Item], desired_elsewhere: Mapping[Key, str]) -> tuple[ManifestError, ...]:
    """One error for every object that another source or an earlier document claims."""
    holders = dict(desired_elsewhere)
    errors = []
    for item in items:
        if item.key in holders:
            why = f"{item.title} already comes from {holders[item.key]}"
            errors.append(error_about(item, ManifestErrorKind.CONFLICT, "metadata.name", why))
        holders.setdefault(item.key, f"document {item.document}")
    return tuple(errors)


def _of_other_namespaces(items: Iterable[Item], namespace: str) -> tuple[ManifestError, ...]:
    """Errors for objects that state another namespace than the one that was asked for, in kubectl's words."""
    stated = ((item, item.value.metadata.namespace) for item in items)
    return tuple(
        error_about(
            item,
            ManifestErrorKind.INVALID,
            "metadata.namespace",
            f'the namespace from the provided object "{found}" does not match the namespace "{namespace}". '
            f"You must pass '--namespace={found}' to perform this operation.",
        )
        for item, found in stated
        if namespace and found not in ("", namespace)
    )


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
