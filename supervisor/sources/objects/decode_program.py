"""Program that decodes manifests for the agent: a request in, an answer out, until its input ends.

Memory and time of a manifest are nobody else's: they end with it. It gives way to the agent's processes, and has a
maximum of memory and of CPU time.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Mapping
from typing import BinaryIO, Final

import msgspec

from ipc.host.text.safe_text import encodable
from ipc.k8s.api.v1.config_objects import ConfigMap, Secret
from ipc.k8s.api.v1.persistent_volume import PersistentVolume, PersistentVolumeClaim
from ipc.k8s.api.v1.scheduling import PriorityClass, RuntimeClass
from ipc.k8s.podobjects.config_objects import ConfigObject, ObjectKind
from supervisor.protocol.manifests import DecodedFile, ManifestError, ManifestObject, ManifestPod
from supervisor.sources.objects.decode import ItemsIn, decode_manifest
from supervisor.sources.objects.identity import Origin
from supervisor.sources.objects.kinds import items_of, posted_items_of

NICENESS: Final = 10
"""Added to that of the agent."""
MEMORY_BYTES: Final = 1 << 30
"""Address space: a manifest of 1 MiB has needed 160 MiB at most."""
SIZE_BYTES: Final = 8
"""Bytes of the size, in network order, that stands before a request and before an answer."""

SHAPES: Final[Mapping[str, ItemsIn]] = {"manifest": items_of, "posted": posted_items_of}
"""Names of what finds the objects of a document."""
_TYPES: Final[Mapping[ObjectKind, type[ConfigObject]]] = {
    ObjectKind.CONFIG_MAP: ConfigMap,
    ObjectKind.SECRET: Secret,
    ObjectKind.PRIORITY_CLASS: PriorityClass,
    ObjectKind.RUNTIME_CLASS: RuntimeClass,
    ObjectKind.PERSISTENT_VOLUME: PersistentVolume,
    ObjectKind.PERSISTENT_VOLUME_CLAIM: PersistentVolumeClaim,
}


class Asked(msgspec.Struct, frozen=True):
    """A file to decode."""

    data: bytes
    file: str
    origin: Origin
    shape: str


class _Object(msgspec.Struct, frozen=True):
    kind: ObjectKind
    object: msgspec.Raw
    document: int


class _Answer(msgspec.Struct, frozen=True):
    """A `DecodedFile`, the kind of each object beside it."""

    pods: tuple[ManifestPod, ...]
    objects: tuple[_Object, ...]
    errors: tuple[ManifestError, ...]


def encode_answer(decoded: DecodedFile) -> bytes:
    objects = tuple(
        _Object(ObjectKind(item.object.kind), msgspec.Raw(_encode(item.object)), item.document)
        for item in decoded.objects
    )
    return _encode(_Answer(decoded.pods, objects, decoded.errors))


def decode_answer(data: bytes, file: str) -> DecodedFile:
    """Raises msgspec.MsgspecError."""
    answer = msgspec.msgpack.decode(data, type=_Answer)
    objects = (
        ManifestObject(
            object=msgspec.msgpack.decode(item.object, type=_TYPES[item.kind]), file=file, document=item.document
        )
        for item in answer.objects
    )
    return DecodedFile(pods=answer.pods, objects=tuple(objects), errors=answer.errors)


def _encode(value: object) -> bytes:
    try:
        return msgspec.msgpack.encode(value)
    except UnicodeEncodeError:  # lone surrogates
        return msgspec.msgpack.encode(encodable(value))


def write_sized(stream: BinaryIO, data: bytes) -> None:
    """Write a request or an answer. Raises OSError."""
    stream.write(len(data).to_bytes(SIZE_BYTES, "big"))
    stream.write(data)
    stream.flush()


def read_sized(stream: BinaryIO) -> bytes | None:
    """A request or an answer; None when the other end has ended."""
    size = stream.read(SIZE_BYTES)
    if len(size) < SIZE_BYTES:
        return None
    data = stream.read(expected := int.from_bytes(size, "big"))
    return data if len(data) == expected else None


def main(cpu_s: int) -> None:
    """Answer requests until there are none. ``cpu_s`` is the CPU time after which the kernel ends this."""
    os.nice(NICENESS)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    while (data := read_sized(sys.stdin.buffer)) is not None:
        asked = msgspec.msgpack.decode(data, type=Asked)
        decoded = decode_manifest(asked.data, asked.file, asked.origin, SHAPES[asked.shape])
        write_sized(sys.stdout.buffer, encode_answer(decoded))
