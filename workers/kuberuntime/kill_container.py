"""Stops containers and sandboxes: preStop hook, termination order, stop signal, grace period, SIGKILL, confirmed end.

Mirrors killContainer, killContainersWithSyncResult (pkg/kubelet/kuberuntime/kuberuntime_container.go) and
killPodWithSyncResult (kuberuntime_manager.go). The grace period is spent waiting for the container's process, not in
a Podman call, so that no thread is held and a shorter grace period can cut it. Different on purpose: a container that
ends by itself during its preStop hook or the wait for others is not waited for any longer, and a stop that is begun
anew with a shorter grace period does not run the hook a second time (see `workers.lifecycle.pre_stops`).
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Container, Sequence
from typing import Final

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.probe import LifecycleHandler
from ipc.k8s.kubecontainer.pod_status import SandboxState, SandboxStatus
from ipc.link.eventloop.tasks import first_of
from ipc.link.messages import event_reasons
from ipc.link.messages.pod_worker import SyncAction
from ipc.link.messages.sync_error import SyncError
from workers.compute.grace_period import signal_window_s
from workers.compute.kill_spec import ContainerKill
from workers.kubecontainer.runtime import ContainerProcess, ErrorKind, RuntimeCallError
from workers.kuberuntime.remove import remove_id
from workers.kuberuntime.termination_order import TerminationOrder, termination_order
from workers.lifecycle.handlers import HandlerRunner, HookFailed, HookTarget
from workers.sync.record import SyncEnded
from workers.sync.run import SyncRun

DEFAULT_STOP_SIGNAL: Final = "SIGTERM"
KILL_WAIT_S: Final = 10.0
"""How long a process may take to end after SIGKILL, in seconds, before the stop has failed."""
NOTICE_WAIT_S: Final = 5.0
"""How long Podman may take to notice that a process has ended, in seconds."""
NOTICE_POLL_S: Final = 0.02
"""Pause between the first two inspects, in seconds; each next pause is twice as long."""
SIGNAL_HOLD_S: Final = 0.05
"""How long a stop signal keeps its turn while the process ends, in seconds: many pods are not taken down faster than
Podman removes them, because its clean-ups after all their ends would be in the way of the removals."""
RECORD_PAUSES_S: Final = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064)
"""Pauses after each look for the monitor's record of an end, in seconds; the last one is repeated. It writes that
within 5 ms, unless the host is busy."""
RECORD_READ_S: Final = 0.02
"""How long after a record its monitor is dismissed, in seconds: without it nobody can read the record, for which the
node worker looks in pauses of its own."""
RECORD_WAIT_S: Final = 3.0
"""How long a monitor that lives may take for it, in seconds, before Podman is asked, which reads the same record."""

_ENDED: Final = frozenset({"stopped", "exited"})
"""Podman's states of a container whose end it has noticed."""
_FREED: Final = frozenset({"exited"})
"""And of one whose network and ports are free again."""


async def kill_container(run: SyncRun, handlers: HandlerRunner, target: ContainerKill) -> None:
    """Stop one container of a pod that stays, and record it (killContainer). Raises SyncEnded when that fails: a
    container that survives its SIGKILL ends the sync, and the next one tries again."""
    try:
        await _kill_in_turn(run, handlers, target, termination_order(None, ()))
    except SyncEnded as ended:
        if ended.error is SyncError.KILL_CONTAINER:
            await run.event(event_reasons.FAILED_KILL_CONTAINER, f"error killing {ended.message}", target.name)
        raise


async def kill_pod(
    run: SyncRun,
    handlers: HandlerRunner,
    pod: Pod | None,
    targets: Sequence[ContainerKill],
    sandboxes: Sequence[SandboxStatus],
) -> None:
    """Stop these containers, all at once but for sidecars, which stop last; then the sandboxes (killPodWithSyncResult).

    Raises SyncEnded when one of them fails.
    """
    order = termination_order(pod, [target.name for target in targets])
    try:
        stops = (_kill_in_turn(run, handlers, target, order) for target in targets)
        outcomes = await asyncio.gather(*stops, return_exceptions=True)
        for failure in (outcome for outcome in outcomes if isinstance(outcome, BaseException)):
            raise failure
        for sandbox in sandboxes:
            if sandbox.state is SandboxState.READY:
                await _kill_sandbox(run, sandbox)
    except SyncEnded as ended:
        if not ended.cancelled:
            await run.event(event_reasons.FAILED_TO_KILL_POD, f"error killing pod: {ended.message}")
        raise


