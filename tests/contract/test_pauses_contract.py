"""Pausing a pod. A host whose containers have no cgroups to freeze refuses; then the fake refuses in the same way."""

from __future__ import annotations

import pytest

from tests.contract.target import DEADLINE_S, FakeTarget, Target, exited, running
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError

NOWHERE = "0123456789abcdef" * 4
"""An id that nothing has."""


async def refusal(target: Target, pod: str) -> RuntimeCallError | None:
    """Why the pod cannot be paused; None when it was."""
    try:
        await target.runtime.pause_pod(pod)
    except RuntimeCallError as error:
        return error
    return None


async def test_a_paused_pod_shows_it_and_goes_on_when_it_is_resumed(target: Target) -> None:
    container = await running(target, ["sh", "-c", "trap 'exit 7' TERM; sleep 1000 & wait"])
    if not isinstance(target, FakeTarget) and (refused := await refusal(target, container.pod_id)):
        assert (refused.kind, "paus" in refused.message) == (ErrorKind.INTERNAL, True)
        pytest.skip(f"containers cannot be frozen here: {refused.message}")
    await target.runtime.pause_pod(container.pod_id)
    assert (await target.runtime.inspect_container(container.id)).state == "paused"
    await target.runtime.pause_pod(container.pod_id)
    await target.runtime.resume_pod(container.pod_id)
    again = await target.runtime.inspect_container(container.id)
    assert (again.state, again.pid, again.started_at) == ("running", container.pid, container.started_at)
    await target.runtime.resume_pod(container.pod_id)


async def test_a_signal_reaches_a_paused_container_when_it_goes_on(target: Target) -> None:
    if not isinstance(target, FakeTarget):
        pytest.skip("past Podman, which sends no signal to a paused container")
    container = await running(target, ["sh", "-c", "trap 'exit 7' TERM; sleep 1000"])
    await target.runtime.pause_pod(container.pod_id)
    assert target.runtime.signal_process(container.process, "SIGTERM")
    assert not await target.runtime.wait_exit(container.process, 0.0)
    await target.runtime.resume_pod(container.pod_id)
    assert await target.runtime.wait_exit(container.process, DEADLINE_S)
    assert (await exited(target, container.id)).exit_code == 7


async def test_a_pod_of_which_nothing_runs_is_left_as_it_is(target: Target) -> None:
    container = await running(target)
    await target.runtime.kill_container(container.id, "KILL")
    await exited(target, container.id)
    await target.runtime.resume_pod(container.pod_id)
    assert (await target.runtime.inspect_container(container.id)).state in ("stopped", "exited")


@pytest.mark.parametrize("verb", ["pause_pod", "resume_pod"])
async def test_a_pod_that_is_not_there_is_not_found(target: Target, verb: str) -> None:
    with pytest.raises(RuntimeCallError) as caught:
        await getattr(target.runtime, verb)(NOWHERE)
    assert caught.value.kind is ErrorKind.NOT_FOUND
