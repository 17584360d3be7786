"""Podman's own lists, asked of the service of the test session where there is one: a command costs a tenth of a second
of CPU each time, and tests ask thousands of times.

A test whose Podman has another storage, or another place for it, is answered by commands, which look where it says.
"""

from __future__ import annotations

import contextlib
import enum
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from tests.support.raw_libpod import Libpod

PLACES: Final = ("XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "ROOTLET_TEST_STORE")
"""Environment variables that say which storage a command of Podman's has."""


class Kind(enum.Enum):
    """A list: the words of its command, and its path in the API."""

    CONTAINERS = (("ps", "--all"), "containers/json?all=true&")
    PODS = (("pod", "ps"), "pods/json?")
    VOLUMES = (("volume", "ls"), "volumes/json?")

    @property
    def words(self) -> tuple[str, ...]:
        return self.value[0]

    def path(self, label: str) -> str:
        """Path of the list of all that has a label, or a label with a value: ``name=value``."""
        return f"{self.value[1]}filters={quote(json.dumps({'label': [label]}))}"


class _Served(NamedTuple):
    socket: Path
    places: tuple[str | None, ...]


_served: list[_Served] = []


@contextlib.contextmanager
def asked_at(socket: Path) -> Iterator[None]:
    """Lists of the storage that is in use now come from this service from now on."""
    _served.append(_Served(socket, _places()))
    try:
        yield
    finally:
        _served.pop()


def service() -> Path | None:
    """Socket of a service with the storage that a command would have."""
    return next((served.socket for served in _served if served.places == _places()), None)


def from_service(socket: Path, kind: Kind, label: str) -> list[dict[str, Any]]:
    """The list as the API has it. Fails when Podman refuses; raises OSError, HTTPException without a service."""
    with contextlib.closing(Libpod(str(socket))) as libpod:
        found: list[dict[str, Any]] | None = libpod.call("GET", kind.path(label))
        return found or []


def _places() -> tuple[str | None, ...]:
    return tuple(os.environ.get(name) for name in PLACES)
