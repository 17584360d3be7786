"""Base class of all messages, and the messages that go over more than one link."""

from __future__ import annotations

import msgspec

from ipc.k8s.podobjects.registry_login import Pull, PullAccount, RegistryLogin
from ipc.link.messages.event_reasons import EventReason, EventType


class Message(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="tag", omit_defaults=True):
    """Tagged by class name."""


class Ready(Message, frozen=True, kw_only=True):
    """First message of every child."""

    pid: int


class Shutdown(Message, frozen=True, kw_only=True):
    """Finish the step in hand, start nothing, exit 0."""


class EventReport(Message, frozen=True, kw_only=True):
    """Report of a v1 Event. The master stamps, counts and keeps it."""

    uid: str
    namespace: str
    name: str
    type: EventType
    reason: str
    """From `ipc.link.messages.event_reasons`, or that of a rejection."""
    message: str
    field_path: str = ""
    """spec.containers{name}, as upstream."""
    kind: str = ""
    """Kind of the object; empty for a pod, which has a UID, and for the node, which has none. ``Pod`` for one that was
    refused before it came to be one of this node: of nothing in its texts it has to be hidden."""
    wall: float = 0.0
    annotations: dict[str, str] = {}


def node_event(node_name: str, reason: EventReason, message: str, wall: float = 0.0) -> EventReport:
    """An event about the node. ``wall``: when it happened, in seconds; 0.0 is when the master hears of it."""
    return EventReport(
        uid="", namespace="", name=node_name, type=reason.type, reason=reason.reason, message=message, wall=wall
    )


class TakeProfile(Message, frozen=True, kw_only=True):
    """Take a profile of the process that gets this (`ipc.host.process.profiles`)."""

    number: int
    """Number of the request."""
    profile: str
    seconds: int
    """How long stacks are sampled."""
    action: str = ""
    """``start`` or ``stop``, of the tracing of allocations."""


class ProfileTaken(Message, frozen=True, kw_only=True):
    """Answer to ``TakeProfile``: the profile, or why there is none."""

    number: int
    code: int
    """HTTP status."""
    text: str


class OfPull(Message, frozen=True, kw_only=True):
    """Subject of the messages about one pull: image, registry logins, and the pod's account."""

    reference: str
    """Complete: registry, path and tag or digest."""
    logins: tuple[RegistryLogin, ...] = ()
    account: PullAccount | None = None

    @property
    def pull(self) -> Pull:
        """Key of the pull."""
        return Pull(reference=self.reference, logins=self.logins, account=self.account)


class PullProgress(OfPull, frozen=True, kw_only=True):
    """Progress of a pull, as text; sent to every worker whose pods wait for it."""

    words: str


class PullEnded(OfPull, frozen=True, kw_only=True):
    """End of a pull; sent to every worker whose pods wait for it."""

    image_id: str = ""
    error: str = ""
    """An ErrorKind; empty when it succeeded."""
    message: str = ""
    took_s: float = 0.0
    """From its start to its end, without the wait in the queue."""
