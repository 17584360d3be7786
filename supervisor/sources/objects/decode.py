"""Decoding of a manifest from bytes to objects: pods, ConfigMaps and Secrets (`kinds`). Pure.

A document is taken whole or not at all, a list included. Every finding names file, document and field, and none repeats
a value of a Secret: not even where the document cannot be read, and nobody knows of which kind it is.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from ipc.host.text.safe_text import safe_line
from ipc.k8s.api.defaults import DEFAULT_NAMESPACE
from ipc.k8s.api.errors import FieldError, FieldErrors
from ipc.k8s.api.v1.pod import Pod
from supervisor.protocol.manifests import (
    DecodedFile,
    ManifestError,
    ManifestErrorKind,
    ManifestObject,
    ManifestPod,
    PodKey,
)
from supervisor.sources.documents.model import Document
from supervisor.sources.documents.reader import read_documents
from supervisor.sources.objects.identity import Origin
from supervisor.sources.objects.kinds import Stated, decode_item, items_of

MAX_OBJECTS_PER_FILE: Final = 1_000
"""Most pods, ConfigMaps and Secrets that one file may state, in all its documents."""
MAX_ERRORS_PER_FILE: Final = 100
"""Most findings reported for one file."""
_MAX_NAME_CHARS: Final = 253

log = logging.getLogger(__name__)

_Item = tuple[int, Stated]
"""The document that states it, counted from 1."""

ItemsIn = Callable[[object], Iterator[tuple[str, object]]]
"""From a document's value to its objects-to-be, with their paths. Raises FieldErrors."""


def decode_manifest(data: bytes, file: str, origin: Origin, items_in: ItemsIn = items_of) -> DecodedFile:
    """Pods, objects and errors of a file: defaulted, valid and identified.

    When there are errors, the good documents are given all the same: what to do about the others is the business of
    whoever knows what the file stated before (see `merge`). ``items_in`` finds the objects-to-be of a document.
    """
    try:
        read = read_documents(data)
    except Exception as error:
        return DecodedFile(errors=(_unexpected(file, 0, error),))
    items: list[_Item] = []
    errors = [
        _error(ManifestErrorKind.SYNTAX, file, error.number, FieldError(error.field, error.message))
        for error in read.errors
    ]
    for document in read.documents:
        stated, wrong = _decode_document(document, file, origin, items_in)
        if len(items) + len(stated) > MAX_OBJECTS_PER_FILE:
            too_many = FieldError("", f"more than {MAX_OBJECTS_PER_FILE} objects in one file")
            wrong = (_invalid(file, document.number, too_many),)
        if wrong:
            errors.extend(wrong)
        else:
            items.extend((document.number, item) for item in stated)
    if not read.documents and not errors:
        nothing = "has no pod or other object in it; to end the pods that it had before, remove the file"
        errors.append(_invalid(file, 0, FieldError("", nothing)))
    return _decoded_file(items, file, errors[:MAX_ERRORS_PER_FILE])


def _decoded_file(items: Iterable[_Item], file: str, errors: Iterable[ManifestError]) -> DecodedFile:
    pods: list[ManifestPod] = []
    objects: list[ManifestObject] = []
    for document, item in items:
        if isinstance(item, Pod):
            pods.append(ManifestPod(pod=item, file=file, document=document))
        else:
            objects.append(ManifestObject(object=item, file=file, document=document))
    return DecodedFile(pods=tuple(pods), objects=tuple(objects), errors=tuple(errors))


def _decode_document(
    document: Document, file: str, origin: Origin, items_in: ItemsIn
) -> tuple[tuple[Stated, ...], tuple[ManifestError, ...]]:
    """Items that one document states, and the errors in it."""
    stated: list[Stated] = []
    errors: list[ManifestError] = []
    try:
        for path, item in items_in(document.value):
            try:
                stated.append(decode_item(item, origin))
            except FieldErrors as found:
                errors += [
                    _invalid(
                        file, document.number, FieldError(_join(path, error.path), error.message), _desired_key(item)
                    )
                    for error in found.errors
                ]
            if len(stated) > MAX_OBJECTS_PER_FILE or len(errors) >= MAX_ERRORS_PER_FILE:
                break
    except FieldErrors as found:
        errors = [_invalid(file, document.number, error) for error in found.errors]
    except Exception as error:
        errors = [_unexpected(file, document.number, error)]
    return tuple(stated), tuple(errors)


def _unexpected(file: str, document: int, error: Exception) -> ManifestError:
    """A bug of ours, which one file has found. Its own words may be of a Secret: only where it was is logged."""
    where = "".join(traceback.format_tb(error.__traceback__))
    log.error("unexpected %s while decoding %s, document %d:\n%s", type(error).__name__, file, document, where)
    return _invalid(file, document, FieldError("", f"internal error: {type(error).__name__}"))


def _desired_key(value: object) -> PodKey:
    """Namespace and name that a bad object states, as far as they can be read."""
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
        field=safe_line(error.path),
        message=safe_line(error.message),
        namespace=safe_line(key[0]),
        name=safe_line(key[1]),
    )


def _join(path: str, below: str) -> str:
    return f"{path}.{below}" if path and below else path or below