async def _kill_in_turn(run: SyncRun, handlers: HandlerRunner, target: ContainerKill, order: TerminationOrder) -> None:
    """killContainer. Raises SyncEnded."""
    await run.event(event_reasons.KILLING_CONTAINER, target.message, target.name)
    try:
        await _stop(run, handlers, target, order)
        if not await _ended(run, target.process) or target.remove:
            # A container whose end Podman missed (its monitor is gone) would show as running for ever.
            await remove_id(run, run.runtime.remove_container, target.id)
    except RuntimeCallError as error:
        run.record.failed(SyncAction.KILL_CONTAINER, target.name, SyncError.KILL_CONTAINER, error.message)
        raise SyncEnded(SyncError.KILL_CONTAINER, f"container {target.name}: {error.message}") from error
    handlers.pre_stops.forget(target.id)
    order.terminated(target.name)
    run.record.succeeded(SyncAction.KILL_CONTAINER, target.name)
    run.record.did(f"stopped {target.name}")


async def _kill_sandbox(run: SyncRun, sandbox: SandboxStatus) -> None:
    """Kill the sandbox's infra container, without a grace period: it only holds namespaces."""
    process = _infra_process(sandbox)
    try:
        await _kill(run, process)
        if not await _ended(run, process):
            # The sandbox would show as ready for ever; its containers are dead, and their logs are kept by the agent.
            await remove_id(run, run.runtime.remove_pod, sandbox.id)
    except RuntimeCallError as error:
        run.record.failed(SyncAction.KILL_SANDBOX, run.pod.name, SyncError.KILL_POD_SANDBOX, error.message)
        raise SyncEnded(SyncError.KILL_POD_SANDBOX, f"sandbox {sandbox.attempt}: {error.message}") from error
    run.record.succeeded(SyncAction.KILL_SANDBOX, run.pod.name)
    run.record.did(f"stopped sandbox {sandbox.attempt}")


async def end_before_removal(run: SyncRun, sandbox: SandboxStatus) -> None:
    """SIGKILL to the infra container of a sandbox that is about to be removed: Podman's removal takes half as long for
    one that has ended, of which its monitor has noted that, as for one that it kills itself. Where it cannot be done
    past Podman the removal does it. And the monitor is dismissed: Podman's clean-up would be beside that call."""
    process = _infra_process(sandbox)
    if sandbox.state is not SandboxState.READY or not await run.signal(process, "SIGKILL", SIGNAL_HOLD_S):
        return
    if await _is_recorded(run, process):
        await asyncio.sleep(RECORD_READ_S)
        run.runtime.dismiss_monitor(process)


def _infra_process(sandbox: SandboxStatus) -> ContainerProcess:
    return ContainerProcess(
        container_id=sandbox.infra_id,
        pid=sandbox.infra_pid,
        start_ticks=sandbox.infra_start_ticks,
        monitor_pid=sandbox.infra_monitor_pid,
    )


async def wait_freed(run: SyncRun, sandboxes: Sequence[SandboxStatus]) -> None:
    """Wait, within NOTICE_WAIT_S, until Podman has freed the resources of killed sandboxes, host ports above all."""
    for sandbox in sandboxes:
        if sandbox.state is SandboxState.READY:
            with contextlib.suppress(RuntimeCallError):  # the create fails if they are not free
                await _noticed(run, sandbox.infra_id, _FREED)


async def _stop(run: SyncRun, handlers: HandlerRunner, target: ContainerKill, order: TerminationOrder) -> None:
    """Run the preStop hook, wait for the container's turn, send the stop signal, then SIGKILL. Raises RuntimeCallError
    when it still runs."""
    began = run.clock.now().mono
    waits = target.grace_period_s > 0 and (target.pre_stop is not None or order.must_wait(target.name))
    if waits and await run.unless_cancelled(_before_signal, run, handlers, target, order):
        return
    left_s = signal_window_s(target.grace_period_s, run.clock.now().mono - began)
    if not await _signal(run, target.process, target.stop_signal or DEFAULT_STOP_SIGNAL, left_s):
        await _kill(run, target.process)


