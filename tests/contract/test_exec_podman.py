"""Commands in containers as only Podman can show them: what they are given, what they leave, and what becomes of them.

In both ways: directly by the OCI runtime, and through an exec session of Podman's service.
"""

from __future__ import annotations

import asyncio
import enum
import gc
import logging
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from ipc.host.clock import wall
from tests.contract.target import DEADLINE_S, PodmanTarget, container_spec, pod_spec
from tests.support.podman_service import SOCKET, PodmanService, podman, spawn_service, wait_until
from workers.exec import direct, tags
from workers.exec.sessions import ExecSessions
from workers.kubecontainer.runtime import (
    MAX_EXEC_OUTPUT_BYTES,
    ErrorKind,
    ExecResult,
    InspectedContainer,
    RuntimeCallError,
)
from workers.podman import PodmanRuntime

pytestmark = pytest.mark.podman


class Way(enum.StrEnum):
    DIRECT = "direct"
    SESSION = "session"


@pytest.fixture
async def target(podman_service: PodmanService) -> AsyncIterator[PodmanTarget]:
    """Commands take the direct way, and do not get away with another one."""
    made = PodmanTarget(podman_service)
    yield made
    await made.clean()


@pytest.fixture(scope="module")
def standing(podman_service: PodmanService) -> Iterator[InspectedContainer]:
    """One container that runs, for all tests of this file whose commands leave nothing in it that another one sees."""

    async def make() -> InspectedContainer:
        target = PodmanTarget(podman_service)
        made = await started(target)
        await target.runtime.close()
        return made

    made = asyncio.run(make())
    yield made
    podman("pod", "rm", "--force", "--time", "0", podman("inspect", "--format", "{{.Pod}}", made.id).strip())


@pytest.fixture(params=list(Way))
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Way:
    """Sessions: as if the containers had an OCI runtime that is not known."""
    if request.param is Way.SESSION:
        monkeypatch.setattr(direct, "RUNTIMES", frozenset())
    found: Way = request.param
    return found


async def started(target: PodmanTarget, **spec: Any) -> InspectedContainer:
    pod = await target.runtime.create_pod(pod_spec(target))
    id = await target.runtime.create_container(container_spec(target, pod, **spec))
    await target.runtime.start_container(id)
    return await target.runtime.inspect_container(id)


async def run(target: PodmanTarget, container: InspectedContainer, *command: str) -> ExecResult:
    return await target.runtime.exec_container(container.id, command, DEADLINE_S)


async def shell(target: PodmanTarget, container: InspectedContainer, script: str) -> ExecResult:
    return await run(target, container, "sh", "-c", script)


async def kind_of_failure(
    target: PodmanTarget, container: InspectedContainer, *command: str, timeout_s: float = DEADLINE_S
) -> ErrorKind:
    with pytest.raises(RuntimeCallError) as caught:
        await target.runtime.exec_container(container.id, command, timeout_s)
    return caught.value.kind


def processes(word: str) -> list[psutil.Process]:
    """Processes whose last argument is that word."""
    return [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] and p.info["cmdline"][-1] == word]


def sleeping(word: str) -> int:
    """How many sleep that long; a monitor has the word on its command line, too."""
    return sum(p.name() == "sleep" for p in processes(word))


async def until_sleeping(word: str, number: int) -> None:
    await asyncio.to_thread(wait_until, lambda: sleeping(word) == number, DEADLINE_S)


def sessions_of(container: InspectedContainer) -> int:
    """Monitors of its exec sessions, and OCI runtimes that wait for commands in it."""
    found = (p.info["cmdline"] for p in psutil.process_iter(["cmdline"]) if container.id in (p.info["cmdline"] or ()))
    return sum(bool({"exec", "--exec-attach", "-e"}.intersection(words)) for words in found)


# --- what it is given ---


OWN: dict[str, dict[str, Any]] = {
    "root": {},
    "a user": {"user": "1000"},
    "a user with groups": {"user": "1000:3000", "groups": ["4000", "5000"]},
    "a user with capabilities": {"user": "1000", "cap_add": ["NET_BIND_SERVICE", "NET_RAW"]},
    "no capabilities": {"cap_drop": ["ALL"]},
    "all capabilities": {"privileged": True},
    "no new privileges": {"user": "1000", "no_new_privileges": True},
    "no seccomp": {"seccomp_profile_path": "unconfined"},
    "a read-only root": {"read_only_filesystem": True},
    "an unmasked /proc": {"unmask": ["ALL"]},
    "limits": {"r_limits": [{"type": "NOFILE", "soft": 100, "hard": 200}]},
    "directory and umask": {"work_dir": "/bin", "umask": "0077"},
    "environment": {"env": {"A": "1", "B": "with = and\nlines", "HOME": "/elsewhere"}},
}
TELL = """
busybox=/bin/busybox
$busybox grep -E '^(Uid|Gid|Groups|Cap...|NoNewPrivs|Seccomp|Umask):' /proc/{0}/status
$busybox readlink /proc/{0}/cwd /proc/{0}/root /proc/{0}/ns/*
$busybox grep -v '^Max file locks' /proc/{0}/limits
"""
"""Traits of a process; the limit that is left out carries the mark."""


