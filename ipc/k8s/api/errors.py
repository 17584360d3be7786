"""Faults of a manifest: a JSON path and a sentence, in the kinds Kubernetes distinguishes.

The kinds and the order of a sentence's parts follow apimachinery pkg/util/validation/field/errors.go.
"""

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from ipc.host.text.safe_text import safe_line

MAX_SHOWN_VALUE_CHARS: Final = 64
"""Longest piece of a manifest that an error message repeats, in characters."""
MAX_SHOWN_NUMBER: Final = 2**63
"""Largest magnitude of a number used as a key that a path shows: printing a very large one costs, or fails."""


_SHOWN_VALUE: Final = re.compile(r'(?<=^Invalid value: )".*"')
_TYPE_WORD: Final = re.compile(r"[A-Za-z0-9./-]{1,64}")


class FieldError(msgspec.Struct, frozen=True):
    """One finding. `path` is a JSON path such as `spec.containers[0].ports[1].containerPort`; "" is the whole."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class FieldErrors(Exception):
    """A manifest was refused. `errors` is never empty."""

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors: tuple[FieldError, ...] = tuple(errors)
        if not self.errors:
            raise ValueError("FieldErrors needs at least one FieldError")
        super().__init__(self.errors)

    def __str__(self) -> str:
        return "; ".join(str(error) for error in self.errors)


def shown(value: object) -> str:
    """A value as an error message shows it: strings quoted, on one line, cut at MAX_SHOWN_VALUE_CHARS."""
    return f'"{_one_line(value)}"' if isinstance(value, str) else _one_line(str(value))


def shown_key(key: object) -> str:
    """A key of a manifest as part of a path. One that is neither text nor a plain number shows as its type."""
    if isinstance(key, str):
        return _one_line(key)
    is_plain_number = isinstance(key, int) and abs(key) <= MAX_SHOWN_NUMBER
    return str(key) if is_plain_number else f"<{type(key).__name__}>"


def _one_line(text: str) -> str:
    """Cut, and with everything escaped that could forge a log line or not be encoded."""
    cut = text if len(text) <= MAX_SHOWN_VALUE_CHARS else text[:MAX_SHOWN_VALUE_CHARS] + "…"
    return safe_line(cut)


def redacted(error: FieldError) -> FieldError:
    """The same finding without the value that it may repeat: where a manifest is damaged, any value may be a secret."""
    return FieldError(error.path, _SHOWN_VALUE.sub("<redacted>", error.message))


def is_type_word(text: str) -> bool:
    """Whether this may be a kind or an apiVersion, and so be repeated: of a document that says no other, it may be a
    piece of anything."""
    return _TYPE_WORD.fullmatch(text) is not None


def required(path: str, detail: str = "") -> FieldError:
    """A field that must be there is absent or empty."""
    return FieldError(path, f"Required value: {detail}" if detail else "Required value")


def invalid(path: str, value: object, detail: str) -> FieldError:
    """The value has the right type and is still wrong."""
    return FieldError(path, f"Invalid value: {shown(value)}: {detail}")


def not_supported(path: str, value: object, supported: Iterable[str]) -> FieldError:
    """The value is none of an enumeration."""
    return FieldError(path, f"Unsupported value: {shown(value)}: supported values: {', '.join(map(shown, supported))}")


def duplicate(path: str, value: object) -> FieldError:
    """The value must be unique and was seen before."""
    return FieldError(path, f"Duplicate value: {shown(value)}")


def not_found(path: str, value: object) -> FieldError:
    """The value names something that the pod does not define."""
    return FieldError(path, f"Not found: {shown(value)}")


def forbidden(path: str, detail: str) -> FieldError:
    """The field may not be set here."""
    return FieldError(path, f"Forbidden: {detail}")


def too_long(path: str, maximum_bytes: int) -> FieldError:
    """The value has more bytes than it may."""
    return FieldError(path, f"Too long: may not be more than {maximum_bytes} bytes")


def too_many(path: str, actual: int, maximum: int) -> FieldError:
    """The list has more items than it may."""
    return FieldError(path, f"Too many: {actual}: must have at most {maximum} items")
