"""When processes of containers were started: it tells them from those that get their pids later."""

from __future__ import annotations

from tests.contract.target import Target, exited, running


async def test_a_container_tells_when_its_process_was_started(target: Target) -> None:
    container = await running(target)
    pod = await target.runtime.inspect_pod(container.pod_id)
    infra = await target.runtime.inspect_container(pod.infra_id)
    assert infra.pid > 0
    assert infra.start_ticks > 0
    assert container.start_ticks >= infra.start_ticks
    again = await target.runtime.inspect_container(pod.infra_id)
    assert again.start_ticks == infra.start_ticks
    await target.runtime.kill_container(pod.infra_id, "SIGKILL")
    assert (await exited(target, pod.infra_id)).start_ticks == 0
