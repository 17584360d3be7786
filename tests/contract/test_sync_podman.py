"""Whole syncs on real Podman: what the fake cannot know."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
from typing import Any

import pytest

from ipc.k8s.api.v1.container import ContainerPort
from ipc.k8s.api.v1.env import EnvVar
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.pod_status import ContainerState
from ipc.link.messages.pod_worker import WorkType
from tests.contract.podman_host import DEADLINE_S, POLITE, STUBBORN, PodmanHost, container, errors

pytestmark = pytest.mark.podman


async def took_s(host: PodmanHost, of: Pod, **request: Any) -> float:
    started = host.clock.now().mono
    done = await host.sync(of, WorkType.TERMINATING, **request)
    assert (done.error, errors(done)) == ("", [])
    return host.clock.now().mono - started


async def test_a_pod_lives_and_goes(host: PodmanHost) -> None:
    env = (EnvVar(name="GREETING", value="hello $USER"),)
    of = host.pod(container("a", env=env, args=("sh", "-c", f"echo $GREETING; hostname; {POLITE}")), container("b"))
    done = await host.sync(of)
    assert (done.error, errors(done)) == ("", [])
    assert (await host.sync(of)).changed is False
    await host.logged("a", 0, "ready")
    assert [line.split(" ", 3)[1:] for line in host.log("a", 0).splitlines()] == [
        ["stdout", "F", "hello $USER"],
        ["stdout", "F", "web"],
        ["stdout", "F", "ready"],
    ]
    await took_s(host, of)
    status = await host.observe(host.uid)
    assert (status.is_running(), {c.exit_code for c in status.containers}) == (False, {7})
    assert host.log("b", 0)


async def test_changing_one_of_three_containers_changes_one_id(host: PodmanHost) -> None:
    await host.sync(host.pod(*(container(name) for name in "abc")))
    before = await host.containers()
    edited = host.pod(container("a"), container("b", env=(EnvVar(name="A", value="1"),)), container("c"))
    done = await host.sync(edited)
    assert (done.error, errors(done)) == ("", [])
    after = await host.containers()
    assert {name for name in after if after[name].id != before[name].id} == {"b"}
    assert {name: c.attempt for name, c in after.items()} == {"a": 0, "b": 1, "c": 0}
    assert (await host.sync(edited)).changed is False


async def test_the_stubborn_are_killed_at_the_end_of_their_time(host: PodmanHost) -> None:
    of = host.pod(*(container(name, STUBBORN) for name in "ab"), termination_grace_period_seconds=3)
    await host.sync(of)
    for name in "ab":
        await host.logged(name, 0, "ready")
    assert await took_s(host, of) >= 3
    assert {c.exit_code for c in (await host.containers()).values()} == {137}


async def test_a_shorter_grace_period_arrives_in_the_middle(host: PodmanHost) -> None:
    of = host.pod(container("a", STUBBORN), termination_grace_period_seconds=600)
    await host.sync(of)
    await host.logged("a", 0, "ready")
    cancel = asyncio.Event()
    first = asyncio.ensure_future(host.sync(of, WorkType.TERMINATING, cancel=cancel, grace_period_s=600))
    cancel.set()
    assert (await first).cancelled
    assert 2 <= await took_s(host, of, grace_period_s=2) < 600


@pytest.mark.parametrize(
    "broken",
    [{"args": (), "command": ("/no/such/command",)}, {"working_dir": "/etc/passwd"}],
    ids=["command", "directory"],
)
async def test_a_failed_start_is_known_afterwards(host: PodmanHost, broken: dict[str, Any]) -> None:
    """Podman itself shows the container as one that nobody has started yet."""
    of = host.pod(container("a", **broken), container("b"))
    assert errors(await host.sync(of)) == ["RunContainerError"]
    seen = await host.containers()
    assert (seen["a"].state, seen["a"].exit_code, seen["b"].state) == (
        ContainerState.EXITED,
        128,
        ContainerState.RUNNING,
    )
    assert re.search("no/such|/etc/passwd", seen["a"].error)
    host.next_worker()
    assert errors(await host.sync(of)) == ["RunContainerError"], "the first one is tried again at once"
    assert errors(await host.sync(of)) == ["CrashLoopBackOff"]
    assert (await host.containers())["a"].attempt == 1


async def test_an_interrupted_start_goes_on_with_the_same_container(host: PodmanHost) -> None:
    of = host.pod(container("a"))
    cancel = asyncio.Event()
    create = host.context.services.runtime.create_container

    async def and_die(spec: Any) -> str:
        id = await create(spec)
        cancel.set()
        return id

    host.context.services.runtime.create_container = and_die  # type: ignore[method-assign]
    assert (await host.sync(of, cancel=cancel)).cancelled
    made = (await host.containers())["a"]
    assert made.state is ContainerState.CREATED
    host.next_worker()
    await host.sync(of)
    assert (await host.containers())["a"].id == made.id
    await host.until("a", ContainerState.RUNNING)


async def test_a_crash_comes_back_and_the_second_waits(host: PodmanHost) -> None:
    of = host.pod(container("a", "exit 3"))
    await host.sync(of)
    first = await host.until("a", ContainerState.EXITED)
    assert (first.exit_code, first.backoff_s) == (3, 0.0)
    await host.sync(of)
    second = await host.until("a", ContainerState.EXITED)
    assert (second.attempt, second.backoff_s) == (1, 10.0)
    host.next_worker()
    (waiting,) = (r for r in (await host.sync(of)).results if r.error)
    assert (waiting.error, waiting.retry_at) == ("CrashLoopBackOff", second.finished_at + 10)


async def test_a_dead_container_started_by_hand_goes(host: PodmanHost) -> None:
    of = host.pod(container("a"))
    await host.sync(of)
    first = (await host.containers())["a"]
    await host.context.services.runtime.kill_container(first.id, "SIGKILL")
    await host.until("a", ContainerState.EXITED)
    await host.sync(of)
    second = (await host.containers())["a"]
    await host.context.services.runtime.start_container(first.id)
    done = await host.sync(of)
    assert (done.error, errors(done)) == ("", [])
    status = await host.observe(host.uid)
    assert [(c.id, c.state) for c in status.containers] == [(second.id, ContainerState.RUNNING)]


async def test_a_container_whose_end_podman_missed_can_be_stopped(host: PodmanHost) -> None:
    of = host.pod(container("a"))
    await host.sync(of)
    found = await host.context.services.runtime.inspect_container((await host.containers())["a"].id)
    os.kill(found.conmon_pid, signal.SIGKILL)
    os.kill(found.pid, signal.SIGKILL)
    await host.context.services.runtime.wait_exit(found.process, DEADLINE_S)
    assert (await host.containers())["a"].state is ContainerState.RUNNING, "what Podman says"
    await took_s(host, of)
    assert not (await host.observe(host.uid)).is_running()


async def test_a_sandbox_whose_end_podman_missed_is_replaced(host: PodmanHost) -> None:
    """Left as it is, it would be a second ready sandbox for ever."""
    await host.sync(host.pod(container("a")))
    (ghost,) = (await host.observe(host.uid)).sandboxes
    infra = await host.context.services.runtime.inspect_container(ghost.infra_id)
    os.kill(infra.conmon_pid, signal.SIGKILL)
    os.kill(infra.pid, signal.SIGKILL)
    changed = host.pod(container("a"), hostname="other")
    done = await host.sync(changed)
    assert (done.error, errors(done)) == ("", [])
    assert [s.attempt for s in (await host.observe(host.uid)).sandboxes] == [1]
    assert (await host.sync(changed)).changed is False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def fetch(port: int) -> bytes:
    """Answer of a web server there, once there is one."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"GET / HTTP/1.0\r\n\r\n")
                if answer := await reader.read():
                    return answer
            except ConnectionError:
                await asyncio.sleep(0.05)
            finally:
                if "writer" in locals():
                    writer.close()


