"""A copy of a collection that follows the server: `reflector_state` decides, this asks and waits."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable, Sequence
from typing import Final, Generic, NoReturn, TypeVar

from ipc.host.log.last_words import LastWords
from ipc.host.text.json_types import UNDECODABLE
from ipc.link.eventloop.loop_clock import loop_time
from ipc.link.eventloop.tasks import first_of
from workers.kubeclient.errors import ClusterError
from workers.kubeclient.protocol import Client, ReflectorSink
from workers.kubeclient.reflector_state import (
    Changed,
    Deleted,
    Delta,
    LeftOut,
    NextRequest,
    ReflectorState,
    Replaced,
    RequestKind,
)
from workers.kubeclient.resources import Resource

LIST_DEADLINE_S: Final = 60.0
"""How long one page of a list may take, in seconds."""
EVENTS_IN_A_ROW: Final = 8
"""After so many events of a watch others have a turn: what follows from the first does not wait for the last."""

T = TypeVar("T")

_log: Final = logging.getLogger(__name__)


class Reflector(Generic[T]):
    """Keeps a sink at what the server has. An object that ``decode`` raises ValueError on is told and left out; a list
    with one replaces nothing, as what is left out may be there, and is made anew after a short watch."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        *,
        field_selector: str = "",
        label_selector: str = "",
        namespace: str = "",
        name: str = "",
        decode: Callable[[bytes], T],
        sink: ReflectorSink[T],
        says_timeout: bool = True,
        versions_fell: Callable[[], None] = lambda: None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """``name``: that object alone. Objects of a list have neither kind nor apiVersion. ``says_timeout``: see
        `ReflectorState`. ``versions_fell``: called before the sink is given a list that shows that the server's store
        was restored from a backup."""
        if name:
            field_selector = ",".join(part for part in (f"metadata.name={name}", field_selector) if part)
        self._client = client
        self._path = resource.path(namespace)
        self._decode = decode
        self._sink = sink
        self._versions_fell = versions_fell
        self._state = ReflectorState(
            field_selector=field_selector, label_selector=label_selector, chance=chance, timeout=says_timeout
        )
        self._failures = LastWords()
        self._unread = LastWords()
        self._restored = asyncio.Event()
        self.synced = asyncio.Event()
        """Set once the sink has had everything."""

    async def run(self) -> NoReturn:
        """Follow the server for ever. Whatever it answers, and whether it does, is no error of this task."""
        while True:
            request = self._state.next_request(loop_time())
            if request.pause_s:
                await asyncio.sleep(request.pause_s)
            try:
                if request.kind is RequestKind.LIST:
                    self._give(self._state.listed(await self._list(request)))
                elif await first_of(self._watch(request), self._until_restored()):
                    self._restored.clear()
                    self._state.restored(loop_time())
                else:
                    self._state.ended(loop_time())
            except ClusterError as error:
                self._state.failed(error, loop_time())
                self._tell(request, error)
            else:
                self._failures.forget()

    def begin_anew(self) -> None:
        """End the watch, and list everything whatever its version: for whoever has seen that the server's store was
        restored from a backup, of which a watch from a version of the future tells nothing."""
        self._restored.set()

    async def _until_restored(self) -> bool:
        return await self._restored.wait()

    async def _list(self, request: NextRequest) -> bytes:
        return await self._client.request("GET", self._path, query=request.query, deadline_s=LIST_DEADLINE_S)

    async def _watch(self, request: NextRequest) -> bool:
        """False when the server has ended the watch."""
        async with contextlib.aclosing(self._client.watch(self._path, query=request.query)) as events:
            number = 0
            async for event in events:
                self._give(self._state.received(event))
                number += 1
                if number % EVENTS_IN_A_ROW == 0:
                    await asyncio.sleep(0)
        return False

    def _give(self, delta: Delta | None) -> None:
        match delta:
            case Replaced(objects, is_whole):
                if self._state.has_fallen:
                    self._versions_fell()
                self._listed(objects, is_whole=is_whole)
                self.synced.set()
            case Changed(each):
                for item in self._decoded(each):
                    self._sink.changed(item)
            case Deleted(each):
                for item in self._decoded(each):
                    self._sink.deleted(item)
            case LeftOut(words):
                self._leave_out(words)

    def _listed(self, objects: Sequence[bytes], *, is_whole: bool) -> None:
        found = [item for each in objects for item in self._decoded(each)]
        if is_whole and len(found) == len(objects):
            self._sink.replaced(found)
            return
        for item in found:
            self._sink.changed(item)

    def _decoded(self, data: bytes) -> tuple[T, ...]:
        """The object; nothing when it is none."""
        try:
            return (self._decode(data),)
        except UNDECODABLE as error:
            self._leave_out(f"an object of the server cannot be read: {error}")
            return ()

    def _leave_out(self, words: str) -> None:
        """Say the same words once, however often the object comes."""
        self._state.left_out()
        level = logging.ERROR if self._unread.are_new(words) else logging.DEBUG
        _log.log(level, "%s: %s", self._path, words)

    def _tell(self, request: NextRequest, error: ClusterError) -> None:
        """The same words once in a row; a fallback that upstream makes too is no warning."""
        words = f"{request.kind.value} of {self._path}: {error}"
        is_fallback = request.kind is RequestKind.STREAMING_LIST and self._state.falls_back
        is_news = self._failures.are_new(words) and not is_fallback
        _log.log(logging.WARNING if is_news else logging.DEBUG, "%s", words)
