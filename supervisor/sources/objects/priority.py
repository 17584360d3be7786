"""Numbers in place of the names of PriorityClasses. Pure.

Does what the API server's admission plugin does when a pod is created (plugin/pkg/admission/priority/admission.go,
admitPod), at every merge of the sources, so that the same files give the same priorities in whatever order they were
read. Different on purpose: nobody is there to be refused, so a pod whose class is not known runs all the same, with the
priority that it had before, or with none; and a number that a manifest states counts, as in a static pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.scheduling import PriorityClass
from ipc.k8s.podobjects.config_objects import ConfigObject
from ipc.k8s.scheduling.priority import SYSTEM_CLASSES

_SYSTEM: Final = tuple(
    PriorityClass(metadata=ObjectMeta(name=name), value=value) for name, value in SYSTEM_CLASSES.items()
)


class PriorityClasses(msgspec.Struct, frozen=True):
    """Classes that are there: the system's, and those of documents."""

    by_name: Mapping[str, PriorityClass]
    default: PriorityClass | None
    """Class of pods that name none; of several the one with the lowest value (getDefaultPriorityClass)."""


def priority_classes(objects: Iterable[ConfigObject]) -> PriorityClasses:
    """The classes among the objects, and the system's."""
    stated = [found for found in objects if isinstance(found, PriorityClass)]
    defaults = sorted((found for found in stated if found.global_default), key=lambda c: (c.value, c.metadata.name))
    return PriorityClasses(
        by_name={found.metadata.name: found for found in (*_SYSTEM, *stated)},
        default=defaults[0] if defaults else None,
    )


def with_priority(stated: Pod, existing: Pod | None, classes: PriorityClasses) -> Pod:
    """The pod with its priority and preemption policy as numbers of its class, if it states none of its own.
    ``existing``: the same pod as it was accepted before."""
    spec = stated.spec
    found = classes.by_name.get(spec.priority_class_name) if spec.priority_class_name else classes.default
    if found is None:
        kept = existing.spec.priority if existing is not None and _same_class(existing, stated) else None
        return _with_spec(stated, priority=kept) if spec.priority is None and kept is not None else stated
    return _with_spec(
        stated,
        priority_class_name=found.metadata.name,
        priority=found.value if spec.priority is None else spec.priority,
        preemption_policy=spec.preemption_policy or found.preemption_policy,
    )


def _same_class(existing: Pod, stated: Pod) -> bool:
    name = stated.spec.priority_class_name
    return bool(name) and existing.spec.priority_class_name == name


def _with_spec(pod: Pod, **changes: object) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, **changes))
