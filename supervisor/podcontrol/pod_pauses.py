"""Pods that somebody pauses and resumes (`rootlet pause pod`, `rootlet resume pod`).

Which pods are paused is what Podman shows (`ipc.k8s.kubecontainer.frozen`), so no death loses it, and a `podman pod
pause` by hand counts too. Kept here is only what was asked for and not done yet. While a pod is paused nothing of it is
synced and its probes do not run; its end resumes it first (`workers.kuberuntime.pause_pod`). The kubelet has no such
thing.
"""

from __future__ import annotations

from ipc.host.clock import Instant
from ipc.k8s.kubecontainer.frozen import is_frozen
from ipc.link.messages import event_reasons
from ipc.link.messages.pod_worker import Freeze, SyncAction, SyncDone, WorkType
from ipc.link.messages.sync_error import SyncError
from supervisor.podcontrol.command_buffer import CommandBuffer
from supervisor.podcontrol.pod_reporter import PodReporter
from supervisor.pods.cache import PodCache
from supervisor.pods.parts import PauseRequest
from supervisor.pods.record import PodRecord
from supervisor.pods.table import PodTable
from supervisor.protocol.commands import FreezeAnswered
from supervisor.protocol.events import FreezeRequest
from supervisor.protocol.refusals import RequestRefused
from supervisor.record.status_manager import StatusManager

ACTIONS = {Freeze.PAUSE: SyncAction.PAUSE_POD, Freeze.RESUME: SyncAction.RESUME_POD}
_DONE = {
    Freeze.PAUSE: (event_reasons.POD_PAUSED, "Pod is paused: its processes get no CPU, and its probes do not run"),
    Freeze.RESUME: (event_reasons.POD_RESUMED, "Pod goes on"),
}


class PodPauses:
    """Owns what was asked for of each pod."""

    def __init__(
        self, pod_table: PodTable, cache: PodCache, statuses: StatusManager, reporter: PodReporter, out: CommandBuffer
    ) -> None:
        self._pod_table = pod_table
        self._cache = cache
        self._statuses = statuses
        self._reporter = reporter
        self._out = out

    # --- what a sync and the probes have to know -----------------------------------------------------------------

    def requested(self, state: PodRecord) -> Freeze:
        """Act that the pod's next sync consists of."""
        return state.parts.pause.freeze if state.parts.pause is not None else Freeze.NONE

    def holds_back(self, state: PodRecord) -> bool:
        """Whether the pod is paused and nothing is to be done about that: then nothing of it is synced."""
        return state.parts.pause is None and is_frozen(self._cache.get(state.uid))

    def leaves_unprobed(self, state: PodRecord) -> bool:
        """Whether probes would find, or may find, what cannot answer."""
        return state.parts.pause is not None or is_frozen(self._cache.get(state.uid))

    # --- requests ------------------------------------------------------------------------------------------------

    def on_request(self, request: FreezeRequest, now: Instant) -> None:
        """Answered at once when there is nothing to do; otherwise by the sync that does it."""
        try:
            state = self._asked_about(request)
        except RequestRefused as refused:
            self._refuse(request.ticket, refused)
            return
        before, state.parts.pause = state.parts.pause, None
        if before is not None:
            self._refuse(before.ticket, _conflict(f'pod "{request.name}": somebody has asked for something else since'))
        elif is_frozen(self._cache.get(state.uid)) is (request.freeze is Freeze.PAUSE):
            words = "is paused already" if request.freeze is Freeze.PAUSE else "is not paused"
            self._refuse(request.ticket, _conflict(f'pod "{request.name}" {words}'))
            return
        state.parts.pause = PauseRequest(request.freeze, request.ticket)
        state.lifecycle.sync_soon()
        self._pod_table.touch((state.uid,))

    def _asked_about(self, request: FreezeRequest) -> PodRecord:
        """Raises RequestRefused."""
        name = f"{request.namespace}/{request.name}"
        state = next((state for state in self._pod_table if state.name == name and state.pod is not None), None)
        if state is None:
            raise RequestRefused(404, "NotFound", f'pods "{request.name}" not found')
        if state.lifecycle.phase is not WorkType.SYNC:
            raise _conflict(f'pod "{request.name}" ends or has ended')
        if request.freeze is Freeze.PAUSE and (phase := self._statuses.phase(state.uid)) != "Running":
            raise _conflict(f'pod "{request.name}" does not run: its phase is {phase or "Pending"}')
        return state

    # --- what comes of them --------------------------------------------------------------------------------------

    def sync_ended(self, state: PodRecord, done: SyncDone, now: Instant) -> None:
        """Answer whoever has asked. A sync that was cancelled, or saw too little, is tried again."""
        asked = state.parts.pause
        if asked is None:
            return
        if state.lifecycle.phase is not WorkType.SYNC:
            self._answer(state, asked, _conflict(f'pod "{_name(state)}" ends meanwhile'))
            return
        result = next((result for result in done.results if result.action is ACTIONS[asked.freeze]), None)
        if result is not None and not result.error:
            self._answer(state, asked)
            self._reporter.pod_event(state, *_DONE[asked.freeze], now)
            state.lifecycle.resync()
        elif result is not None:
            self._answer(state, asked, _conflict(f'pod "{_name(state)}" cannot be {asked.freeze}d: {result.message}'))
            state.lifecycle.resync()
        elif done.error not in (SyncError.NONE, SyncError.STALE_VIEW):
            message = f'pod "{_name(state)}" was not {asked.freeze}d: {done.message}'
            self._answer(state, asked, RequestRefused(503, "ServiceUnavailable", message))

    def ended(self, state: PodRecord) -> None:
        """The pod is gone."""
        if (asked := state.parts.pause) is not None:
            self._answer(state, asked, _conflict(f'pod "{_name(state)}" is gone'))

    def _answer(self, state: PodRecord, asked: PauseRequest, refused: RequestRefused | None = None) -> None:
        state.parts.pause = None
        if refused is None:
            self._out.add(FreezeAnswered(asked.ticket))
        else:
            self._refuse(asked.ticket, refused)

    def _refuse(self, ticket: int, refused: RequestRefused) -> None:
        self._out.add(FreezeAnswered(ticket, refused.code, refused.reason, str(refused)))


def _name(state: PodRecord) -> str:
    return state.name.rpartition("/")[2]


def _conflict(message: str) -> RequestRefused:
    return RequestRefused(409, "Conflict", message)
