"""Pods and objects of documents as sources state them, and the errors of documents. Pure."""

from __future__ import annotations

import enum
import functools
from collections.abc import Hashable

import msgspec

from ipc.host.clock import parse_rfc3339
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podobjects.config_objects import ConfigObject, ObjectKey, object_key

FILE_SOURCE = "file"
"""The manifest directory or single file (pkg/kubelet/types/pod_update.go, FileSource)."""
APPLY_SOURCE = "apply"
"""Manifests that `rootlet apply` was given."""
HTTP_SOURCE = "http"
"""The manifest of a URL, or one that was posted (pkg/kubelet/types/pod_update.go, HTTPSource)."""

PodKey = tuple[str, str]
"""Namespace and name: what one pod at a time may claim."""


def pod_key(pod: Pod) -> PodKey:
    """Namespace and name (upstream: GetPodFullName)."""
    return pod.metadata.namespace, pod.metadata.name


def created_at(pod: Pod) -> float:
    """Epoch seconds; 0.0 for one that does not say, or not in RFC 3339."""
    return _epoch_s(pod.metadata.creation_timestamp or "")


@functools.lru_cache(maxsize=64)
def _epoch_s(timestamp: str) -> float:
    """Kept of the newest: pods that come together share it, and are sorted by it more than once."""
    try:
        return parse_rfc3339(timestamp)
    except ValueError:
        return 0.0


class ManifestErrorKind(enum.StrEnum):
    """Kind of an error, for callers to decide on; its text is for people."""

    UNREADABLE = "Unreadable"
    """The file or directory cannot be read, is no regular file, or is too large."""
    CHANGING = "Changing"
    """The file is being written; it is read again when it holds still."""
    SYNTAX = "Syntax"
    """Not YAML or JSON, or above one of the maxima of `documents`."""
    INVALID = "Invalid"
    """A document of another kind than those of `kinds`, or with a field that is wrong or not supported."""
    CONFLICT = "Conflict"
    """Another document claimed the name first (upstream: FailedValidation, duplicate pod name)."""
    IMMUTABLE = "Immutable"
    """The document changes what may not change: the object stays as it was."""
    EXISTS = "AlreadyExists"
    """The object is to be created and is there."""
    ABSENT = "NotFound"
    """The object is to be replaced and is not there."""


class ManifestError(msgspec.Struct, frozen=True, kw_only=True):
    """A document that a source states and that does not count."""

    kind: ManifestErrorKind
    file: str
    """Name of the file within its directory; the directory itself when it cannot be listed."""
    document: int = 0
    """Counted from 1; 0 is the file as a whole."""
    field: str = ""
    """JSON path within the document."""
    message: str
    namespace: str = ""
    name: str = ""
    """The object that the document is about, where it says so readably: for the event."""

    def __str__(self) -> str:
        document = f"document {self.document}" if self.document else ""
        return ": ".join(part for part in (self.file, document, self.field, self.message) if part)


class ManifestPod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod, decoded, defaulted, valid and identified, and where it stands."""

    pod: Pod
    file: str = ""
    document: int = 0

    @property
    def value(self) -> Pod:
        """The object itself."""
        return self.pod

    @property
    def key(self) -> PodKey:
        """Key of the pod: by it documents are the same or not."""
        return pod_key(self.pod)

    @property
    def title(self) -> str:
        """Kind and key of the pod, for people."""
        return f"pod {'/'.join(self.key)}"


class ManifestObject(msgspec.Struct, frozen=True, kw_only=True):
    """A ConfigMap or Secret, decoded, valid and identified, and where it stands."""

    object: ConfigObject
    file: str = ""
    document: int = 0

    @property
    def value(self) -> ConfigObject:
        """The object itself."""
        return self.object

    @property
    def key(self) -> ObjectKey:
        """Key of the object: by it documents are the same or not."""
        return object_key(self.object)

    @property
    def title(self) -> str:
        """Kind and key of the object, for people."""
        return str(self.key)


class DecodedFile(msgspec.Struct, frozen=True, kw_only=True):
    """Pods, objects and errors of one file, in the order of its documents."""

    pods: tuple[ManifestPod, ...] = ()
    objects: tuple[ManifestObject, ...] = ()
    errors: tuple[ManifestError, ...] = ()


class SourceSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Pods, objects and errors of a source at one moment."""

    source: str
    pods: tuple[ManifestPod, ...] = ()
    objects: tuple[ManifestObject, ...] = ()
    errors: tuple[ManifestError, ...] = ()
    skipped: frozenset[str] = frozenset()
    """Names of files beside the manifests that are not read."""
    unread: frozenset[str] = frozenset()
    """Files that are being read: they take their time."""
    complete: bool
    """All files are known (some may be held, see `held_files`). False: nothing may be removed because of it."""
    absent: bool = False
    """Not complete because nothing is at the source's place: it was never made, or is not mounted."""
    incomplete_pods: frozenset[str] = frozenset()
    """UIDs of pods that begin while what they refer to is being read."""

    def held_files(self) -> frozenset[str]:
        """Files with an error, and those that are being read: what they state is only partly known."""
        return self.unread.union(error.file for error in self.errors)


class DesiredPod(ManifestPod, frozen=True, kw_only=True):
    """A pod that was accepted, and which document holds the claim to its name."""

    source: str

    @property
    def claims(self) -> tuple[Hashable, ...]:
        """Claims that only one pod at a time may hold: name and UID."""
        return self.key, self.pod.metadata.uid


class DesiredObject(ManifestObject, frozen=True, kw_only=True):
    """A ConfigMap or Secret that was accepted, and which document holds the claim to its name."""

    source: str

    @property
    def claims(self) -> tuple[Hashable, ...]:
        """Claims that only one object at a time may hold: its name."""
        return (self.key,)


def error_about(item: ManifestPod | ManifestObject, kind: ManifestErrorKind, field: str, message: str) -> ManifestError:
    """Error about a stated object, with its name for the event."""
    metadata = item.value.metadata
    return ManifestError(
        kind=kind,
        file=item.file,
        document=item.document,
        field=field,
        message=message,
        namespace=metadata.namespace,
        name=metadata.name,
    )


class ExpectedObject(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A ConfigMap or Secret that was accepted before the agent was restarted, and where it stood."""

    source: str
    file: str
    key: ObjectKey
    created: str = ""
    """When it was first seen, RFC 3339; empty in what an older version has written."""
