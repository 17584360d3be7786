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
from ipc.k8s.kubecontainer.probe_results import ProbeResults
from ipc.k8s.kubecontainer.resize import ResizeJudge
from ipc.link.eventloop.backoff import Backoff
from ipc.link.messages.node_worker import EVERY_REQUEST
from ipc.link.messages.pod_worker import SyncEffects
from supervisor.control.shutdown_control import ShutdownControl
from supervisor.desired import pod_admission, resizes
from supervisor.desired.claim_holders import ClaimHolders
from supervisor.desired.object_updates import ObjectUpdates
from supervisor.desired.pod_admission import PodAdmission
from supervisor.desired.pod_updates import PodUpdates
from supervisor.desired.volume_updates import VolumeUpdates
from supervisor.eviction import rounds, victim
from supervisor.held_sends import HeldSends
from supervisor.loop.sync_messages import SyncMessages
from supervisor.loop.ticks import Ticks
from supervisor.managers import probe_manager
from supervisor.managers.allocation import AllocationManager
from supervisor.managers.image_pulls import ImagePulls
from supervisor.managers.node_shutdown import group_by_priority
from supervisor.managers.object_store import ObjectStore
from supervisor.node import node_shutdown
from supervisor.node.node_pressure import NodePressureManager
from supervisor.podcontrol.container_restarts import ContainerRestarts, RequestedRestarts
from supervisor.podcontrol.pod_reporter import PodReporter
from supervisor.podcontrol.removals import PodRemovals
from supervisor.pods.board_rows import RowAllocator
from supervisor.pods.cache import PodCache
from supervisor.pods.crash_attribution import CrashAttribution
from supervisor.pods.lifecycle import PodLifecycle
from supervisor.pods.observation_requests import ObservationRequests
from supervisor.protocol.source_updates import ObjectUpdate
from workers.cm import pod_cgroup
from workers.compute.init_containers import InitActions
from workers.containers.known_containers import KnownContainers
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


def replaced(owner: Any, name: str, new: Any) -> Mutation:
    return partial(patch.object, owner, name, new)


def _forgets(self: ObservationRequests, *act: Any, **what: Any) -> None:
    """When the pod was acted on."""


def _tells_nothing(
    self: ObservationRequests, uid: str, effects: SyncEffects, original: Any = ObservationRequests.touched
) -> None:
    original(self, uid, msgspec.structs.replace(effects, touched=()))


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


def _dated_by_note(self: KnownContainers, status: Any, original: Any = KnownContainers.with_records) -> Any:
    return msgspec.structs.replace(original(self, status), observed_at=self._clock.now().mono)


def _no_backoff(*_: Any) -> bool:
    return False


async def _removed_nothing(run: Any, sandbox: Any) -> bool:
    return True


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


def _has_stopped(uid: str, before: Any, original: Any = probe_manager._left) -> Any:
    probing, commands = original(uid, before)
    return msgspec.structs.replace(probing, leaving=None), commands


def _nothing_is_late(self: ObjectStore, *pod: Any, original: Any = ObjectStore.of_pod) -> Any:
    self.sources_ready()
    return original(self, *pod)


def _unfenced_status(self: PodReporter, state: Any, now: Any, *, observed_at: float = 0.0) -> str:
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


def _one_group(classes: Any, priorities: Any, original: Any = group_by_priority) -> Any:
    return original(tuple(classes)[:1], priorities)


def _admits_late(self: PodAdmission, pod: Any, now: Any, original: Any = PodAdmission.admit_new) -> Any:
    admission = original(self, pod, now)
    return self.admit(pod) if admission is node_shutdown.NOT_ADMITTED else admission


