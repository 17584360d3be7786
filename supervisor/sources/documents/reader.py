"""Parsing of a manifest from bytes to plain data: YAML or JSON, one document or many. Pure.

Content that begins with ``{`` is JSON, everything else YAML, whatever the file's name (apimachinery
pkg/util/yaml/decoder.go, ToJSON). On purpose stricter than upstream: a duplicate key is an error, so is a tag other
than YAML's own scalars, a number that JSON cannot say, and anything above one of the maxima in `model`. Aliases share
their value, so that a file which expands to billions of values costs no memory before it is refused.
"""

from __future__ import annotations

from supervisor.sources.documents.json_text import json_documents
from supervisor.sources.documents.model import (
    MAX_DOCUMENTS,
    DocumentError,
    DocumentsRead,
)
from supervisor.sources.documents.yaml_text import yaml_documents


def read_documents(data: bytes) -> DocumentsRead:
    """Every document of a file. After a syntax error the rest of the file is unknown; other errors end one document."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = f"byte 0x{data[error.start]:02x} at offset {error.start}"
        return DocumentsRead(errors=(DocumentError(0, "", f"is not UTF-8 text: {where}"),))
    found = json_documents(text) if text.lstrip()[:1] == "{" else yaml_documents(text)
    documents, errors = [], []
    for item in found:
        if item.number > MAX_DOCUMENTS:
            errors.append(DocumentError(item.number, "", f"more than {MAX_DOCUMENTS} documents in one file"))
            break
        if isinstance(item, DocumentError):
            errors.append(item)
        elif item.value is not None:
            documents.append(item)
    return DocumentsRead(tuple(documents), tuple(errors))
