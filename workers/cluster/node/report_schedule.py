"""When a status is sent: because something has changed, or because it has not been sent for long
(kubelet_node_status.go, nodeStatusHasChanged and isUpdateStatusPeriodExpired). Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from ipc.k8s.nodestatus.node import NodeCondition, NodeStatus


def status_has_changed(before: NodeStatus | None, after: NodeStatus | None) -> bool:
    """Whether more differs than heartbeats and the order of conditions."""
    if before is None or after is None:
        return before is not after
    return _comparable(before) != _comparable(after)


def _comparable(status: NodeStatus) -> NodeStatus:
    return msgspec.structs.replace(status, conditions=_without_heartbeats(status.conditions))


def _without_heartbeats(conditions: Sequence[NodeCondition]) -> tuple[NodeCondition, ...]:
    bare = (msgspec.structs.replace(each, last_heartbeat_time="") for each in conditions)
    return tuple(sorted(bare, key=lambda condition: condition.type))


class ReportSchedule:
    """Times in monotonic seconds."""

    def __init__(self, period_s: float, chance: Callable[[], float]) -> None:
        """``chance`` gives numbers from 0 to 1, that spread the reports of many nodes that change at once."""
        self._period_s = period_s
        self._chance = chance
        self._last: float | None = None
        self._delay_s = 0.0

    def is_due(self, now: float) -> bool:
        """Whether a status goes though nothing has changed."""
        return is_period_expired(None if self._last is None else now - self._last, self._period_s, self._delay_s)

    def reported(self, now: float, *, changed: bool) -> None:
        """A status was taken by the server. After a change the next one may come up to half a period later, or
        earlier; the delay counts once (calculateDelay)."""
        self._last = now
        self._delay_s = self._period_s * (self._chance() - 0.5) if changed else 0.0


def is_period_expired(since_last_s: float | None, period_s: float, delay_s: float) -> bool:
    """``since_last_s``: None when there was no report yet."""
    return since_last_s is None or since_last_s >= period_s + delay_s
