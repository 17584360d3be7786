"""Table of the kinds of documents and their decoders, and of lists of them. Pure.

Kinds: ``Pod``, ``ConfigMap``, ``Secret``, ``PriorityClass``, ``RuntimeClass``, ``PersistentVolume``,
``PersistentVolumeClaim``, a typed list of each, and ``List`` of any of them
(pkg/kubelet/config/common.go, tryDecodeSinglePod and tryDecodePodList; upstream takes one Pod per file).

A field that Rootlet knows but would be wrong or unsafe to ignore (`Support.REFUSED`) is an error of the document, not a
matter of admission: so a bad edit leaves the accepted pod as it is, also over a restart.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from ipc.host.text.json_types import Json
from ipc.k8s.api.decode import (
    MAX_FIELD_ERRORS,
    MEANT,
    decode_config_map,
    decode_persistent_volume,
    decode_persistent_volume_claim,
    decode_pod,
    decode_priority_class,
    decode_rest_of_pod,
    decode_runtime_class,
    decode_secret,
)
from ipc.k8s.api.defaults import (
    default_persistent_volume,
    default_persistent_volume_claim,
    default_pod,
    default_runtime_class,
    default_secret,
)
from ipc.k8s.api.errors import FieldError, FieldErrors, is_type_word, redacted
from ipc.k8s.api.support.findings import unsupported_fields
from ipc.k8s.api.support.table import Support
from ipc.k8s.api.v1.config_objects import ConfigMap, Secret
from ipc.k8s.api.v1.persistent_volume import PersistentVolume, PersistentVolumeClaim
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.scheduling import PriorityClass, RuntimeClass
from ipc.k8s.api.validation.classes import validate_priority_class, validate_runtime_class
from ipc.k8s.api.validation.config_objects import validate_config_map, validate_secret
from ipc.k8s.api.validation.names import DNS_SUBDOMAIN
from ipc.k8s.api.validation.persistent_volumes import validate_persistent_volume, validate_persistent_volume_claim
from ipc.k8s.api.validation.pods.pod import validate_pod
from ipc.k8s.podobjects.config_objects import ConfigObject
from supervisor.sources.objects.identity import Origin, identify, identify_object, in_namespace

Stated = Pod | ConfigObject

_LIST: Final = "List"
_LISTS: Final[Mapping[str, tuple[str, str]]] = {
    "PodList": ("v1", "Pod"),
    "ConfigMapList": ("v1", "ConfigMap"),
    "SecretList": ("v1", "Secret"),
    "PriorityClassList": ("scheduling.k8s.io/v1", "PriorityClass"),
    "PersistentVolumeList": ("v1", "PersistentVolume"),
    "PersistentVolumeClaimList": ("v1", "PersistentVolumeClaim"),
    "RuntimeClassList": ("node.k8s.io/v1", "RuntimeClass"),
    _LIST: ("v1", ""),
}
"""Kind of a list to its version and the kind of its items, which then need not repeat them."""
MAX_KIND_CHARS: Final = 64
MAX_ENCODED_POD_BYTES: Final = 3 << 19
"""Largest pod in a message to its worker, in bytes: what etcd takes of a request (its default --max-request-bytes). In
a frame of that link it has place beside `supervisor.managers.object_store.MAX_POD_BYTES` of objects and what was
observed; a pod that has none could be neither synced nor stopped."""


def posted_items_of(value: Any) -> Iterator[tuple[str, Any]]:
    """The items of a list, as the first kubelet's ``/containers`` took it; else those that a manifest has. Raises
    FieldErrors."""
    if isinstance(value, list):
        yield from ((f"[{index}]", item) for index, item in enumerate(value))
    else:
        yield from items_of(value)


def items_of(value: Any) -> Iterator[tuple[str, Any]]:
    """The objects-to-be of a document with their paths in it. Raises FieldErrors."""
    kind = value.get("kind") if isinstance(value, Mapping) else None
    if isinstance(kind, str) and kind in _LISTS:
        yield from _list_items(value, *_LISTS[kind])
    else:
        yield "", value


def _list_items(value: Json, version: str, kind: str) -> Iterator[tuple[str, object]]:
    items = [] if value.get("items") is None else value["items"]
    wrong = [
        FieldError(name, message)
        for name, is_wrong, message in (
            ("apiVersion", value.get("apiVersion") != version, f"must be {version}"),
            ("items", not isinstance(items, list), "expected array"),
            *((name, True, "unknown field") for name in value.keys() - {"apiVersion", "kind", "metadata", "items"}),
        )
        if is_wrong
    ]
    if wrong:
        raise FieldErrors(wrong)
    implied = {"apiVersion": version, "kind": kind} if kind else {}
    for index, item in enumerate(items):
        yield f"items[{index}]", {**implied, **item} if isinstance(item, Mapping) else item


def decode_item(value: Any, origin: Origin) -> Stated:
    """One object: decoded, defaulted, identified, valid. One that says no kind is read as a Pod. Raises FieldErrors."""
    kind = value.get("kind") if isinstance(value, Mapping) else None
    if not isinstance(kind, str):
        return _pod(value, origin)
    decode = _KINDS.get(kind)
    if decode is None:
        holds = ", ".join((*_KINDS, *(name for name in _LISTS if name != _LIST)))
        stated = kind[:MAX_KIND_CHARS] if is_type_word(kind[:MAX_KIND_CHARS]) else "this"
        message = f"{stated}{_shown_name(value)} is not supported here; a manifest holds {holds} or {_LIST}"
        raise FieldErrors([FieldError("kind", message)])
    return decode(value, origin)


def _shown_name(value: Json) -> str:
    """Name of an object of a kind that nobody here knows, if it is a name: it may be a piece of anything."""
    metadata = value.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return f' "{name}"' if isinstance(name, str) and DNS_SUBDOMAIN.problem(name) is None else ""


def _pod(value: object, origin: Origin) -> Pod:
    """Without a field that is refused."""
    try:
        decoded = decode_pod(value)
    except FieldErrors as found:
        raise FieldErrors(_all_errors(found.errors, decode_rest_of_pod(value))) from None
    pod = identify(default_pod(in_namespace(decoded, origin)), origin)
    _raise_if(_too_large(pod))
    _raise_if((*validate_pod(pod), *_refused_fields(pod)))
    return pod


def _all_errors(found: tuple[FieldError, ...], rest: Pod | None) -> tuple[FieldError, ...]:
    """Errors of a pod's shape and of the rest of it, one for each field. A field that is missing because its name was
    misspelt is not told of a second time."""
    meant = {_meant_path(error) for error in found}
    pod = default_pod(rest) if rest is not None else None
    further = (*validate_pod(pod), *_refused_fields(pod)) if pod is not None else ()
    by_path: dict[str, FieldError] = {}
    for error in (*found, *further):
        if error.path not in meant:
            by_path.setdefault(error.path, error)
    return tuple(by_path.values())[:MAX_FIELD_ERRORS]


def _meant_path(error: FieldError) -> str | None:
    """Path of the field that an unknown one is like."""
    _, is_unknown, meant = error.message.partition(MEANT)
    parent, dot, _ = error.path.rpartition(".")
    return f"{parent}{dot}{meant.removesuffix('?')}" if is_unknown else None


def _too_large(pod: Pod) -> tuple[FieldError, ...]:
    """Defaults and aliases count: a pod may be larger than the file that states it."""
    size_bytes = len(msgspec.msgpack.encode(pod))
    if size_bytes <= MAX_ENCODED_POD_BYTES:
        return ()
    why = f"takes {size_bytes} bytes, more than the {MAX_ENCODED_POD_BYTES} that a worker can be sent of a pod"
    return (FieldError("", why),)


def _refused_fields(pod: Pod) -> Iterator[FieldError]:
    """At most MAX_FIELD_ERRORS of them."""
    refused = unsupported_fields(pod, frozenset({Support.REFUSED}))
    for finding in itertools.islice(refused, MAX_FIELD_ERRORS):
        yield FieldError(finding.path, f"not supported: {finding.why}")


def _config_map(value: object, origin: Origin) -> ConfigMap:
    config_map = identify_object(decode_config_map(value), origin)
    _raise_if(validate_config_map(config_map))
    return config_map


def _secret(value: object, origin: Origin) -> Secret:
    """No finding repeats any value, not even one of its metadata."""
    secret = identify_object(default_secret(decode_secret(value)), origin)
    _raise_if(tuple(map(redacted, validate_secret(secret))))
    return secret


def _priority_class(value: object, origin: Origin) -> PriorityClass:
    found = decode_priority_class(value)
    _raise_if(validate_priority_class(found))
    return identify_object(found, origin)


def _runtime_class(value: object, origin: Origin) -> RuntimeClass:
    found = default_runtime_class(decode_runtime_class(value))
    _raise_if(validate_runtime_class(found))
    return identify_object(found, origin)


def _persistent_volume(value: object, origin: Origin) -> PersistentVolume:
    found = default_persistent_volume(decode_persistent_volume(value))
    _raise_if(validate_persistent_volume(found))
    return identify_object(found, origin)


def _persistent_volume_claim(value: object, origin: Origin) -> PersistentVolumeClaim:
    found = default_persistent_volume_claim(decode_persistent_volume_claim(value))
    _raise_if(validate_persistent_volume_claim(found))
    return identify_object(found, origin)


def _raise_if(errors: tuple[FieldError, ...]) -> None:
    if errors:
        raise FieldErrors(errors)


_KINDS: Final[Mapping[str, Callable[[object, Origin], Stated]]] = {
    "Pod": _pod,
    "ConfigMap": _config_map,
    "Secret": _secret,
    "PriorityClass": _priority_class,
    "PersistentVolume": _persistent_volume,
    "PersistentVolumeClaim": _persistent_volume_claim,
    "RuntimeClass": _runtime_class,
}
