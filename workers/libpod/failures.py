"""Failures that Podman answers, and their kinds. Pure.

The root cause that libpod names, not the status, says what happened: 4.3 answers 500 to a missing image and to a name
in use.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from ipc.host.libpod.go_json import decode_value
from ipc.host.text.json_types import UNDECODABLE
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError

MAX_MESSAGE_CHARS: Final = 4096
"""Longest error text kept of an answer, in characters: a registry or an OCI runtime chose its words."""

# First match wins. Sources: libpod/define/errors.go; measured on 4.3.1 and 5.4.2.
_KIND_BY_CAUSE: Final = (
    ("image not known", ErrorKind.IMAGE_UNKNOWN),
    ("no such image", ErrorKind.IMAGE_UNKNOWN),
    ("image is in use", ErrorKind.WRONG_STATE),
    ("image used by", ErrorKind.WRONG_STATE),
    ("name is already in use", ErrorKind.NAME_IN_USE),
    ("pod already exists", ErrorKind.NAME_IN_USE),
    ("container already exists", ErrorKind.NAME_IN_USE),
    ("volume already exists", ErrorKind.NAME_IN_USE),
    ("no such container", ErrorKind.NOT_FOUND),
    ("no such pod", ErrorKind.NOT_FOUND),
    ("no such volume", ErrorKind.NOT_FOUND),
    ("has already been removed", ErrorKind.NOT_FOUND),
    ("state improper", ErrorKind.WRONG_STATE),
    ("no such exec session", ErrorKind.NOT_FOUND),
    ("invoke a command that was not found", ErrorKind.COMMAND),
    ("OCI permission denied", ErrorKind.COMMAND),
    ("OCI runtime permission denied", ErrorKind.COMMAND),
    ("no matching entries in passwd file", ErrorKind.COMMAND),
    ('workdir "', ErrorKind.COMMAND),
    ("invalid argument", ErrorKind.INVALID),
    ("invalid configuration", ErrorKind.INVALID),
    ("invalid pod spec", ErrorKind.INVALID),
    ("invalid container config", ErrorKind.INVALID),
    ("invalid signal", ErrorKind.INVALID),
    ("no command or entrypoint provided", ErrorKind.INVALID),
    ("json: cannot unmarshal", ErrorKind.INVALID),
)
# No sentinel error of libpod's stands behind these: the OCI runtime's words, and how libpod reports any failed command.
_LEFTOVER: Final = re.compile(r"already exists: OCI runtime error|/[a-z]+ start [0-9a-f]{64}` failed: exit status")
# A signal that ends Podman ends what it has just run as well: that says nothing about the container.
_BROKEN_OFF: Final = re.compile(r"` failed: signal: (?:terminated|killed)")
_KIND_BY_STATUS: Final = {400: ErrorKind.INVALID, 404: ErrorKind.NOT_FOUND, 409: ErrorKind.WRONG_STATE}


class _Failure(msgspec.Struct, frozen=True):
    cause: str = ""
    message: str = ""


def call_error(call: str, status: int, body: bytes) -> RuntimeCallError:
    """The error behind an answer of 400 or more.

    Only the first JSON document counts: 4.3 writes a second one after some (pkg/api/handlers/utils/errors.go).
    """
    try:
        failure = decode_value(_Failure, body.partition(b"\n")[0])
    except UNDECODABLE:
        failure = _Failure()
    text = (
        failure.message or failure.cause or body.decode(errors="replace") or f"Podman gives no reason (HTTP {status})"
    )
    return RuntimeCallError(_kind(status, failure), call, text[:MAX_MESSAGE_CHARS])


def _kind(status: int, failure: _Failure) -> ErrorKind:
    """Kind of a failure: by the cause, else by the message, and last by the status."""
    kind = kind_by_cause(failure.cause)
    if kind is None and _LEFTOVER.search(failure.message):
        kind = ErrorKind.LEFTOVER
    if kind is None and _BROKEN_OFF.search(failure.message):
        kind = ErrorKind.UNAVAILABLE
    return kind or _KIND_BY_STATUS.get(status, ErrorKind.INTERNAL)


def kind_by_cause(cause: str) -> ErrorKind | None:
    """Kind of a failure by libpod's words for its cause; None for words that nobody knows."""
    return next((kind for fragment, kind in _KIND_BY_CAUSE if fragment in cause), None)
