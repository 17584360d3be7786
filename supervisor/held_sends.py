"""Messages to children that wait until what they rest on is on disk.

A worker acts on what the master has decided. An agent that dies after that act and before the write has a successor
that decides anew: it restarts a container once more, or gives a claim another volume. So the write comes first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from supervisor.protocol.commands import RestsOn, Send

LONGEST_S: Final = 5.0
"""A disk that takes longer for a write, in seconds, costs the memory of what it is for, not the pods' progress."""


class HeldSends:
    """Holds back single messages. What is for the same pod and child comes behind, in its order; nothing else waits."""

    def __init__(self, send: Callable[[Send], None], is_kept: Callable[[RestsOn], bool]) -> None:
        """``is_kept``: whether these versions are on disk, or nobody can wait for that because writes fail."""
        self._send = send
        self._is_kept = is_kept
        self._held: list[tuple[float, Send]] = []
        """With the monotonic seconds at which each goes in any case."""

    @property
    def is_waiting(self) -> bool:
        """Whether a write is waited for."""
        return bool(self._held)

    def take(self, command: Send, now: float) -> None:
        """Send it, or hold it back. ``now``: monotonic seconds."""
        if self._is_kept(command.rests_on) and not self._is_behind(command):
            self._send(command)
        else:
            self._held.append((now + LONGEST_S, command))

    def look(self, now: float) -> None:
        """Send what has waited for long enough. To be called after every write, and every second."""
        held, self._held = self._held, []
        waiting: set[tuple[int, str]] = set()
        for until, command in held:
            uid = _pod_of(command)
            if (until <= now or self._is_kept(command.rests_on)) and (command.slot, uid) not in waiting:
                self._send(command)
                continue
            self._held.append((until, command))
            if uid:
                waiting.add((command.slot, uid))

    def child_down(self, slot: int) -> None:
        """Forget what was for that child: the loop decides anew for its successor."""
        self._held = [(until, command) for until, command in self._held if command.slot != slot]

    def _is_behind(self, command: Send) -> bool:
        uid = _pod_of(command)
        return bool(uid) and any(held.slot == command.slot and _pod_of(held) == uid for _, held in self._held)


def _pod_of(command: Send) -> str:
    """UID; empty of a message that is not about one pod, which comes behind nothing."""
    return getattr(command.message, "uid", "")
