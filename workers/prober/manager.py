"""Probe manager of a pod worker: one task per probe of each pod that the master has assigned to it.

A task sleeps until its probe is due or its pod has changed, reads the pod's row on the board, and lets ``state`` decide
the next step. No probe waits for another but for a startup probe that holds the others back.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Set
from typing import Final, Protocol

import msgspec

from ipc.host.clock import Clock
from ipc.host.log.entry import Subject, line_about
from ipc.k8s.api.pod_containers import every_container, field_path
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.probe import Probe
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimePodStatus
from ipc.k8s.kubecontainer.probe_results import NO_PROBE_RESULTS, ProbeResult, ProbeResults, ProbeType, probes_of
from ipc.link.eventloop.tasks import BackgroundTasks, FailureLog, restarted
from ipc.link.messages.base import EventReport
from ipc.link.messages.pod_worker import ContainersChanged, ProbePod, ProbeResultChanged, ProbingStopped
from ipc.link.shm.board import Board
from ipc.link.shm.observation_rows import decode_status
from ipc.link.shm.trace import TRACER
from workers.exec.keyed_limiter import KeyedLimiter
from workers.podhttp.pod_network import pod_network
from workers.prober.events import outcome_event
from workers.prober.outcome import Answer, ProbeError, ProbeOutcome, ProbeTarget
from workers.prober.state import (
    INITIAL_RESULTS,
    ProbeInput,
    ProbeSpec,
    ProbeState,
    Step,
    Target,
    answer,
    next_step,
    probe_spec,
)

PROBES_OF_A_POD: Final = 16
"""Attempts under way of one pod that wait for nobody else's, which may hang for as long as they may take."""
MAX_MORE_PROBES: Final = 1000
"""Attempts under way in one worker beyond those: each may hold a socket or two."""
MAX_TRIES: Final = 3
"""How often an attempt that could not be carried out is begun again at once (pkg/kubelet/prober/prober.go)."""
OVERTIME_S: Final = 10.0
"""How long an attempt may take beyond its probe's own timeout: what it calls has deadlines of its own."""
STOP_WAIT_S: Final = 5.0
"""How long attempts that are broken off get to clean up, in seconds."""
SHORTEST_PERIOD_S: Final = 1.0
"""Shortest period of a probe that a manifest can state."""
UNREADABLE_RETRY_S: Final = 1.0
"""Time until an unreadable row is read again, in seconds: it may be being written."""

RESULTS: Final = {
    Answer.SUCCESS: ProbeResult.SUCCESS,
    Answer.WARNING: ProbeResult.SUCCESS,
    Answer.FAILURE: ProbeResult.FAILURE,
}

COUNTED_AS: Final = {
    ProbeResult.SUCCESS: "successful",
    ProbeResult.FAILURE: "failed",
    ProbeResult.UNKNOWN: "unknown",
}
"""Value of the label ``result`` of prober_probe_total."""

log = logging.getLogger(__name__)

ProberReport = ProbeResultChanged | EventReport | ProbingStopped
Key = tuple[str, ProbeType]
"""Container name, and which of its probes."""


class Attempt(Protocol):
    """Carries out one probe once, within its timeout."""

    async def __call__(self, probe: Probe, target: ProbeTarget) -> ProbeOutcome:
        """Raises ProbeError."""


class _Prober:
    """One probe of one container name, and its task."""

    def __init__(self, container: Container, type: ProbeType, probe: Probe, born_wall: float) -> None:
        self.container = container
        self.type = type
        self.probe = probe
        """As the manifest has it."""
        self.asked = msgspec.structs.replace(probe, timeout_seconds=probe.timeout_seconds or 1)
        """As it is attempted."""
        self.spec: ProbeSpec = probe_spec(type, probe)
        self.state = ProbeState(born_wall=born_wall)
        self.wake = asyncio.Event()
        self.failures = FailureLog(f"{type} probe of container {container.name}")
        """Unexpected errors of attempts."""
        self.task: asyncio.Task[None]


class _Seen(msgspec.Struct, frozen=True):
    """A pod's row as it was read last, and what that says."""

    row: int
    sequence: int
    """Sequence number of the row before it was read."""
    payload: bytes
    status: RuntimePodStatus