async def _before_signal(run: SyncRun, handlers: HandlerRunner, target: ContainerKill, order: TerminationOrder) -> bool:
    """Run the hook and wait for the turn until the grace period ends. True when the container has ended by then.

    Raises RuntimeCallError, SyncEnded.
    """
    if await _has_ended(run, target):
        return True
    return await first_of(
        run.read(run.runtime.wait_exit, target.process, target.grace_period_s),
        _hook_and_turn(run, handlers, target, order),
    )


async def _hook_and_turn(run: SyncRun, handlers: HandlerRunner, target: ContainerKill, order: TerminationOrder) -> bool:
    """False: the container has not ended by its hook or turn."""
    if target.pre_stop is not None:
        await _pre_stop(run, handlers, target, target.pre_stop)
    await order.wait_turn(target.name, target.grace_period_s)
    return False


async def _pre_stop(run: SyncRun, handlers: HandlerRunner, target: ContainerKill, hook: LifecycleHandler) -> None:
    """Run the preStop hook (executePreStopHook), or wait for the one that an earlier stop has begun. When it fails, an
    event is sent and the stop goes on.

    Raises SyncEnded when the runtime does not answer.
    """
    pre_stops, on = handlers.pre_stops, HookTarget(target.id, target.name)
    task = pre_stops.begin(target.id, lambda: handlers.run(run, hook, on), (HookFailed, SyncEnded))
    if task.done():
        return
    run.step(f"preStop of {target.name}")
    try:
        await asyncio.shield(task)
    except HookFailed:
        if not await _has_ended(run, target):
            await run.event(event_reasons.FAILED_PRE_STOP_HOOK, "PreStopHook failed", target.name)
    except SyncEnded:
        pre_stops.forget(target.id)
        raise


async def _has_ended(run: SyncRun, target: ContainerKill) -> bool:
    return await run.read(run.runtime.wait_exit, target.process, 0.0)


async def _kill(run: SyncRun, process: ContainerProcess) -> None:
    if not await _signal(run, process, "SIGKILL", KILL_WAIT_S):
        raise RuntimeCallError(ErrorKind.INTERNAL, "kill container", f"still runs {KILL_WAIT_S:g} s after SIGKILL")


async def _signal(run: SyncRun, process: ContainerProcess, signal: str, timeout_s: float) -> bool:
    """By pidfd, or else by Podman; then wait for the end of the process. False when the time is over."""
    hold_s = min(SIGNAL_HOLD_S, timeout_s)
    if await run.signal(process, signal, hold_s):
        timeout_s -= hold_s
    else:
        await run.act(run.runtime.kill_container, process.container_id, signal)
    return await run.unless_cancelled(run.runtime.wait_exit, process, timeout_s)


async def _ended(run: SyncRun, process: ContainerProcess) -> bool:
    """Wait until Podman shows the end of a process that has ended; False when it does not within NOTICE_WAIT_S. It does
    when the monitor has recorded the end: then it is not asked, and its own clean-up not waited for."""
    return await _is_recorded(run, process) or await _noticed(run, process.container_id, _ENDED)


async def _is_recorded(run: SyncRun, process: ContainerProcess) -> bool:
    """Wait until the monitor has recorded the end of a process; False when it does not in time, or has gone."""
    began = run.clock.now().mono
    for pause_s in itertools.chain(RECORD_PAUSES_S, itertools.repeat(RECORD_PAUSES_S[-1])):
        if run.runtime.recorded_end(process) is not None:
            return True
        if run.clock.now().mono - began >= RECORD_WAIT_S or not run.runtime.will_record(process):
            break
        await asyncio.sleep(pause_s)
    return False


async def _noticed(run: SyncRun, id: str, states: Container[str]) -> bool:
    """Wait until Podman shows one of the states, or no container; False when it does not within NOTICE_WAIT_S."""
    pause_s = NOTICE_POLL_S
    try:
        async with asyncio.timeout(NOTICE_WAIT_S):
            while (await run.read(run.runtime.inspect_container, id)).state not in states:
                await asyncio.sleep(pause_s)
                pause_s *= 2
    except TimeoutError:
        return False
    except RuntimeCallError as error:
        if error.kind is not ErrorKind.NOT_FOUND:
            raise
    return True
