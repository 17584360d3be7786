"""Which process holds a sandbox's network, as the dialer has to know it."""

from __future__ import annotations

from tests.contract.target import Target, exited, running


async def test_an_infra_container_tells_when_its_process_was_started(target: Target) -> None:
    container = await running(target)
    pod = await target.runtime.inspect_pod(container.pod_id)
    infra = await target.runtime.inspect_container(pod.infra_id)
    assert infra.pid > 0
    assert infra.start_ticks > 0
    assert container.start_ticks == 0, "nobody asks for that of others"
    again = await target.runtime.inspect_container(pod.infra_id)
    assert again.start_ticks == infra.start_ticks
    await target.runtime.kill_container(pod.infra_id, "SIGKILL")
    assert (await exited(target, pod.infra_id)).start_ticks == 0