class _ProbedPod:
    """State that the probes of one pod share."""

    def __init__(self, command: ProbePod) -> None:
        self.command = command
        self.probe_results: dict[str, ProbeResults] = {}
        """Probe results by container id, from the master and from this worker."""
        self.probers: dict[Key, _Prober] = {}
        self.seen: _Seen | None = None

    def take(self, command: ProbePod) -> None:
        self.command = command
        self.learn(command.probe_results)

    def learn(self, known: Mapping[str, ProbeResults]) -> None:
        """Results from before this worker: each counts until it has found one itself, also for a container that it has
        seen on the board before they came."""
        for id, results in known.items():
            found = self.probe_results.get(id, NO_PROBE_RESULTS)
            news = {probe: results.of(probe) for probe in ProbeType if found.of(probe) is ProbeResult.UNKNOWN}
            news = {probe: result for probe, result in news.items() if result is not ProbeResult.UNKNOWN}
            for probe, result in news.items():
                found = found.changed(probe, result)
            self.probe_results[id] = found
            for prober in self.probers.values():
                target = prober.state.target
                if target is not None and target.id == id and prober.type in news:
                    prober.state = msgspec.structs.replace(prober.state, result=news[prober.type])

    def forget_all_but(self, ids: Set[str]) -> None:
        self.probe_results = {id: probe_results for id, probe_results in self.probe_results.items() if id in ids}

    def wake(self, name: str | None = None) -> None:
        """Wake all probes of the pod, or those of one container."""
        for prober in self.probers.values():
            if name in (None, prober.container.name):
                prober.wake.set()


