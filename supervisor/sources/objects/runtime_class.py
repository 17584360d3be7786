"""Overhead of RuntimeClasses, put into the pods that name them. Pure.

Does what the API server's admission plugin does when a pod is created (plugin/pkg/admission/runtimeclass/admission.go,
setOverhead), at every merge of the sources, as `priority` does. Different on purpose: an overhead that a manifest
states counts, and a pod whose class is not known keeps the overhead that it had.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.scheduling import RuntimeClass
from ipc.k8s.podobjects.config_objects import ConfigObject

RuntimeClasses = Mapping[str, RuntimeClass]
"""Classes of documents by name."""


def runtime_classes(objects: Iterable[ConfigObject]) -> RuntimeClasses:
    """The classes among the objects."""
    return {found.metadata.name: found for found in objects if isinstance(found, RuntimeClass)}


def with_overhead(stated: Pod, existing: Pod | None, classes: RuntimeClasses) -> Pod:
    """The pod with the overhead of its class, if it states none of its own. ``existing``: the same pod as it was
    accepted before."""
    name = stated.spec.runtime_class_name
    if not name or stated.spec.overhead:
        return stated
    found = classes.get(name)
    if found is not None:
        overhead = found.overhead.pod_fixed if found.overhead is not None else {}
    else:
        overhead = existing.spec.overhead if existing and existing.spec.runtime_class_name == name else {}
    return msgspec.structs.replace(stated, spec=msgspec.structs.replace(stated.spec, overhead=overhead))
