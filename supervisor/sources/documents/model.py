"""Results of parsing, and the maxima of one file. Pure."""

from __future__ import annotations

from typing import Any, Final

import msgspec

MAX_DOCUMENTS: Final = 1_000
"""Most documents in one file."""
MAX_VALUES: Final = 200_000
"""Most values in one document, aliases expanded. Also bounds what merge keys copy."""
MAX_DEPTH: Final = 64
"""Deepest nesting of one document, in levels, aliases expanded."""
MAX_TAG_DIRECTIVES: Final = 1_000
"""Most handles of tags that one YAML file may declare: the parser compares each with all before it."""
MAX_SLOWLY_PARSED_CHARS: Final = 1 << 18
"""Longest YAML file that may have the escape ``\\'``: libyaml does not know it, and PyYAML's own parser takes up to
16 microseconds for a character."""
MAX_SHOWN_CHARS: Final = 64
"""Longest piece of a manifest that an error repeats, in characters."""


class Document(msgspec.Struct, frozen=True):
    """One readable document; ``value`` is what JSON can say, never None."""

    number: int
    """Counted from 1, empty documents included."""
    value: Any

    def __repr__(self) -> str:
        """Without the value: it may be a Secret."""
        return f"Document({self.number})"


class DocumentError(msgspec.Struct, frozen=True):
    """Reason why a document, or the rest of its file, cannot be read."""

    number: int
    """The document, counted from 1; 0 is the file as a whole."""
    field: str
    message: str


class DocumentsRead(msgspec.Struct, frozen=True):
    """Documents of a file that could be read, and the errors of those that could not. Empty documents are left out."""

    documents: tuple[Document, ...] = ()
    errors: tuple[DocumentError, ...] = ()


def cut(text: str) -> str:
    """A piece of a manifest as an error may repeat it."""
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}…"
