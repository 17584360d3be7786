"""Containers of every kind on real Podman: how they start, what is written on them, and what is read back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ipc.k8s.api.v1.container import Container, EphemeralContainer
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.probe import ExecAction, Lifecycle, LifecycleHandler
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus
from ipc.link.messages.pod_worker import WorkType
from tests.contract.podman_host import POLITE, PodmanHost, container
from tests.support.podman_service import IMAGE, PodmanService
from tests.support.variants import seldom
from workers.kubecontainer.runtime import SpecDict
from workers.logs.termination_message import MAX_MESSAGE_BYTES, termination_log

pytestmark = pytest.mark.podman

PATH = "/dev/termination-log"
FALL_BACK = "FallbackToLogsOnError"


@pytest.fixture
async def host(tmp_path: Path, podman_service: PodmanService) -> AsyncIterator[PodmanHost]:
    made = PodmanHost(tmp_path / "logs", podman_service)
    made.logs_dir.mkdir()
    yield made
    await made.end()


def ephemeral(script: str, target: str = "") -> EphemeralContainer:
    return EphemeralContainer(
        name="debug",
        image=IMAGE,
        command=("sh", "-c", script),
        termination_message_path=PATH,
        target_container_name=target,
    )


def writer(name: str, script: str, path: str = PATH, policy: str = "File", **fields: Any) -> Container:
    told = {"termination_message_path": path, "termination_message_policy": policy}
    return container(name, script, **told, **fields)


async def ended(host: PodmanHost, of: Pod, name: str, attempt: int = 0) -> RuntimeContainerStatus:
    """Start that container and wait for its end."""
    started, done = await host.start(of, name, attempt)
    assert started, done
    return await host.until(name, ContainerState.EXITED)


def hardened(host: PodmanHost) -> None:
    """From now on containers are made for another user, with a root file system that cannot be written."""
    create = host.context.services.runtime.create_container

    async def create_hardened(spec: SpecDict) -> str:
        return await create({**spec, "user": "1000:1000", "read_only_filesystem": True})

    host.context.services.runtime.create_container = create_hardened  # type: ignore[method-assign]


@pytest.mark.parametrize("path", [PATH, "/srv/of its own/last words"], ids=["default", "own"])
async def test_any_user_leaves_a_message_at_any_path(host: PodmanHost, path: str) -> None:
    hardened(host)
    script = f"id -u; touch /x && exit 9; echo last words > '{path}'; exit 3"
    found = await ended(host, host.pod(writer("main", script, path)), "main")
    assert (found.exit_code, found.message) == (3, "last words\n")
    assert host.log("main", 0).splitlines()[0].endswith(" 1000")


async def test_each_life_has_a_message_of_its_own(host: PodmanHost) -> None:
    script = f"test -s {PATH} && exit 9; hostname > {PATH}; head -c 6000 /dev/zero | tr '\\0' x >> {PATH}; exit 1"
    of = host.pod(writer("main", script))
    for attempt in range(3):
        found = await ended(host, of, "main", attempt)
        assert (found.attempt, found.exit_code, found.message) == (attempt, 1, "x" * MAX_MESSAGE_BYTES)
    status = await host.observe(host.uid)
    assert [bool(c.message) for c in status.containers] == [True, True, False]


async def test_the_end_of_the_log_stands_for_the_message(host: PodmanHost) -> None:
    script = "i=0; while [ $i -lt 100 ]; do i=$((i+1)); echo line $i; done; printf end; exit {}"
    of = host.pod(writer("bad", script.format(2), policy=FALL_BACK), writer("good", script.format(0), policy=FALL_BACK))
    found = await ended(host, of, "bad")
    assert found.message == "".join(f"line {n}\n" for n in range(22, 101)) + "end"
    assert (await ended(host, of, "good")).message == ""


async def test_an_init_container_leaves_one_too(host: PodmanHost) -> None:
    of = host.pod(container("main"), init_containers=(writer("init", f"echo -n prepared > {PATH}"),))
    found = await ended(host, of, "init")
    assert (found.exit_code, found.message) == (0, "prepared")


@pytest.mark.parametrize(
    ("trick", "message"),
    [
        seldom(f"chmod 0 {PATH}", "Error on reading termination log"),
        (f"chown 1000 {PATH}; chmod 600 {PATH}", "Error on reading termination log"),
        (f"rm {PATH}; mkfifo {PATH}", ""),
        seldom(f"ln -sf /etc/passwd {PATH}", ""),
        (f"umount {PATH}", ""),
    ],
)
async def test_no_trick_of_a_container_stops_the_look_at_it(host: PodmanHost, trick: str, message: str) -> None:
    found = await ended(host, host.pod(writer("main", f"{trick}; exit 4")), "main")
    assert found.exit_code == 4
    assert found.message.startswith(message) if message else not found.message


async def test_a_start_that_failed_has_no_message_but_its_error(host: PodmanHost) -> None:
    of = host.pod(writer("main", "", policy=FALL_BACK, command=("/nonexistent",)))
    started, done = await host.start(of, "main")
    assert (started, [r.error for r in done.results if r.error]) == (False, ["RunContainerError"])
    found = (await host.containers())["main"]
    assert (found.state, found.exit_code, found.message) == (ContainerState.EXITED, 128, "")
    assert "/nonexistent" in found.error


async def test_a_signal_shows_in_the_exit_code(host: PodmanHost) -> None:
    of = host.pod(container("main", "exec sleep 1000"))
    assert (await host.start(of, "main"))[0]
    running = await host.until("main", ContainerState.RUNNING)
    await host.context.services.runtime.kill_container(running.id, "SIGKILL")
    found = await host.until("main", ContainerState.EXITED)
    assert (found.exit_code, found.oom_killed, found.error) == (137, False, "")


async def test_how_it_is_to_be_stopped_is_read_from_it(host: PodmanHost) -> None:
    hook = LifecycleHandler(exec=ExecAction(command=("sh", "-c", 'echo "bye" $HOME')))
    of = host.pod(container("main", lifecycle=Lifecycle(pre_stop=hook, stop_signal="SIGUSR1")))
    assert (await host.start(of, "main"))[0]
    found = (await host.containers())["main"]
    assert (found.pre_stop, found.stop_signal) == (hook, "SIGUSR1")


# --- ephemeral containers ---


async def test_an_ephemeral_container_sees_its_target(host: PodmanHost) -> None:
    script = f"tr '\\0' ' ' < /proc/1/cmdline; ls /proc/1/root/bin/sh; {POLITE}"
    of = host.pod(container("main", "exec sleep 4242"), ephemeral_containers=(ephemeral(script, "main"),))
    assert (await host.start(of, "main"))[0]
    before = (await host.containers())["main"]
    assert (await host.start(of, "debug"))[0]
    await host.logged("debug", 0, "ready")
    assert "sleep 4242" in host.log("debug", 0)
    assert "/proc/1/root/bin/sh" in host.log("debug", 0)
    assert (await host.containers())["main"] == before


async def test_with_its_target_it_ends_and_is_not_in_its_way(host: PodmanHost) -> None:
    of = host.pod(container("main", "exec sleep 4242"), ephemeral_containers=(ephemeral(POLITE, "main"),))
    await host.start(of, "main")
    await host.start(of, "debug")
    target = await host.until("main", ContainerState.RUNNING)
    await host.context.services.runtime.kill_container(target.id, "KILL")
    assert (await host.until("debug", ContainerState.EXITED)).exit_code == 137
    assert (await host.until("main", ContainerState.EXITED)).id == target.id
    await host.context.services.runtime.remove_container(target.id)
    assert (await host.start(of, "main", 1))[0]
    assert (await host.containers())["debug"].state is ContainerState.EXITED


async def test_without_a_target_it_sees_itself(host: PodmanHost) -> None:
    script = f"hostname > {PATH}; test $$$$ = 1"
    of = host.pod(container("main"), ephemeral_containers=(ephemeral(script),))
    await host.start(of, "main")
    found = await ended(host, of, "debug")
    assert (found.exit_code, found.message) == (0, f"{host.name}\n")


async def test_the_files_go_with_the_pod(host: PodmanHost) -> None:
    await ended(host, host.pod(writer("main", "exit 0")), "main")
    file = termination_log(str(host.pods_dir), host.uid, "main", 0)
    assert await asyncio.to_thread(file.exists)
    await host.sync(None, WorkType.TERMINATED, uid=host.uid, remove=True)
    assert list(host.pods_dir.iterdir()) == []
