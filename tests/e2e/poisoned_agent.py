"""`rootlet`, whose pod workers hang or die of pods that say so: ``python -m tests.e2e.poisoned_agent run ...``.

A pod's annotation ``poison`` names where (sync, terminating, terminated) and how (hang, die); a probe is poison when
its command is.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from typing import Any, Final

from ipc.k8s.api.v1.probe import Probe
from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from ipc.link.messages.pod_worker import SyncPod, WorkType
from supervisor.__main__ import main
from workers import main as process
from workers import pod_worker
from workers.kubecontainer.runtime import Runtime
from workers.kuberuntime.context import SyncContext
from workers.podhttp.pod_network import Dialer
from workers.prober.attempt import attempt
from workers.prober.outcome import ProbeOutcome, ProbeTarget
from workers.sync.run import SyncRun

ANNOTATION: Final = "poison"
HANG: Final = "hang"
DIE: Final = "die"
PROBE: Final = ("poison",)
"""Command of an exec probe; its second word is how."""


def poison(where: str, how: str) -> dict[str, str]:
    """Annotations of a pod."""
    return {ANNOTATION: f"{where}:{how}"}


def _strike(how: str) -> None:
    if how == HANG:
        select.select([], [], [])  # blocks the loop
    if how == DIE:
        os.kill(os.getpid(), signal.SIGKILL)


def _poisoned(kind: WorkType, sync: pod_worker.Sync) -> pod_worker.Sync:
    async def strike_and_sync(context: SyncContext, run: SyncRun, request: SyncPod, status: RuntimePodStatus) -> None:
        pod = request.pod
        where, _, how = (pod.metadata.annotations if pod is not None else {}).get(ANNOTATION, "").partition(":")
        if where == kind.value:
            _strike(how)
        await sync(context, run, request, status)

    return strike_and_sync


async def _poisoned_attempt(probe: Probe, target: ProbeTarget, dialer: Dialer, runtime: Runtime) -> ProbeOutcome:
    if probe.exec is not None and probe.exec.command[:1] == PROBE:
        _strike(probe.exec.command[1])
    return await attempt(probe, target, dialer, runtime)


if __name__ == "__main__":
    changes: dict[str, Any] = {"_SYNCS": {kind: _poisoned(kind, sync) for kind, sync in pod_worker._SYNCS.items()}}
    vars(pod_worker).update(changes)
    vars(process)["attempt"] = _poisoned_attempt
    sys.exit(main())
