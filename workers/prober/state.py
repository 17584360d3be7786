"""One probe of one container name, as a machine without I/O: which container it is about, what it has said, when the
next attempt is due.

Mirrors doProbe (pkg/kubelet/prober/worker.go). Different on purpose: upstream's ticker has its phase from when the pod
was added, here it is the container's own, so that the first attempt comes when the initial delay is over and not up to
a period later, and the attempts after a startup probe's success begin with it. An attempt that takes longer than a
period drops the ticks that it missed instead of one being made up for.
"""

from __future__ import annotations

import math
from typing import Final

import msgspec

from ipc.host.clock import Instant
from ipc.k8s.api.v1.probe import Probe
from ipc.k8s.kubecontainer.probe_results import ProbeResult, ProbeType

INITIAL_RESULTS: Final = {
    ProbeType.STARTUP: ProbeResult.UNKNOWN,
    ProbeType.LIVENESS: ProbeResult.SUCCESS,
    ProbeType.READINESS: ProbeResult.FAILURE,
}
"""Probe results of a container before its first probe (newWorker, initialValue)."""


EARLY_S: Final = 0.002
"""How much too early a timer of an event loop may come, in seconds: it has to be due then."""


TICKS_PER_S: Final = 16
"""Attempts begin on ticks of the monotonic clock, that many a second, which are the same ones in all processes: those
that are due within one tick wake this process, the dialer and the servers' host once and not each by itself. A power of
two: ticks are exact numbers, so a rhythm of whole seconds never leaves them."""


class ProbeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """When a probe is due, and how often it has to say the same. Durations in seconds."""

    type: ProbeType
    initial_delay_s: float
    period_s: float
    success_threshold: int
    failure_threshold: int


def probe_spec(type: ProbeType, probe: Probe) -> ProbeSpec:
    """Zero stands for the default wherever there is one: nothing is probed without a pause."""
    return ProbeSpec(
        type=type,
        initial_delay_s=float(max(probe.initial_delay_seconds, 0)),
        period_s=float(probe.period_seconds or 10),
        success_threshold=probe.success_threshold or 1,
        failure_threshold=probe.failure_threshold or 3,
    )


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The container that the probe's name stands for now. It runs."""

    id: str
    started_at: float
    """Epoch seconds."""


class ProbeInput(msgspec.Struct, frozen=True, kw_only=True):
    """Inputs of the next step of a probe besides its own state."""

    target: Target | None
    """None while none runs."""
    known_result: ProbeResult = ProbeResult.UNKNOWN
    """Probe result of the target from the worker that probed it before."""
    has_started: bool = True
    """The startup probe has succeeded, or there is none."""
    terminating: bool = False
    jitter_s: float = 0.0
    """How long the first attempt waits if the target ran before this prober did."""


class ProbeState(msgspec.Struct, frozen=True, kw_only=True):
    """Where one probe stands. Times in monotonic seconds."""

    born_wall: float
    """Start of this prober in epoch seconds: containers that were started before are adopted."""
    target: Target | None = None
    """The last one that ran."""
    result: ProbeResult = ProbeResult.UNKNOWN
    """Current probe result of the target."""
    last: ProbeResult = ProbeResult.UNKNOWN
    """The newest answer, and how often in a row it came."""
    run: int = 0
    not_before: float = 0.0
    due: float = math.inf
    """Time of the next attempt; infinite while none is planned."""
    ended: bool = False
    """Nothing is probed any more."""

    def on_hold(self, spec: ProbeSpec) -> bool:
        """The probe of this container has ended."""
        if spec.type is ProbeType.STARTUP:
            return self.result is not ProbeResult.UNKNOWN
        return spec.type is ProbeType.LIVENESS and self.result is ProbeResult.FAILURE


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """Next state of a probe, and what to do."""

    state: ProbeState
    says: ProbeResult | None = None
    """New probe result of the state's target; None when it has not changed."""
    attempt: bool = False
    """An attempt is due now."""


