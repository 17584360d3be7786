"""Faults that a test asks the server for. Each says what it does to which requests, and how often."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.support.servers.kube_api import failures
from tests.support.servers.kube_api.failures import Refusal
from tests.support.servers.kube_api.lies import Liar, Lie
from tests.support.servers.kube_api.requests import Request
from tests.support.servers.kube_api.routes import Route
from tests.support.servers.kube_api.store import Store


class Dropped(Exception):
    """The connection ends without an answer."""


class Garbled(Exception):
    """The answer is this one, whatever was asked."""

    def __init__(self, lie: Lie) -> None:
        super().__init__()
        self.lie = lie


@dataclass
class _Fault:
    verb: str
    path: str
    """Regular expression, found anywhere in the path."""
    times: int
    refusal: Refusal | None = None
    delay_s: float = 0.0
    drop: bool = False
    drop_answer: bool = False
    body: bytes | None = None

    def hits(self, request: Request) -> bool:
        return self.times > 0 and self.verb in ("", request.verb) and re.search(self.path, request.path) is not None


@dataclass
class Faults:
    """Faults of the server. Patterns: an HTTP verb (empty: any) and a regular expression of paths."""

    store: Store
    break_watches: Callable[[], None]
    """Ends every open watch without a last chunk."""
    expire_watches: Callable[[], None]
    """Ends every open watch with 410 within the stream."""
    liar: Liar = field(default_factory=Liar)
    """Lies to whoever asks for a resource, beside what is planned."""
    _planned: list[_Fault] = field(default_factory=list)
    _lines: list[bytes] = field(default_factory=list)
    _reachable: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._reachable.set()

    def drop(self, verb: str = "", path: str = "", times: int = 1) -> None:
        """Closes the connection before anything is done."""
        self._planned.append(_Fault(verb, path, times, drop=True))

    def drop_answer(self, verb: str = "", path: str = "", times: int = 1) -> None:
        """Does what is asked, and closes the connection instead of answering."""
        self._planned.append(_Fault(verb, path, times, drop_answer=True))

    def garble(self, body: bytes, verb: str = "", path: str = "", times: int = 1) -> None:
        """Does nothing, and answers 200 with that body."""
        self._planned.append(_Fault(verb, path, times, body=body))

    def garble_watches(self, line: bytes) -> None:
        """The next event of a watch has that line before it."""
        self._lines.append(line)

    def lines(self, route: Route) -> list[bytes]:
        """Lines before the event that is to be written."""
        found, self._lines = self._lines, []
        return [*found, *self.liar.lines(route)]

    def drop_watches(self) -> None:
        """Every open watch ends in the middle of the stream."""
        self.break_watches()

    def delay(self, seconds: float, verb: str = "", path: str = "", times: int = 1) -> None:
        self._planned.append(_Fault(verb, path, times, delay_s=seconds))

    def answer(
        self,
        code: int,
        verb: str = "",
        path: str = "",
        times: int = 1,
        *,
        reason: str = "",
        message: str = "",
        headers: Mapping[str, str] = {},
    ) -> None:
        """A Status of this code; ``headers={"Retry-After": "1"}`` for one that says when to come again."""
        known = {401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 409: "Conflict", 410: "Expired"} | {
            429: "TooManyRequests",
            500: "InternalError",
            503: "ServiceUnavailable",
            504: "Timeout",
        }
        refusal = Refusal(code, reason or known[code], message or f"fault {code}", None, headers)
        self._planned.append(_Fault(verb, path, times, refusal=refusal))

    def conflict(self, path: str = "", times: int = 1) -> None:
        """Updates that meet with somebody else's."""
        refusal = failures.conflict("objects", "fault", failures.MODIFIED)
        self._planned.append(_Fault("PUT", path, times, refusal=refusal))
        self._planned.append(_Fault("PATCH", path, times, refusal=refusal))

    def partition(self) -> None:
        """From now on nothing is answered and watches say nothing; connections stay open."""
        self._reachable.clear()

    def heal(self) -> None:
        """Ends a partition: what was asked meanwhile is dropped, as are the watches that were open."""
        self._reachable.set()
        self.break_watches()

    def relent(self) -> None:
        """Forget what is planned, and tell no more lies."""
        self._planned.clear()
        self.liar = Liar()

    @property
    def is_partitioned(self) -> bool:
        return not self._reachable.is_set()

    def expire(self) -> None:
        """Compacts the history: open watches end with 410 inside the stream, older versions are expired."""
        self.store.compact()
        self.expire_watches()

    def restore(self, revision: int) -> None:
        """Goes back to an older backup, and breaks the watches as the restart of the server does."""
        self.store.restore(revision)
        self.break_watches()

    async def before(self, request: Request) -> bool:
        """Carry out what is planned for a request. True: its answer is to be dropped. Raises Dropped, Garbled,
        Refusal."""
        if self.is_partitioned:
            await self._reachable.wait()
            raise Dropped
        found = next((fault for fault in self._planned if fault.hits(request)), None)
        if found is None:
            return False
        found.times -= 1
        if found.delay_s:
            await asyncio.sleep(found.delay_s)
        if found.refusal is not None:
            raise found.refusal
        if found.drop:
            raise Dropped
        if found.body is not None:
            raise Garbled(Lie("", found.body))
        return found.drop_answer

    async def reachable(self) -> None:
        """Returns when there is no partition."""
        await self._reachable.wait()
