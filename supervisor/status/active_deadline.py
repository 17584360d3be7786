"""Deadline of a pod's activity (pkg/kubelet/active_deadline.go). Pure.

Different on purpose: a pod that came to its end in time has not exceeded its deadline, however late that is seen. So an
agent that starts later tells the same of it as one that was there.
"""

from __future__ import annotations

from typing import Final

from ipc.host.clock import parse_rfc3339
from ipc.k8s.api.v1.pod import Pod
from ipc.link.messages import event_reasons

DEADLINE_EXCEEDED: Final = event_reasons.DEADLINE_EXCEEDED.reason
"""Reason of the pod's status, as of the event."""
DEADLINE_EXCEEDED_MESSAGE: Final = "Pod was active on the node longer than the specified deadline"


def past_active_deadline(pod: Pod | None, start_time: str | None, active_until: float) -> bool:
    """Was the pod active for ``spec.activeDeadlineSeconds``, counted from its status' ``startTime``?

    ``active_until`` in epoch seconds: when it came to its end, or now.
    """
    deadline_s = pod.spec.active_deadline_seconds if pod is not None else None
    if deadline_s is None or start_time is None:
        return False
    return active_until - parse_rfc3339(start_time) >= deadline_s
