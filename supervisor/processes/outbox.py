"""Messages that wait until their child has read what was written to it before. Pure.

What the feed says waits as a difference, not as a queue: of each object the newest message alone, so that a reader that
is behind costs no more than a copy has objects. Everything else keeps its order, and goes before what the feed says.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Final

from ipc.link.messages.api_server import (
    AgentChanged,
    EventChanged,
    EventGone,
    FeedSynced,
    ObjectChanged,
    ObjectGone,
    PackedEventChanged,
    PodChanged,
    PodGone,
    Reply,
)
from ipc.link.messages.catalogue import ChildCommand
from ipc.link.messages.cluster import PodsTaken

MAX_WAITING: Final = 10_000
"""Most messages beside the feed's that may wait: a child that reads nothing is not kept for ever."""

_GONE: Final = PodGone | EventGone | ObjectGone


class OutboxFull(Exception):
    """More than MAX_WAITING messages wait: the child has stopped reading. The message was not taken."""


class Outbox:
    """Waiting messages of one incarnation of a child.

    Until the end of its first copy (`FeedSynced`) a message about an object takes the place of the one before it, so
    that the copy comes to its end; after that it takes the last place, for versions rise from message to message.
    """

    def __init__(self) -> None:
        self._first: deque[ChildCommand] = deque()
        self._copy: OrderedDict[Hashable, ChildCommand] = OrderedDict()
        """Newest messages of the objects that there are, for a child that has no copy yet."""
        self._end_of_copy: FeedSynced | None = None
        self._is_copied = False
        self._changes: OrderedDict[Hashable, ChildCommand] = OrderedDict()
        self._part = 0
        """Messages of one part are made one: none overtakes an answer, none hides that an object was gone."""
        self._numbers = itertools.count()

    def __bool__(self) -> bool:
        """Whether something waits."""
        return bool(self._first or self._copy or self._end_of_copy or self._changes)

    def put(self, message: ChildCommand) -> None:
        """Add a message. Raises OutboxFull."""
        match message:
            case FeedSynced():
                self._end_of_copy = message
            case Reply() | PodsTaken():
                self._part += 1
                self._changes[next(self._numbers)] = message
            case PackedEventChanged():
                self._put(next(self._numbers), message)
            case PodChanged(pod=pod):
                self._put((PodChanged, pod.metadata.uid), message)
            case PodGone(uid=uid):
                self._put((PodChanged, uid), message)
            case EventChanged(event=event):
                self._put((EventChanged, event.metadata.name), message)
            case EventGone(name=name):
                self._put((EventChanged, name), message)
            case ObjectChanged(summary=summary):
                self._put((summary.kind, summary.metadata.namespace, summary.metadata.name), message)
            case ObjectGone(kind=kind, namespace=namespace, name=name):
                self._put((kind, namespace, name), message)
            case AgentChanged():
                self._put(AgentChanged, message)
            case _:
                if len(self._first) >= MAX_WAITING:
                    raise OutboxFull(f"{MAX_WAITING} messages wait")
                self._first.append(message)

    def take(self) -> ChildCommand | None:
        """The next message, which waits no longer; None without one."""
        if self._first:
            return self._first.popleft()
        if self._copy:
            return self._copy.popitem(last=False)[1]
        if self._end_of_copy is not None:
            ended, self._end_of_copy, self._is_copied = self._end_of_copy, None, True
            return ended
        return self._changes.popitem(last=False)[1] if self._changes else None

    def _put(self, subject: Hashable, message: ChildCommand) -> None:
        if not self._is_copied:
            self._copy[subject] = message
            return
        if isinstance(self._changes.get((self._part, subject)), _GONE):
            self._part += 1
        key = (self._part, subject)
        self._changes[key] = message
        self._changes.move_to_end(key)
