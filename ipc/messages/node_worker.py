"""Master and node worker."""

from __future__ import annotations

from ipc.kubecontainer.pod_status import RuntimePodStatus
from ipc.messages.base import EventReport, Message, OfPull, PullEnded, PullProgress, Ready, Shutdown


class Track(Message, frozen=True, kw_only=True):
    """From now on this pod's observations go to that row of the board."""

    uid: str
    row: int


class Untrack(Message, frozen=True, kw_only=True):
    uid: str


class Observe(Message, frozen=True, kw_only=True):
    """Look at these pods afresh, soon. Requests that wait are answered together."""

    uids: tuple[str, ...]


class Relist(Message, frozen=True, kw_only=True):
    """Full relist now (it also happens by period and after doubt)."""


class StartPull(OfPull, frozen=True, kw_only=True):
    """Pull that image; its turn has come. Answered like ``PullImage``."""


class CancelPull(OfPull, frozen=True, kw_only=True):
    """Nobody waits for it any more: break it off. A ``PullEnded`` may cross this on its way."""


class CollectLogs(Message, frozen=True, kw_only=True):
    """Remove the log and pod directories of all pods but these."""

    uids: tuple[str, ...]
    listed_at: float
    """Wall time at which these were all. A directory that was made or changed since may be a newer pod's."""


class Observation(Message, frozen=True, kw_only=True):
    """One pod's newest view. Content is on its row, or here when it has none or does not fit."""

    uid: str
    observed_at: float
    changed: bool
    row: int = -1
    status: RuntimePodStatus | None = None


class Observed(Message, frozen=True, kw_only=True):
    observations: tuple[Observation, ...]


class Relisted(Message, frozen=True, kw_only=True):
    """A full relist succeeded. Every pod was seen (or seen to be absent) at ``started_at``, but for the ``unseen``."""

    started_at: float
    changed: tuple[Observation, ...]
    """Pods whose view changed, and every untracked one (orphans) with its status inline."""
    unseen: tuple[str, ...] = ()
    """Pods that exist and could not be looked at: a ``ObservationFailed`` says why. They are looked at again."""


class ObservationFailed(Message, frozen=True, kw_only=True):
    """That pod could not be observed, although the runtime answers. It is tried again, and said again."""

    uid: str
    message: str


class RuntimeHealth(Message, frozen=True, kw_only=True):
    """Sent when it changes."""

    healthy: bool
    version: str = ""
    message: str = ""


class ServiceSilent(Message, frozen=True, kw_only=True):
    """Podman lives and is of no use: it answers no ping, or pings only. Told again while that lasts."""

    message: str


NodeWorkerCommand = Track | Untrack | Observe | Relist | StartPull | CancelPull | CollectLogs | Shutdown
NodeWorkerEvent = (
    Observed | Relisted | ObservationFailed | RuntimeHealth | ServiceSilent | PullProgress | PullEnded | EventReport
)
NodeWorkerReport = Ready | NodeWorkerEvent
