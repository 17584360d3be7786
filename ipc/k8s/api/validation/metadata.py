"""Object metadata, label selectors' keys and label maps.

Source: apimachinery pkg/api/validation/objectmeta.go and pkg/apis/meta/v1/validation.
Differs on purpose: a name is required (`generateName` alone is not enough: nobody would generate one), and a given uid
must fit into a label.
"""

from collections.abc import Mapping
from typing import Final

from ipc.k8s.api.errors import invalid, shown_key, too_long
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.validation.checks import Errors, at_least, if_set, indexed, well_formed
from ipc.k8s.api.validation.names import DNS_LABEL, DNS_SUBDOMAIN, LABEL_VALUE, UID, qualified_name_problem

MAX_ANNOTATIONS_BYTES: Final = 256 * 1024
"""Largest sum of all annotation keys and values, in bytes."""


def validate_metadata(meta: ObjectMeta, path: str) -> Errors:
    """The metadata of a pod."""
    yield from well_formed(f"{path}.name", meta.name, DNS_SUBDOMAIN.problem)
    yield from if_set(f"{path}.generateName", meta.generate_name.removesuffix("-"), DNS_SUBDOMAIN.problem)
    yield from if_set(f"{path}.namespace", meta.namespace, DNS_LABEL.problem)
    yield from if_set(f"{path}.uid", meta.uid, UID.problem)
    yield from at_least(f"{path}.generation", meta.generation, 0)
    yield from at_least(f"{path}.deletionGracePeriodSeconds", meta.deletion_grace_period_seconds, 0)
    yield from validate_labels(meta.labels, f"{path}.labels")
    yield from validate_annotations(meta.annotations, f"{path}.annotations")
    for finalizer_path, finalizer in indexed(f"{path}.finalizers", meta.finalizers):
        yield from well_formed(finalizer_path, finalizer, qualified_name_problem)


def validate_labels(labels: Mapping[str, str], path: str) -> Errors:
    """Label keys and values; also node selectors."""
    for key, value in labels.items():
        below = f"{path}[{shown_key(key)}]"
        if problem := qualified_name_problem(key):
            yield invalid(below, key, problem)
        yield from if_set(below, value, LABEL_VALUE.problem)


def validate_annotations(annotations: Mapping[str, str], path: str) -> Errors:
    """Annotation keys, in which case does not matter, and the size of all of them. Values are free."""
    for key in annotations:
        if problem := qualified_name_problem(key.lower()):
            yield invalid(f"{path}[{shown_key(key)}]", key, problem)
    size_bytes = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size_bytes > MAX_ANNOTATIONS_BYTES:
        yield too_long(path, MAX_ANNOTATIONS_BYTES)