def next_step(spec: ProbeSpec, state: ProbeState, scene: ProbeInput, now: Instant) -> Step:
    """To be called when something may have changed, and when ``due`` has come."""
    if scene.target is None:
        return _without_target(spec, state, scene)
    step = Step(state=state)
    if scene.target != state.target:
        step = _take_up(spec, state, scene.target, scene, now)
    if scene.terminating and spec.type is not ProbeType.READINESS:
        return _end_quietly(spec, step)
    if step.state.on_hold(spec) or (spec.type is not ProbeType.STARTUP and not scene.has_started):
        return _replace(step, due=math.inf)
    if step.state.due == math.inf:
        step = _replace(step, due=_first_due(spec, step.state, scene.target, now))
    return msgspec.structs.replace(step, attempt=step.state.due - now.mono <= EARLY_S)


def answer(spec: ProbeSpec, state: ProbeState, result: ProbeResult, now: Instant) -> Step:
    """An attempt has ended. ``UNKNOWN``: it could not be carried out, which says nothing and is not counted."""
    state = msgspec.structs.replace(state, due=_next_due(spec, state.due, now.mono))
    if result is ProbeResult.UNKNOWN:
        return Step(state=state)
    run = state.run + 1 if result is state.last else 1
    state = msgspec.structs.replace(state, last=result, run=run)
    threshold = {ProbeResult.SUCCESS: spec.success_threshold, ProbeResult.FAILURE: spec.failure_threshold}[result]
    if run < threshold or result is state.result:
        return Step(state=state)
    state = msgspec.structs.replace(state, result=result)
    if state.on_hold(spec):
        state = msgspec.structs.replace(state, last=ProbeResult.UNKNOWN, run=0, due=math.inf)
    return Step(state=state, says=result)


def _without_target(spec: ProbeSpec, state: ProbeState, scene: ProbeInput) -> Step:
    """Nothing to probe. What does not run is not ready; the other two say nothing of it."""
    ended = scene.terminating and spec.type is not ProbeType.READINESS
    step = Step(state=msgspec.structs.replace(state, due=math.inf, ended=ended))
    if spec.type is ProbeType.READINESS and state.result is ProbeResult.SUCCESS:
        return _say(step, ProbeResult.FAILURE)
    return step


def _take_up(spec: ProbeSpec, state: ProbeState, target: Target, scene: ProbeInput, now: Instant) -> Step:
    """Another container, or the same one started again behind our back: it begins without a past."""
    again = state.target is not None and state.target.id == target.id
    initial = INITIAL_RESULTS[spec.type]
    result = initial if again or scene.known_result is ProbeResult.UNKNOWN else scene.known_result
    jitter_s = scene.jitter_s if target.started_at < state.born_wall else 0.0
    taken = ProbeState(
        born_wall=state.born_wall, target=target, result=result, not_before=now.mono + jitter_s if jitter_s else 0.0
    )
    return Step(state=taken, says=initial if again and state.result is not initial else None)


def _end_quietly(spec: ProbeSpec, step: Step) -> Step:
    """End a probe of a pod that terminates: unless it has failed, its result is success, so that no container is killed
    or waited for."""
    step = _replace(step, due=math.inf, ended=True)
    is_over = step.state.on_hold(spec) or step.state.result is ProbeResult.SUCCESS
    return step if is_over else _say(step, ProbeResult.SUCCESS)


def _say(step: Step, result: ProbeResult) -> Step:
    return msgspec.structs.replace(_replace(step, result=result), says=result)


def _replace(step: Step, **fields: object) -> Step:
    return msgspec.structs.replace(step, state=msgspec.structs.replace(step.state, **fields))


def _first_due(spec: ProbeSpec, state: ProbeState, target: Target, now: Instant) -> float:
    """Time of the first attempt. Wall clocks may jump, but no container waits longer than its initial delay."""
    left_s = target.started_at + spec.initial_delay_s - now.wall
    wanted = max(now.mono + min(max(left_s, 0.0), spec.initial_delay_s), state.not_before)
    return math.ceil(wanted * TICKS_PER_S) / TICKS_PER_S


def _next_due(spec: ProbeSpec, due: float, mono: float) -> float:
    """The next tick of the same rhythm."""
    if due == math.inf:
        return due
    missed = max(math.floor((mono + EARLY_S - due) / spec.period_s), 0)
    return due + (missed + 1) * spec.period_s
