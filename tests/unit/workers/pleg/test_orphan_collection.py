"""Dead containers that the node has too many of go with the next sync of their pod, whatever that is for."""

from __future__ import annotations

from pathlib import Path

from ipc.k8s.api.v1.pod import Pod
from ipc.link.messages.pod_worker import WorkType
from tests.support.pods import UID, pod
from tests.support.sync import FakeHost, on_host, targets


async def restarted(host: FakeHost, of: Pod) -> tuple[str, str]:
    """Ids of the dead container and of its successor, which runs."""
    await host.settle(of)
    first = host.running()["a"]
    host.podman.exit(first, 1)
    await host.settle(of)
    return first, host.running()["a"]


async def remaining(host: FakeHost) -> set[str]:
    return {container.id for container in (await host.observe(UID)).containers}


def test_dead_containers_of_a_running_pod_go_beside_its_work(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod("a")
        dead, running = await restarted(host, of)
        done = await host.sync(of, dead_containers=("of another pod", running))
        assert done.changed is False, "only what is dead, and only its own"
        done = await host.sync(of, dead_containers=(dead,))
        assert targets(done) == [("RemoveContainer", "")]
        assert await remaining(host) == {running}

    on_host(tmp_path, scenario)


def test_dead_containers_of_an_ended_pod_go_and_its_last_one_stays(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod("a", restart_policy="OnFailure")
        dead, last = await restarted(host, of)
        host.podman.exit(last, 0)
        await host.settle(of, WorkType.TERMINATING)
        assert (await host.sync(of, WorkType.TERMINATED)).changed is False
        done = await host.sync(of, WorkType.TERMINATED, dead_containers=(dead, last))
        assert targets(done) == [("RemoveContainer", "")]
        assert await remaining(host) == {last}

    on_host(tmp_path, scenario)


def test_a_dead_container_that_cannot_be_removed_is_no_end_of_the_world(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod("a")
        dead, running = await restarted(host, of)
        view = await host.observe(UID)
        host.podman.remove_container(dead)
        done = await host.sync(of, view=view, dead_containers=(dead,))
        assert (done.error, await remaining(host)) == ("", {running})

    on_host(tmp_path, scenario)
