"""Rules of the product, each broken on purpose: the simulation has to find out, or it holds nothing.

``python -m tests.sim --break NAME`` (or ``all``) says in how many of the seeds each was found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Final
from unittest.mock import patch

import msgspec

import supervisor.status.generate
from ipc.kubecontainer.probe_results import ProbeResults
from ipc.kubecontainer.resize import ResizeJudge
from ipc.messages.node_worker import EVERY_REQUEST
from supervisor.eviction import rounds, victim
from supervisor.managers import probe_manager
from supervisor.managers.allocation import AllocationManager
from supervisor.managers.image_pulls import ImagePulls
from supervisor.managers.object_store import ObjectStore
from supervisor.podworkers.board_rows import RowAllocator
from supervisor.podworkers.observation_requests import ObservationRequests
from supervisor.podworkers.pod_cache import PodCache
from supervisor.podworkers.pod_lifecycle import PodLifecycle
from supervisor.podworkers.poison_pods import PoisonPods
from supervisor.syncloop import pod_admission, resizes
from supervisor.syncloop.announcer import Announcer
from supervisor.syncloop.dispatcher import Dispatcher
from supervisor.syncloop.node_pressure import NodePressureManager
from supervisor.syncloop.object_updates import ObjectUpdates
from supervisor.syncloop.pod_admission import PodAdmission
from supervisor.syncloop.pod_updates import PodUpdates
from supervisor.syncloop.removals import Removals
from supervisor.syncloop.sync_loop import SyncLoop
from workers.cm import pod_cgroup
from workers.compute import crash_loop_backoff
from workers.compute.init_containers import InitActions
from workers.kubecontainer.label_signatures import Ownership
from workers.kubecontainer.runtime import RuntimeCallError
from workers.kuberuntime import sync_terminating
from workers.kuberuntime.start_container import ContainerStarter
from workers.kuberuntime.termination_order import TerminationOrder
from workers.pleg.generic import GenericPLEG
from workers.pleg.observer import Observer
from workers.pod_worker import PodWorker
from workers.prober import manager
from workers.prober import state as probe_state

Mutation = Callable[[], AbstractContextManager[Any]]


def _replace(owner: Any, name: str, new: Any) -> Mutation:
    return partial(patch.object, owner, name, new)


def _forgets(self: ObservationRequests, *act: Any, **what: Any) -> None:
    """When the pod was acted on."""


def _tells_nothing(
    self: ObservationRequests, uid: str, ids: Any, *, unsure: bool, original: Any = ObservationRequests.touched
) -> None:
    original(self, uid, (), unsure=unsure)


def _answers_everything(self: GenericPLEG, status: Any, answers: int, original: Any = GenericPLEG._record) -> Any:
    return original(self, status, EVERY_REQUEST)


def _any_answer(self: PodLifecycle, done: Any) -> bool:
    return self.in_flight is not None


async def _attempt_of_view(
    self: ContainerStarter, container: Any, start: Any, original: Any = ContainerStarter._attempt
) -> int:
    await original(self, container, start)
    return int(start.attempt)


def _dated_late(
    self: Observer, uid: str, pods: Any, ids: Any, started_at: float, original: Any = Observer._status
) -> Any:
    return original(self, uid, pods, ids, self._clock.now().mono)


def _dated_by_note(self: Observer, status: Any, original: Any = Observer.with_records) -> Any:
    return msgspec.structs.replace(original(self, status), observed_at=self._clock.now().mono)


def _no_backoff(*_: Any) -> bool:
    return False


async def _removed_nothing(run: Any, sandbox: Any) -> bool:
    return True


def _hasty_removals(self: Removals, relisted_at: float) -> Any:
    due, self._waiting = self._waiting, {}
    return due


def _no_pull_again(self: ImagePulls, now_mono: float) -> list[Any]:
    self._node_up = True
    return []


async def _now(self: TerminationOrder, name: str, timeout_s: float) -> bool:
    return True


def _any_failure(spec: Any, state: Any, result: Any, now: Any, original: Any = probe_state.answer) -> Any:
    return original(msgspec.structs.replace(spec, failure_threshold=1), state, result, now)


def _never_gated(self: ProbeResults, container: Any) -> bool:
    return True


def _inherits(spec: Any, state: Any, *scene: Any, original: Any = probe_state._take_up) -> Any:
    taken = original(spec, state, *scene)
    return msgspec.structs.replace(taken, state=msgspec.structs.replace(taken.state, result=state.result))


def _has_stopped(self: Any, uid: str, original: Any = probe_manager._Prober.leave) -> Any:
    commands = original(self, uid)
    self.stopped()
    return commands


def _nothing_is_late(self: ObjectStore, *pod: Any, original: Any = ObjectStore.of_pod) -> Any:
    self.sources_ready()
    return original(self, *pod)


def _unfenced_status(self: Announcer, state: Any, now: Any, *, observed_at: float = 0.0) -> str:
    if state.pod is None:
        return ""
    observed, results = self._cache.get(state.uid), self._probes.results(state.uid)
    self._out.to_api(self._statuses.pod(state, observed, results, now, observed_at))
    return self._statuses.phase(state.uid)


def _only_now(last_observed: Any, period_s: float, now: float, original: Any = rounds.observed_since) -> Any:
    return original(last_observed, 0.1, now)


def _fails_all(self: Observer, *wanted: Any, original: Any = Observer._status_of) -> Any:
    try:
        return original(self, *wanted)
    except RuntimeCallError as error:
        raise ValueError(error) from error


MUTATIONS: Final[Mapping[str, Mutation]] = {
    "evict the critical, too": _replace(victim, "is_critical", lambda pod: False),
    "evict several at a time": _replace(NodePressureManager, "_is_cleaned_up", lambda self, uid: True),
    "evict before images were removed": _replace(NodePressureManager, "_is_reclaiming", lambda self, stage: False),
    "evict whoever comes first": _replace(victim, "rank", lambda pods, *_: tuple(pods)),
    "end conditions at once": _replace(rounds, "observed_since", _only_now),
    "let everybody in under pressure": _replace(pod_admission, "pressure_problem", lambda pod, conditions: None),
    "forget who was evicted": _replace(PodUpdates, "on_evictions_restored", lambda self, restored, now: None),
    "start the critical pod at once": _replace(PodAdmission, "is_waiting", lambda self, uid: False),
    "take any answer for the right one": _replace(PodLifecycle, "answered_by", _any_answer),
    "after a sync any view will do": _replace(ObservationRequests, "acted", _forgets),
    "keep to oneself what an act has touched": _replace(ObservationRequests, "touched", _tells_nothing),
    "take a view that knows nothing of the act": _replace(GenericPLEG, "_record", _answers_everything),
    "after a death any view will do": _replace(ObservationRequests, "lost", _forgets),
    "date an observation by its end": _replace(Observer, "_status", _dated_late),
    "take a monitor's note for a look": _replace(Observer, "with_records", _dated_by_note),
    "ignore the crash-loop back-off": _replace(crash_loop_backoff, "in_backoff", _no_backoff),
    "start mains before init containers": _replace(InitActions, "initialized", lambda self: True),
    "stop sidecars with the others": _replace(TerminationOrder, "must_wait", lambda self, name: False),
    "wait for nobody's turn": _replace(TerminationOrder, "wait_turn", _now),
    "never cancel a sync": _replace(PodWorker, "_cancel", lambda self, command: None),
    "count attempts by what is seen alone": _replace(ContainerStarter, "_attempt", _attempt_of_view),
    "leave terminal phases": _replace(supervisor.status.generate, "TERMINAL_PHASES", frozenset()),
    "remove before the sources were read": _replace(Removals, "take_due", _hasty_removals),
    "believe every label": _replace(Ownership, "_owns", lambda self, kind, name, found, created_at: True),
    "leave orphans": _replace(PodCache, "orphans", lambda self, known: []),
    "wait for answers of the dead": _replace(PodLifecycle, "lost", lambda self: None),
    "do not remove sandboxes": _replace(sync_terminating, "remove_sandbox", _removed_nothing),
    "begin no pull anew": _replace(ImagePulls, "node_up", _no_pull_again),
    "lose rows": _replace(RowAllocator, "give_back", lambda self, row: None),
    "fail a probe at its first failure": _replace(manager, "answer", _any_failure),
    "count containers as started that run": _replace(ProbeResults, "has_started", _never_gated),
    "hand a pod's probes over at once": _replace(probe_manager._Prober, "leave", _has_stopped),
    "let containers inherit a verdict": _replace(probe_state, "_take_up", _inherits),
    "sync nobody when a ConfigMap changes": _replace(ObjectUpdates, "_sync", lambda self, states, now: None),
    "take a late ConfigMap for an absent one": _replace(ObjectStore, "of_pod", _nothing_is_late),
    "let one pod's status end the agent": _replace(Announcer, "report", _unfenced_status),
    "let one pod's view fail the relist": _replace(Observer, "_status_of", _fails_all),
    "never try a status again": _replace(Announcer, "due_again", lambda self, now: []),
    "convict nobody": _replace(PoisonPods, "_convict", lambda self, uid, shard, now: None),
    "stop a convict by its manifest": _replace(Dispatcher, "_kills_going_down", lambda self, state: False),
    "restart whatever is resized": _replace(ResizeJudge, "needs_restart", lambda self, container, update: True),
    "resize nothing": _replace(ResizeJudge, "update_of", lambda self, container, made: None),
    "find room for every resize": _replace(resizes, "resize_problem", lambda before, pod, others, node: None),
    "miss no slice": _replace(pod_cgroup, "is_missing", lambda run, node, pod: False),
    "forget what was given to a container": _replace(AllocationManager, "actuate", lambda self, uid, given: None),
    "never look again by the clock": _replace(SyncLoop, "_on_sync_tick", lambda self, tick, now: None),
}
