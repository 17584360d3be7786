"""Objects as a client wants them: as they are, or as a meta/v1 Table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from aiohttp import hdrs, web

from ipc.host.clock import Clock
from ipc.k8s.resources.resource import Resource
from workers.api_server.printers.tables import TablePrinter, include_object, wants_table

_LIST: Final = '{"kind":"%s","apiVersion":"%s","metadata":{"resourceVersion":"%s"},"items":['


class Representation(Protocol):
    """The form of one answer. Objects come encoded."""

    def many(self, kind: str, api_version: str, resource_version: str, found: Sequence[bytes]) -> bytes:
        """A list of objects of that kind."""
        ...

    def one(self, found: bytes, resource_version: str) -> bytes:
        """One object."""
        ...

    def changed(self, found: bytes) -> bytes:
        """One object in an event of a watch."""
        ...


def representation(request: web.Request, resource: Resource, clock: Clock) -> Representation:
    """The form that a request's Accept header prefers. Raises ApiError 400 and 406."""
    if not wants_table(request.headers.get(hdrs.ACCEPT, "")):
        return Plain()
    return Tabled(TablePrinter(resource, include_object(request.query)), lambda: clock.now().wall)


class Plain:
    """Objects as they are."""

    def many(self, kind: str, api_version: str, resource_version: str, found: Sequence[bytes]) -> bytes:
        """A v1 list, such as PodList."""
        head = _LIST % (f"{kind}List", api_version, resource_version)
        return b"".join((head.encode(), b",".join(found), b"]}"))

    def one(self, found: bytes, resource_version: str) -> bytes:
        return found

    def changed(self, found: bytes) -> bytes:
        return found


class Tabled:
    """Rows of a meta/v1 Table."""

    def __init__(self, printer: TablePrinter, now: Callable[[], float]) -> None:
        self._printer = printer
        self._now = now

    def many(self, kind: str, api_version: str, resource_version: str, found: Sequence[bytes]) -> bytes:
        return self._printer.table(found, resource_version, self._now())

    def one(self, found: bytes, resource_version: str) -> bytes:
        return self._printer.table([found], resource_version, self._now())

    def changed(self, found: bytes) -> bytes:
        return self._printer.next_row(found, self._now())