class PodProber:
    """The probes of all pods that this worker probes."""

    def __init__(
        self,
        board: Board,
        clock: Clock,
        attempt: Attempt,
        send: Callable[[ProberReport], Awaitable[None]],
        rng: random.Random,
        host_ips: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        """``host_ips``: where pods in the host's network are reached."""
        self._host_ips = host_ips
        self._board = board
        self._clock = clock
        self._attempt = attempt
        self._send = send
        self._rng = rng
        self._pods: dict[str, _ProbedPod] = {}
        self._capacity = KeyedLimiter(own=PROBES_OF_A_POD, common=MAX_MORE_PROBES)
        self._tasks = BackgroundTasks()

    # --- commands ---

    async def probe(self, command: ProbePod) -> None:
        """Begin, or go on in another way."""
        pod = self._pods.setdefault(command.uid, _ProbedPod(command))
        pod.take(command)
        wanted = _wanted_probes(command.pod)
        for key, prober in list(pod.probers.items()):
            container, probe = wanted.get(key, (None, None))
            if container is None or probe != prober.probe:
                prober.task.cancel()
                del pod.probers[key]
            else:
                prober.container = container
        for key, (container, probe) in wanted.items():
            if key not in pod.probers:
                self._begin(pod, key, container, probe)
        pod.wake()
        await self._resend(pod, command.probe_results)

    async def containers_changed(self, command: ContainersChanged) -> None:
        pod = self._pods.get(command.uid)
        if pod is None:
            return
        pod.learn(command.probe_results)
        pod.wake()
        await self._resend(pod, command.probe_results)

    def stop(self, uid: str) -> None:
        """Answered when the last attempt is over. A pod that is not probed here is answered for too."""
        pod = self._pods.pop(uid, None)
        self._tasks.spawn(self._stop(uid, pod.probers.values() if pod else ()), name=f"end of the probes of pod {uid}")

    async def _stop(self, uid: str, probers: Iterable[_Prober]) -> None:
        await _end([prober.task for prober in probers])
        await self._send(ProbingStopped(uid=uid))

    async def close(self) -> None:
        """Stop all probes, without reports."""
        self._pods.clear()
        await _end(self._tasks)

    # --- one probe ---

    def _begin(self, pod: _ProbedPod, key: Key, container: Container, probe: Probe) -> None:
        prober = pod.probers[key] = _Prober(container, key[1], probe, self._clock.now().wall)
        name = f"prober of {key[0]} ({key[1]}) of pod {pod.command.uid}"
        prober.task = self._tasks.spawn(
            restarted(lambda: self._run(pod, prober), name=name, on_failure=lambda e: self._died(pod, prober, e)),
            name=name,
        )

    def _died(self, pod: _ProbedPod, prober: _Prober, error: BaseException) -> None:
        """Send an event about a probe's task that has failed and begins again."""
        failure = ProbeError(f"the prober has failed and begins anew: {type(error).__name__}")
        self._tasks.spawn(self._report(pod.command.pod, prober, failure), name="event about a prober")

    async def _run(self, pod: _ProbedPod, prober: _Prober) -> None:
        while True:
            prober.wake.clear()
            view = self._view(pod)
            if view is None:
                await self._sleep(prober, self._clock.now().mono + UNREADABLE_RETRY_S)
                continue
            step = self._next_step(pod, prober, view)
            await self._apply(pod, prober, step)
            if step.state.ended:
                return
            if step.attempt:
                await self._probe(pod, prober, view)
            await self._sleep(prober, prober.state.due)

    def _next_step(self, pod: _ProbedPod, prober: _Prober, view: RuntimePodStatus) -> Step:
        target = _find_target(view, prober.container.name)
        probe_results = pod.probe_results.get(target.id, NO_PROBE_RESULTS) if target is not None else NO_PROBE_RESULTS
        scene = ProbeInput(
            target=target,
            known_result=probe_results.of(prober.type),
            has_started=probe_results.has_started(prober.container),
            terminating=pod.command.terminating,
            jitter_s=self._jitter_s(prober, target),
        )
        return next_step(prober.spec, prober.state, scene, self._clock.now())

    def _jitter_s(self, prober: _Prober, target: Target | None) -> float:
        """For a container that ran already: all of them would be probed in the moment of a restart. Probes of each
        second are, lest their worker's death cost them one more."""
        if target is None or target == prober.state.target:
            return 0.0
        return self._rng.random() * max(0.0, prober.spec.period_s - SHORTEST_PERIOD_S)

    async def _probe(self, pod: _ProbedPod, prober: _Prober, view: RuntimePodStatus) -> None:
        target = prober.state.target
        assert target is not None
        release = await self._capacity.acquire(pod.command.uid)
        began = self._clock.now().mono
        try:
            with TRACER.span(f"probe: {prober.type}", pod.command.uid):
                outcome = await self._try(prober, self._target(prober, target, view))
        finally:
            release()
        said = RESULTS[outcome.answer] if isinstance(outcome, ProbeOutcome) else ProbeResult.UNKNOWN
        took_s, command = self._clock.now().mono - began, pod.command
        self._board.probes.count(command.row, command.uid, prober.container.name, prober.type, COUNTED_AS[said], took_s)
        if log.isEnabledFor(logging.DEBUG):
            meta = command.pod.metadata
            about = Subject(namespace=meta.namespace, name=meta.name, uid=command.uid, container=prober.container.name)
            log.debug("%s probe: %s", prober.type, said.name.lower(), extra=line_about(about, duration_s=took_s))
        # The result first: an event that cannot be sent does not cost the container its result.
        await self._apply(pod, prober, answer(prober.spec, prober.state, said, self._clock.now()))
        await self._report(pod.command.pod, prober, outcome)

    def _target(self, prober: _Prober, target: Target, view: RuntimePodStatus) -> ProbeTarget:
        network = pod_network(view, self._host_ips())
        return ProbeTarget(container=prober.container, container_id=target.id, network=network)

    async def _try(self, prober: _Prober, target: ProbeTarget) -> ProbeOutcome | ProbeError:
        """Outcome of an attempt, or the error of the last try; a timeout is not tried again. An unexpected exception is
        a failed probe: it was no success."""
        error = ProbeError()
        timeout_s = prober.asked.timeout_seconds + OVERTIME_S
        for _ in range(MAX_TRIES):
            try:
                async with asyncio.timeout(timeout_s):
                    outcome = await self._attempt(prober.asked, target)
                prober.failures.succeeded()
                return outcome
            except TimeoutError:
                return ProbeError(f"not carried out within {timeout_s:g} s")
            except ProbeError as failed:
                error = failed
            except Exception as failed:
                prober.failures.note(failed)
                return ProbeOutcome(Answer.FAILURE, f"unexpected {type(failed).__name__}: {failed}")
        return error

    async def _sleep(self, prober: _Prober, until: float) -> None:
        """Until then (monotonic seconds), or until something happens."""
        timer = None
        if until < math.inf:
            delay_s = max(until - self._clock.now().mono, 0.0)
            timer = asyncio.get_running_loop().call_later(delay_s, prober.wake.set)
        try:
            await prober.wake.wait()
        finally:
            if timer is not None:
                timer.cancel()

    # --- reports ---

    async def _apply(self, pod: _ProbedPod, prober: _Prober, step: Step) -> None:
        prober.state = step.state
        target = step.state.target
        if step.says is None or target is None:
            return
        known = pod.probe_results.get(target.id, NO_PROBE_RESULTS)
        pod.probe_results[target.id] = known.changed(prober.type, step.says)
        if prober.type is ProbeType.STARTUP:
            pod.wake(prober.container.name)
        await self._send(_result_changed(pod, prober, target))

    async def _resend(self, pod: _ProbedPod, known: Mapping[str, ProbeResults]) -> None:
        """Send again results that the master does not have, of containers that exist."""
        view = self._view(pod)
        if view is None:
            return
        there = {container.id for container in view.containers}
        pod.forget_all_but(there)
        for prober in list(pod.probers.values()):
            target = prober.state.target
            if (
                target is not None
                and target.id in there
                and _is_unreported(prober, known.get(target.id, NO_PROBE_RESULTS))
            ):
                await self._send(_result_changed(pod, prober, target))

    async def _report(self, pod: Pod, prober: _Prober, outcome: ProbeOutcome | ProbeError) -> None:
        event = outcome_event(prober.type, outcome)
        if event is None:
            return
        await self._send(
            EventReport(
                uid=pod.metadata.uid,
                namespace=pod.metadata.namespace,
                name=pod.metadata.name,
                type=event.reason.type,
                reason=event.reason.reason,
                message=event.message,
                field_path=field_path(pod.spec, prober.container.name),
                wall=self._clock.now().wall,
            )
        )

    # --- the board ---

    def _view(self, pod: _ProbedPod) -> RuntimePodStatus | None:
        """Newest status of the pod, decoded again only when its row has changed."""
        command = pod.command
        if command.row < 0:
            return command.status
        sequence, seen = self._board.pod_sequence(command.row), pod.seen
        if seen is not None and (seen.row, seen.sequence) == (command.row, sequence):
            return seen.status
        row = self._board.read_pod(command.row)
        if row is None or row.uid != command.uid:
            return None
        status = seen.status if seen is not None and seen.payload == row.payload else decode_status(row)
        pod.seen = _Seen(command.row, sequence, row.payload, status)
        return status


def _result_changed(pod: _ProbedPod, prober: _Prober, target: Target) -> ProbeResultChanged:
    """Report of a container's current probe result."""
    return ProbeResultChanged(
        uid=pod.command.uid,
        name=prober.container.name,
        container_id=target.id,
        probe=prober.type,
        result=prober.state.result,
    )


def _is_unreported(prober: _Prober, known: ProbeResults) -> bool:
    """Nothing said yet is the same as what counts initially."""
    initial = INITIAL_RESULTS[prober.type]
    said = known.of(prober.type)
    return prober.state.result is not (initial if said is ProbeResult.UNKNOWN else said)


def _find_target(view: RuntimePodStatus, name: str) -> Target | None:
    """The newest container of that name, if it runs."""
    newest = view.newest(name)
    if newest is None or newest.state is not ContainerState.RUNNING:
        return None
    return Target(id=newest.id, started_at=newest.started_at)


def _wanted_probes(pod: Pod) -> dict[Key, tuple[Container, Probe]]:
    """Regular containers' and sidecars': no other container may have any."""
    return {
        (found.container.name, type): (found.container, probe)
        for found in every_container(pod.spec)
        for type, probe in probes_of(found.container).items()
    }


async def _end(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Break them off, and wait until they have cleaned up."""
    pending = list(tasks)
    for task in pending:
        task.cancel()
    if pending:
        await asyncio.wait(pending, timeout=STOP_WAIT_S)