async def test_a_port_of_the_host_passes_to_the_next_sandbox(host: PodmanHost) -> None:
    """The next sandbox wants the port that the old one has only just given back."""
    ports = (ContainerPort(container_port=8080, host_port=free_port(), host_ip="127.0.0.1"),)
    web = container("a", ports=ports, args=("httpd", "-f", "-p", "8080"))
    await host.sync(host.pod(web))
    assert b"404" in await fetch(ports[0].host_port)
    changed = host.pod(web, hostname="other", termination_grace_period_seconds=0)
    for hostname in ("other", "another"):
        changed = host.pod(web, hostname=hostname, termination_grace_period_seconds=0)
        done = await host.sync(changed)
        assert (done.error, errors(done)) == ("", [])
        assert b"404" in await fetch(ports[0].host_port)
    await host.sync(changed)
    status = await host.observe(host.uid)
    assert ([s.attempt for s in status.sandboxes], [c.attempt for c in status.containers]) == ([2], [2])


async def test_a_pod_on_the_hosts_network_has_the_hosts_name(host: PodmanHost) -> None:
    of = host.pod(container("a", f"hostname; {POLITE}"), host_network=True)
    await host.sync(of)
    await host.logged("a", 0, "ready")
    assert f"stdout F {socket.gethostname()}\n" in host.log("a", 0)
    assert (await host.sync(of)).changed is False


@pytest.mark.parametrize(("length", "expected"), [(200, []), (253, ["CreatePodSandboxError"])])
async def test_long_names_are_podmans_and_end_where_a_directorys_name_does(
    host: PodmanHost, length: int, expected: list[str]
) -> None:
    host.name = "p" * length
    assert errors(await host.sync(host.pod(container("c" * 63)))) == expected


async def test_a_sandbox_removed_by_hand_comes_back_with_its_counts(host: PodmanHost) -> None:
    of = host.pod(container("a"))
    await host.sync(of)
    (sandbox,) = (await host.observe(host.uid)).sandboxes
    await host.context.services.runtime.remove_pod(sandbox.id)
    await host.sync(of)
    assert (await host.containers())["a"].attempt == 1
