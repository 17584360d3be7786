"""Summary of an object for the API server: of a ConfigMap or Secret names and sizes, never a value. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Final

from ipc.k8s.api.v1.config_objects import ConfigMap, Secret
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.persistent_volume import PersistentVolume, PersistentVolumeClaim
from ipc.k8s.api.v1.scheduling import PriorityClass, RuntimeClass
from ipc.k8s.podobjects.config_objects import ConfigObject, ObjectKind
from ipc.link.messages.api_server import ObjectSummary
from supervisor.protocol.manifests import DesiredObject

MAX_SHOWN_KEYS: Final = 100
MAX_SHOWN_BYTES: Final = 4096
"""Most keys that are reported by name, and how long these may be together. An object can have a hundred thousand, and
the summaries of all objects go to a new API server at once."""


def summarize(item: DesiredObject) -> ObjectSummary:
    """The object as the API server knows it."""
    found = item.object
    sizes = _sizes(found)
    meta = found.metadata
    return ObjectSummary(
        kind=ObjectKind(found.kind),
        metadata=ObjectMeta(
            name=meta.name,
            namespace=meta.namespace,
            uid=meta.uid,
            labels=meta.labels,
            creation_timestamp=meta.creation_timestamp,
            deletion_timestamp=meta.deletion_timestamp,
        ),
        type=found.type if isinstance(found, Secret) else "",
        immutable=bool(found.immutable)
        if isinstance(found, ConfigMap | Secret)
        else isinstance(found, PriorityClass | RuntimeClass),
        sizes={key: sizes[key] for key in _shown(sizes)},
        keys=len(sizes),
        size_bytes=sum(sizes.values()),
        source=item.source,
        file=item.file,
        priority_class=found if isinstance(found, PriorityClass) else None,
        persistent_volume=found if isinstance(found, PersistentVolume) else None,
        persistent_volume_claim=found if isinstance(found, PersistentVolumeClaim) else None,
        runtime_class=found if isinstance(found, RuntimeClass) else None,
    )


def _shown(keys: Iterable[str]) -> list[str]:
    """The first of them."""
    first = sorted(keys)[:MAX_SHOWN_KEYS]
    lengths = itertools.accumulate(map(len, first))
    return [key for key, length in zip(first, lengths, strict=True) if length <= MAX_SHOWN_BYTES]


def _sizes(found: ConfigObject) -> Mapping[str, int]:
    """In bytes."""
    if isinstance(found, ConfigMap):
        texts = {key: len(text.encode()) for key, text in found.data.items()}
        return texts | {key: len(data) for key, data in found.binary_data.items()}
    return {key: len(data) for key, data in found.data.items()} if isinstance(found, Secret) else {}
