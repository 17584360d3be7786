"""From the bytes of a manifest to pods. Pure.

Kinds: ``Pod``, ``PodList`` and ``List`` of Pods (pkg/kubelet/config/common.go, tryDecodeSinglePod and tryDecodePodList;
upstream takes one Pod per file). A document is taken whole or not at all, a list included. Every finding names file,
document and field.

A field that Rootlet knows but would be wrong or unsafe to ignore (`Support.REFUSED`) is an error of the document, not a
matter of admission: so a bad edit leaves the accepted pod as it is, also over a restart.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ipc.api import (
    MAX_FIELD_ERRORS,
    FieldError,
    FieldErrors,
    Pod,
    Support,
    decode_pod,
    default_pod,
    unsupported_fields,
    validate_pod,
)
from ipc.api.defaults import DEFAULT_NAMESPACE
from supervisor.sources.documents import Document, read_documents
from supervisor.sources.identity import Origin, identify
from supervisor.sources.types import DecodedFile, ManifestError, ManifestErrorKind, ManifestPod, PodKey, printable

MAX_PODS_PER_FILE: Final = 1_000
"""Most pods that one file may state, in all its documents."""
MAX_ERRORS_PER_FILE: Final = 100
"""Most findings reported for one file."""
MAX_KIND_CHARS: Final = 64
_LIST_KINDS: Final = frozenset({"PodList", "List"})
_MAX_NAME_CHARS: Final = 253


def decode_manifest(data: bytes, file: str, origin: Origin) -> DecodedFile:
    """Everything that a file states. The pods are defaulted, valid and identified.

    When there are errors, the good documents are given all the same: what to do about the others is the business of
    whoever knows what the file stated before (see `merge`).
    """
    read = read_documents(data)
    pods: list[ManifestPod] = []
    errors = [
        _error(ManifestErrorKind.SYNTAX, file, error.number, FieldError(error.field, error.message))
        for error in read.errors
    ]
    for document in read.documents:
        stated, wrong = _decode_document(document, file, origin)
        if len(pods) + len(stated) > MAX_PODS_PER_FILE:
            wrong = (
                _invalid(file, document.number, FieldError("", f"more than {MAX_PODS_PER_FILE} pods in one file")),
            )
        if wrong:
            errors.extend(wrong)
        else:
            pods.extend(stated)
    if not read.documents and not errors:
        errors.append(_invalid(file, 0, FieldError("", "states nothing; to take its pods away, remove the file")))
    return DecodedFile(tuple(pods), tuple(errors[:MAX_ERRORS_PER_FILE]))


def _decode_document(
    document: Document, file: str, origin: Origin
) -> tuple[tuple[ManifestPod, ...], tuple[ManifestError, ...]]:
    """The pods of one document, or what is wrong with it."""
    pods, errors = [], []
    try:
        for path, item in _items(document.value):
            try:
                pod = _decode_item(item, origin)
            except FieldErrors as found:
                errors += [
                    _invalid(
                        file, document.number, FieldError(_join(path, error.path), error.message), _stated_key(item)
                    )
                    for error in found.errors
                ]
            else:
                pods.append(ManifestPod(pod=pod, file=file, document=document.number))
            if len(pods) > MAX_PODS_PER_FILE or len(errors) >= MAX_ERRORS_PER_FILE:
                break
    except FieldErrors as found:
        errors = [_invalid(file, document.number, error) for error in found.errors]
    return tuple(pods), tuple(errors)


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    """The pods-to-be of a document with their paths in it. Raises FieldErrors."""
    kind = value.get("kind") if isinstance(value, Mapping) else None
    if not isinstance(kind, str) or kind == "Pod":
        yield "", value
        return
    if kind not in _LIST_KINDS:
        message = f"{kind[:MAX_KIND_CHARS]} is not supported here; a manifest holds Pod, PodList or List"
        raise FieldErrors([FieldError("kind", message)])
    yield from _list_items(value, kind)


def _list_items(value: Mapping[str, Any], kind: str) -> Iterator[tuple[str, Any]]:
    items = [] if value.get("items") is None else value["items"]
    wrong = [
        FieldError(name, message)
        for name, is_wrong, message in (
            ("apiVersion", value.get("apiVersion") != "v1", "must be v1"),
            ("items", not isinstance(items, list), "expected array"),
            *((name, True, "unknown field") for name in value.keys() - {"apiVersion", "kind", "metadata", "items"}),
        )
        if is_wrong
    ]
    if wrong:
        raise FieldErrors(wrong)
    # The items of a typed list need not repeat their type.
    implied = {"apiVersion": "v1", "kind": "Pod"} if kind == "PodList" else {}
    for index, item in enumerate(items):
        yield f"items[{index}]", {**implied, **item} if isinstance(item, Mapping) else item


def _decode_item(value: Any, origin: Origin) -> Pod:
    """One pod: decoded, defaulted, identified, validated, and without a field that is refused. Raises FieldErrors."""
    pod = identify(default_pod(decode_pod(value)), origin)
    if errors := (*validate_pod(pod), *_refused_fields(pod)):
        raise FieldErrors(errors)
    return pod


def _refused_fields(pod: Pod) -> Iterator[FieldError]:
    """At most MAX_FIELD_ERRORS of them."""
    refused = (found for found in unsupported_fields(pod) if found.support is Support.REFUSED)
    for finding in itertools.islice(refused, MAX_FIELD_ERRORS):
        yield FieldError(finding.path, f"not supported: {finding.why}")


def _stated_key(value: Any) -> PodKey:
    """Namespace and name that a bad pod states, as far as they can be read."""
    metadata = value.get("metadata") if isinstance(value, Mapping) else None
    if not isinstance(metadata, Mapping) or not isinstance(name := metadata.get("name"), str) or not name:
        return "", ""
    namespace = metadata.get("namespace") or DEFAULT_NAMESPACE
    return str(namespace)[:_MAX_NAME_CHARS], name[:_MAX_NAME_CHARS]


def _invalid(file: str, document: int, error: FieldError, key: PodKey = ("", "")) -> ManifestError:
    return _error(ManifestErrorKind.INVALID, file, document, error, key)


def _error(
    kind: ManifestErrorKind, file: str, document: int, error: FieldError, key: PodKey = ("", "")
) -> ManifestError:
    """Names and keys of a refused manifest may hold any character, and an error about it travels far."""
    return ManifestError(
        kind=kind,
        file=file,
        document=document,
        field=printable(error.path),
        message=printable(error.message),
        namespace=printable(key[0]),
        name=printable(key[1]),
    )


def _join(path: str, below: str) -> str:
    return f"{path}.{below}" if path and below else path or below
