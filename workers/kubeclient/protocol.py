"""Protocol of the client: the requests that the rooms of a node make, and the watches that they follow."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Final, Literal, Protocol, TypeVar

import msgspec

Verb = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

JSON: Final = "application/json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"

DEFAULT_DEADLINE_S: Final = 10.0
"""How long one request may take, its repetitions included, in seconds."""
NO_QUERY: Final[Mapping[str, str]] = {}

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"
BOOKMARK: Final = "BOOKMARK"
ERROR: Final = "ERROR"
UNREADABLE: Final = "a line that is no event"
"""Type of what stands on a line of a watch and is no event: the lines after it may be some."""

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class WatchEvent(msgspec.Struct, frozen=True):
    """One event of a watch (metav1.WatchEvent)."""

    type: str
    object: bytes
    """JSON of the object; of an ERROR event, of a Status."""


class Client(Protocol):
    """The API server, as one user. For one event loop."""

    async def request(
        self,
        verb: Verb,
        path: str,
        *,
        query: Mapping[str, str] = NO_QUERY,
        body: bytes | None = None,
        content_type: str = JSON,
        deadline_s: float = DEFAULT_DEADLINE_S,
    ) -> bytes:
        """Body of the answer. Waits for the rate limit, and repeats what client-go repeats, within the deadline.

        Raises ApiError and Unreachable.
        """
        ...

    def watch(self, path: str, *, query: Mapping[str, str]) -> AsyncGenerator[WatchEvent, None]:
        """Events of the collection until the server ends the watch, or is silent for long: then the iterator ends.

        Bookmarks and ERROR events are given too. Close the iterator (``aclose``) to end it earlier. Raises ApiError
        when the server refuses, Unreachable when the connection breaks or there is no answer.
        """
        ...


class ReflectorSink(Protocol[T_contra]):
    """Receiver of a reflector: its copy of a collection. Its methods do not wait."""

    def replaced(self, items: Sequence[T_contra]) -> None:
        """Take all objects there are; whatever is missing here was deleted."""
        ...

    def changed(self, item: T_contra) -> None:
        """The object was added or changed."""
        ...

    def deleted(self, item: T_contra) -> None:
        """The object was deleted; ``item`` is its last state."""
        ...
