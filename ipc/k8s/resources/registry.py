"""The table of all kinds of objects that the admin socket serves, and their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ipc.k8s.resources import columns
from ipc.k8s.resources.resource import OURS, Resource

_META: Final = ("metadata.name", "metadata.namespace")
ALL: Final = "all"
"""The category of what people mean who want to see what runs."""

PODS: Final = Resource(
    plural="pods",
    kind="Pod",
    short_names=("po",),
    categories=(ALL,),
    columns=columns.PODS,
    fields=frozenset(
        (
            *(*_META, "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName"),
            *("spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName"),
        )
    ),
)
NODES: Final = Resource(
    plural="nodes",
    kind="Node",
    short_names=("no",),
    is_namespaced=False,
    columns=columns.NODES,
    fields=frozenset(("metadata.name", "spec.unschedulable")),
)
EVENTS: Final = Resource(
    plural="events",
    kind="Event",
    short_names=("ev",),
    columns=columns.EVENTS,
    fields=frozenset(
        (
            *(*_META, "involvedObject.kind", "involvedObject.name", "involvedObject.namespace", "involvedObject.uid"),
            *("involvedObject.apiVersion", "involvedObject.fieldPath", "reason", "reportingComponent"),
            *("source", "type"),
        )
    ),
)
NAMESPACES: Final = Resource(
    plural="namespaces",
    kind="Namespace",
    short_names=("ns",),
    is_namespaced=False,
    is_watched=False,
    columns=columns.NAMESPACES,
    fields=frozenset(("metadata.name", "status.phase")),
)
CONFIG_MAPS: Final = Resource(
    plural="configmaps",
    kind="ConfigMap",
    short_names=("cm",),
    root=OURS,
    columns=columns.CONFIG_MAPS,
)
SECRETS: Final = Resource(
    plural="secrets",
    kind="Secret",
    root=OURS,
    columns=columns.SECRETS,
    fields=frozenset((*_META, "type")),
)
PRIORITY_CLASSES: Final = Resource(
    plural="priorityclasses",
    kind="PriorityClass",
    short_names=("pc",),
    is_namespaced=False,
    api_version="scheduling.k8s.io/v1",
    root=OURS,
    columns=columns.PRIORITY_CLASSES,
)
RUNTIME_CLASSES: Final = Resource(
    plural="runtimeclasses",
    kind="RuntimeClass",
    is_namespaced=False,
    api_version="node.k8s.io/v1",
    root=OURS,
    columns=columns.RUNTIME_CLASSES,
)
PERSISTENT_VOLUMES: Final = Resource(
    plural="persistentvolumes",
    kind="PersistentVolume",
    short_names=("pv",),
    is_namespaced=False,
    root=OURS,
    columns=columns.PERSISTENT_VOLUMES,
    fields=frozenset(("metadata.name",)),
)
PERSISTENT_VOLUME_CLAIMS: Final = Resource(
    plural="persistentvolumeclaims",
    kind="PersistentVolumeClaim",
    short_names=("pvc",),
    root=OURS,
    columns=columns.PERSISTENT_VOLUME_CLAIMS,
)
WORKERS: Final = Resource(
    plural="workers",
    kind="Worker",
    is_namespaced=False,
    api_version="rootlet.dev/v1alpha1",
    root=OURS,
    is_watched=False,
    columns=columns.WORKERS,
)
RESOURCES: Final = (
    *(PODS, NODES, EVENTS, NAMESPACES, CONFIG_MAPS, SECRETS, PRIORITY_CLASSES),
    *(RUNTIME_CLASSES, PERSISTENT_VOLUMES, PERSISTENT_VOLUME_CLAIMS, WORKERS),
)
APPLIED: Final = (
    *(PODS, CONFIG_MAPS, SECRETS, PRIORITY_CLASSES),
    *(RUNTIME_CLASSES, PERSISTENT_VOLUMES, PERSISTENT_VOLUME_CLAIMS),
)
"""Kinds of which there are manifests."""
BY_PLURAL: Final[Mapping[str, Resource]] = {resource.plural: resource for resource in RESOURCES}
BY_KIND: Final[Mapping[str, Resource]] = {resource.kind: resource for resource in RESOURCES}
_BY_NAME: Final[Mapping[str, Resource]] = {name: resource for resource in RESOURCES for name in resource.names}


def find_resource(word: str) -> Resource | None:
    """The kind that people call so, in whatever case; None for none. A group or version may follow the name, as in
    ``pods.v1.`` (cli-runtime pkg/resource, builder.go)."""
    return _BY_NAME.get(word.lower().partition(".")[0])


def in_category(word: str) -> tuple[Resource, ...]:
    """The kinds of a category, such as ``all``; empty for a word that names none."""
    return tuple(resource for resource in RESOURCES if word in resource.categories)