OF_CLAIMS: Final[Mapping[str, Mutation]] = {
    "release claims that are used": replaced(VolumeUpdates, "_used", lambda self: frozenset()),
    "give a claim for one to everybody": replaced(ClaimHolders, "holds", lambda self, *asking: True),
    "forget bindings with the agent": replaced(VolumeUpdates, "restore", lambda self, bound, now: ObjectUpdate()),
    "delete nothing": replaced(VolumeUpdates, "_delete", lambda self, now: None),
}
"""Found only where there are claims."""
MUTATIONS: Final[Mapping[str, Mutation]] = {
    "restart nothing that somebody asks for": replaced(RequestedRestarts, "ask", lambda self, *request: None),
    "forget with the agent who was to restart": replaced(ContainerRestarts, "on_restored", lambda self, *event: None),
    "end all groups at once": replaced(node_shutdown, "group_by_priority", _one_group),
    "admit while the node goes down": replaced(PodAdmission, "admit_new", _admits_late),
    "forget with the agent that the node goes down": replaced(ShutdownControl, "restore", lambda self: None),
    "evict the critical, too": replaced(victim, "is_critical", lambda pod: False),
    "evict several at a time": replaced(NodePressureManager, "_is_cleaned_up", lambda self, uid: True),
    "evict before images were removed": replaced(NodePressureManager, "_is_reclaiming", lambda self, stage: False),
    "evict whoever comes first": replaced(victim, "rank", lambda pods, *_: tuple(pods)),
    "end conditions at once": replaced(rounds, "observed_since", _only_now),
    "let everybody in under pressure": replaced(pod_admission, "pressure_problem", lambda pod, conditions: None),
    "forget who was evicted": replaced(PodUpdates, "on_evictions_restored", lambda self, restored, now: None),
    "start the critical pod at once": replaced(PodAdmission, "is_waiting", lambda self, uid: False),
    "take any answer for the right one": replaced(PodLifecycle, "answered_by", _any_answer),
    "after a sync any view will do": replaced(ObservationRequests, "acted", _forgets),
    "keep to oneself what an act has touched": replaced(ObservationRequests, "touched", _tells_nothing),
    "take a view that knows nothing of the act": replaced(GenericPLEG, "_record", _answers_everything),
    "after a death any view will do": replaced(ObservationRequests, "lost", _forgets),
    "date an observation by its end": replaced(Observer, "_status", _dated_late),
    "take a monitor's note for a look": replaced(KnownContainers, "with_records", _dated_by_note),
    "ignore the crash-loop back-off": replaced(Backoff, "must_wait", _no_backoff),
    "start mains before init containers": replaced(InitActions, "initialized", lambda self: True),
    "stop sidecars with the others": replaced(TerminationOrder, "must_wait", lambda self, name: False),
    "wait for nobody's turn": replaced(TerminationOrder, "wait_turn", _now),
    "never cancel a sync": replaced(PodWorker, "_cancel", lambda self, command: None),
    "count attempts by what is seen alone": replaced(ContainerStarter, "_attempt", _attempt_of_view),
    "leave terminal phases": replaced(supervisor.status.generate, "TERMINAL_PHASES", frozenset()),
    "remove before the sources were read": replaced(PodRemovals, "_is_enough_known", lambda self: True),
    "believe every label": replaced(Ownership, "_owns", lambda self, kind, name, found, created_at: True),
    "leave orphans": replaced(PodCache, "orphans", lambda self: []),
    "wait for answers of the dead": replaced(PodLifecycle, "lost", lambda self: None),
    "forget what a lost sync was to remove": replaced(PodLifecycle, "_collect_again", lambda self, flight: None),
    "do not remove sandboxes": replaced(sync_terminating, "remove_sandbox", _removed_nothing),
    "begin no pull anew": replaced(ImagePulls, "node_up", _no_pull_again),
    "lose rows": replaced(RowAllocator, "give_back", lambda self, row: None),
    "fail a probe at its first failure": replaced(manager, "answer", _any_failure),
    "count containers as started that run": replaced(ProbeResults, "has_started", _never_gated),
    "hand a pod's probes over at once": replaced(probe_manager, "_left", _has_stopped),
    "let containers inherit a verdict": replaced(probe_state, "_take_up", _inherits),
    "sync nobody when a ConfigMap changes": replaced(ObjectUpdates, "_sync", lambda self, states, now: None),
    "take a late ConfigMap for an absent one": replaced(ObjectStore, "of_pod", _nothing_is_late),
    "let one pod's status end the agent": replaced(PodReporter, "report", _unfenced_status),
    "let one pod's view fail the relist": replaced(Observer, "_status_of", _fails_all),
    "never try a status again": replaced(PodReporter, "due_again", lambda self, now: []),
    "attribute no crash": replaced(CrashAttribution, "_attribute", lambda self, uid, shard, now: None),
    "stop a quarantined pod by its manifest": replaced(SyncMessages, "_crashes_going_down", lambda self, state: False),
    "restart whatever is resized": replaced(ResizeJudge, "needs_restart", lambda self, container, update: True),
    "resize nothing": replaced(ResizeJudge, "update_of", lambda self, container, made: None),
    "send before it is written": replaced(HeldSends, "take", lambda self, command, now: self._send(command)),
    "find room for every resize": replaced(resizes, "resize_problem", lambda before, pod, others, node: None),
    "miss no slice": replaced(pod_cgroup, "is_missing", lambda run, node, pod: False),
    "forget what was given to a container": replaced(AllocationManager, "actuate", lambda self, uid, given: None),
    "never look again by the clock": replaced(Ticks, "on_sync_tick", lambda self, tick, now: None),
}