@pytest.mark.parametrize("spec", OWN.values(), ids=OWN)
async def test_a_command_is_given_what_the_containers_own_process_has(
    target: PodmanTarget, spec: dict[str, Any]
) -> None:
    container = await started(target, **spec)
    command = await shell(target, container, TELL.format("$$"))
    own = await shell(target, container, TELL.format("1"))
    assert command.exit_code == 0
    assert command.output.splitlines() == own.output.splitlines()
    blocked = ("/bin/busybox", "grep", "SigBlk")  # no shell: that of busybox blocks signals while it waits
    command = await run(target, container, *blocked, "/proc/self/status")
    assert command.output == (await run(target, container, *blocked, "/proc/1/status")).output != b""
    environment = await run(target, container, "cat", "/proc/self/environ")
    own_environment = await run(target, container, "cat", "/proc/1/environ")
    assert b"PATH=" in own_environment.output
    assert sorted(environment.output.split(b"\0")) == sorted(own_environment.output.split(b"\0"))


async def test_a_command_for_which_there_is_no_process_goes_another_way_this_once(
    target: PodmanTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    container = await started(target)
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    resource.setrlimit(resource.RLIMIT_NPROC, (1, hard))
    try:
        meanwhile = await run(target, container, "true")
    finally:
        resource.setrlimit(resource.RLIMIT_NPROC, (soft, hard))
    assert meanwhile.exit_code == 0

    async def refuse(*_: object) -> None:
        raise AssertionError("a session")

    monkeypatch.setattr(ExecSessions, "run", refuse)
    assert (await run(target, container, "true")).exit_code == 0


async def test_a_command_ignores_no_signal(target: PodmanTarget, standing: InspectedContainer) -> None:
    ignored = await run(target, standing, "/bin/busybox", "grep", "SigIgn", "/proc/self/status")
    of_glibc = sum(1 << number - 1 for number in range(1, 65) if number not in signal.valid_signals())
    assert int(ignored.output.split()[1], 16) & ~of_glibc == 0, "its own are ignored in whatever posix_spawn begins"


async def test_a_command_has_no_input_and_no_files_of_the_agents(
    target: PodmanTarget, standing: InspectedContainer
) -> None:
    assert await run(target, standing, "cat") == ExecResult(exit_code=0)
    assert (await run(target, standing, "ls", "/proc/self/fd")).output.split() == [b"0", b"1", b"2", b"3"]


async def test_a_command_of_another_user_may_open_its_output(target: PodmanTarget) -> None:
    container = await started(target, user="1000")
    assert (await shell(target, container, "echo a >/dev/stdout; echo b >/dev/stderr")).output == b"a\nb\n"


# --- what comes of it ---


async def test_a_command_that_closes_its_output_is_waited_for(
    target: PodmanTarget, standing: InspectedContainer, way: Way
) -> None:
    assert (await shell(target, standing, "exec >/dev/null 2>&1; sleep 2; exit 5")).exit_code == 5


async def test_only_the_head_of_an_output_is_kept(target: PodmanTarget, standing: InspectedContainer, way: Way) -> None:
    result = await shell(target, standing, "head -c 300000 /dev/zero; echo the end >&2; exit 3")
    assert (result.exit_code, result.output, result.limited) == (3, bytes(MAX_EXEC_OUTPUT_BYTES), True)


@pytest.mark.parametrize("extra", [0, 1])
async def test_an_output_of_the_most_that_is_kept_is_not_limited(
    target: PodmanTarget, standing: InspectedContainer, way: Way, extra: int
) -> None:
    result = await run(target, standing, "head", "-c", str(MAX_EXEC_OUTPUT_BYTES + extra), "/dev/zero")
    assert (len(result.output), result.limited) == (MAX_EXEC_OUTPUT_BYTES, bool(extra))


async def test_both_streams_are_kept(target: PodmanTarget, standing: InspectedContainer, way: Way) -> None:
    result = await shell(target, standing, "echo out; echo err >&2")
    assert sorted(result.output.split()) == [b"err", b"out"]


async def test_both_streams_are_kept_in_the_order_of_their_writing(
    target: PodmanTarget, standing: InspectedContainer
) -> None:
    result = await shell(target, standing, "for i in 1 2 3 4 5; do echo $i; echo -$i >&2; done")
    assert result.output.split() == b"1 -1 2 -2 3 -3 4 -4 5 -5".split()


@pytest.mark.parametrize(
    ("script", "exit_code"),
    [("exit 126", 126), ("exit 127", 127), ("/no/such", 127), ("kill -TERM $$", 143), ("kill -KILL $$", 137)],
)
async def test_how_a_command_ended(
    target: PodmanTarget, standing: InspectedContainer, way: Way, script: str, exit_code: int
) -> None:
    assert (await shell(target, standing, script)).exit_code == exit_code


@pytest.mark.parametrize("command", ["/no/such", "nosuch", "/etc/passwd", "/bin"])
async def test_what_cannot_be_run(target: PodmanTarget, standing: InspectedContainer, way: Way, command: str) -> None:
    assert await kind_of_failure(target, standing, command) is ErrorKind.COMMAND


async def test_a_program_of_no_known_format_does_not_succeed(
    target: PodmanTarget, standing: InspectedContainer, way: Way
) -> None:
    """Some OCI runtimes take it for one that has run."""
    await shell(target, standing, "echo garbage >/garbage; /bin/busybox chmod 755 /garbage")
    found = await asyncio.gather(run(target, standing, "/garbage"), return_exceptions=True)
    match found[0]:
        case RuntimeCallError(kind=kind):
            assert kind is ErrorKind.COMMAND
        case ExecResult(exit_code=exit_code):
            assert exit_code != 0
        case other:
            pytest.fail(f"{other!r}")


async def test_what_a_command_leaves_running_may_hold_its_output(target: PodmanTarget, way: Way) -> None:
    word = f"12345{way is Way.DIRECT:d}1"
    container = await started(target)
    result = await shell(target, container, f"sleep {word} & echo on")
    assert result == ExecResult(exit_code=0, output=b"on\n")
    await until_sleeping(word, 1)


# --- time ---


@pytest.mark.parametrize("user", ["0", "1000"])
async def test_a_command_that_takes_too_long_is_killed_also_as_another_user(
    target: PodmanTarget, way: Way, user: str
) -> None:
    word = f"12346{way is Way.DIRECT:d}{user}"
    container = await started(target, user=user)
    script = f"sleep {word} & (sleep {word} & sleep {word})"
    assert await kind_of_failure(target, container, "sh", "-c", script, timeout_s=1.0) is ErrorKind.TIMEOUT
    await until_sleeping(word, 0)


@pytest.mark.parametrize("spec", [{}, {"pidns": {"nsmode": "host"}}], ids=["own processes", "the host's processes"])
async def test_daemons_of_a_command_that_takes_too_long_are_killed_too(
    target: PodmanTarget, spec: dict[str, Any]
) -> None:
    container = await started(target, **spec)
    daemon = "(/bin/busybox setsid sleep 1234701 >/dev/null 2>&1 &)"
    command = asyncio.ensure_future(
        kind_of_failure(target, container, "sh", "-c", f"{daemon}; {daemon}; sleep 1234701", timeout_s=3.0)
    )
    await until_sleeping("1234701", 3)
    assert await command is ErrorKind.TIMEOUT
    assert sleeping("1234701") == 0, "already when it is told"
    assert (await run(target, container, "true")).exit_code == 0, "the container itself lives on"


async def test_a_command_that_multiplies_is_ended(target: PodmanTarget, standing: InspectedContainer) -> None:
    script = "f() { sleep 1234702 & sleep 0.05; f; }; f"
    assert await kind_of_failure(target, standing, "sh", "-c", script, timeout_s=2.0) is ErrorKind.TIMEOUT
    assert sleeping("1234702") == 0


async def test_the_command_of_who_is_cancelled_runs_on_until_its_time_is_over(
    target: PodmanTarget, standing: InspectedContainer
) -> None:
    command = asyncio.ensure_future(
        target.runtime.exec_container(standing.id, ["sh", "-c", "sleep 1234703; echo"], 5.0)
    )
    await until_sleeping("1234703", 1)
    command.cancel()
    with pytest.raises(asyncio.CancelledError):
        await command
    assert (await run(target, standing, "true")).exit_code == 0
    assert sleeping("1234703") == 1
    await until_sleeping("1234703", 0)


async def test_many_commands_take_too_long_at_once(target: PodmanTarget) -> None:
    container = await started(target)
    outcomes = [kind_of_failure(target, container, "sleep", "1234704", timeout_s=3.0) for _ in range(50)]
    async with asyncio.timeout(DEADLINE_S):
        assert set(await asyncio.gather(*outcomes)) == {ErrorKind.TIMEOUT}
    assert sleeping("1234704") == 0
    assert sessions_of(container) == 0


# --- what it leaves ---


def descriptors() -> int:
    return psutil.Process().num_fds()


async def test_commands_leave_nothing(target: PodmanTarget) -> None:
    container = await started(target)
    await run(target, container, "true")
    gc.collect()
    before = descriptors(), len(asyncio.all_tasks()), len(psutil.pids())
    of_others = set(psutil.Process().children())
    for _ in range(200):
        assert (await run(target, container, "true")).exit_code == 0
    assert await kind_of_failure(target, container, "/no/such") is ErrorKind.COMMAND
    gc.collect()
    assert (descriptors(), len(asyncio.all_tasks())) == before[:2]
    assert sessions_of(container) == 0
    assert len(psutil.pids()) - before[2] < 100, "others may begin something meanwhile, but not two for each"
    assert not [p for p in psutil.Process().children() if p not in of_others and p.status() == psutil.STATUS_ZOMBIE]


async def test_fifty_commands_at_once(target: PodmanTarget, standing: InspectedContainer, way: Way) -> None:
    """The time of a command runs while Podman makes and starts those before it, one after the other."""
    words = (["sh", "-c", f"sleep 1; echo {number}; exit {number}"] for number in range(50))
    commands = (target.runtime.exec_container(standing.id, each, 3 * DEADLINE_S) for each in words)
    results = await asyncio.gather(*commands)
    assert [(r.exit_code, r.output) for r in results] == [(n, f"{n}\n".encode()) for n in range(50)]


# --- what may end meanwhile ---


async def test_many_commands_run_at_once_and_hinder_no_other_call(target: PodmanTarget, way: Way) -> None:
    word = f"12348{way is Way.DIRECT:d}1"
    container = await started(target)
    hanging = [asyncio.ensure_future(run(target, container, "sleep", word)) for _ in range(12)]
    await until_sleeping(word, len(hanging))
    async with asyncio.timeout(DEADLINE_S):
        assert (await run(target, container, "true")).exit_code == 0
        await target.runtime.kill_container(container.id, "KILL")
        assert {result.exit_code for result in await asyncio.gather(*hanging)} == {137}
    assert await kind_of_failure(target, container, "true") is ErrorKind.WRONG_STATE
    await target.runtime.remove_container(container.id)
    assert await kind_of_failure(target, container, "true") is ErrorKind.NOT_FOUND


async def test_a_container_without_its_monitor_is_reached_through_podman(
    target: PodmanTarget, caplog: pytest.LogCaptureFixture
) -> None:
    container = await started(target)
    assert (await run(target, container, "true")).exit_code == 0
    assert not caplog.records
    await target.kill_monitor(container)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert (await shell(target, container, "echo on; exit 3")).output == b"on\n"
    assert [record.name for record in caplog.records] == ["workers.exec.runner"], "said once"
    os.kill(container.pid, signal.SIGKILL)


async def test_commands_need_no_podman_once_their_container_is_known(
    target: PodmanTarget, podman_service: PodmanService, tmp_path: Path
) -> None:
    container = await started(target)
    service = spawn_service(tmp_path)
    runtime = PodmanRuntime(str(tmp_path / SOCKET), "nobody")
    try:
        assert (await runtime.exec_container(container.id, ["true"], DEADLINE_S)).exit_code == 0
        running = asyncio.ensure_future(
            runtime.exec_container(container.id, ["sh", "-c", "sleep 2; exit 4"], DEADLINE_S)
        )
        service.kill()
        await asyncio.to_thread(service.wait)
        assert (await runtime.exec_container(container.id, ["sh", "-c", "exit 5"], DEADLINE_S)).exit_code == 5
        assert (await running).exit_code == 4
    finally:
        service.kill()
        await runtime.close()


AGENT = """
import asyncio, sys
from workers.podman import PodmanRuntime

async def main():
    runtime = PodmanRuntime(sys.argv[1], "nobody")
    await runtime.exec_container(sys.argv[2], ["sh", "-c", "sleep 1234705; true"], 6.0)

asyncio.run(main())
"""


async def test_the_command_of_an_agent_that_is_killed_is_ended_by_the_next_one(
    target: PodmanTarget, podman_service: PodmanService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tags, "OVERDUE_S", 2)
    container = await started(target)
    agent = await asyncio.create_subprocess_exec(sys.executable, "-c", AGENT, podman_service.socket, container.id)
    await until_sleeping("1234705", 1)
    agent.kill()
    await agent.wait()
    assert await kind_of_failure(target, container, "sleep", "1234706", timeout_s=1.0) is ErrorKind.TIMEOUT
    assert sleeping("1234705") == 1, "as a hook that is promised at least once: it may have long to go"

    def ended() -> bool:
        tags.kill((), (), wall())
        return not sleeping("1234705")

    await asyncio.to_thread(wait_until, ended, DEADLINE_S, 0.5)
    await asyncio.to_thread(wait_until, lambda: sessions_of(container) == 0, DEADLINE_S)
