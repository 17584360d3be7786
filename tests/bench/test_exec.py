"""Costs of one command in a container, by each way, side by side: wall time, CPU of all processes, and litter.

In a cgroup of its own with a Podman service of its own, so that the CPU of everything that a command takes is counted:
this process, the service, monitors, OCI runtimes, clean-ups, and the command.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import statistics
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Final

import psutil
import pytest

from ipc.host.clock import monotonic
from tests.contract.target import DEADLINE_S, PodmanTarget, running
from tests.support.podman_service import SOCKET, PodmanService, spawn_service, wait_until
from workers.exec import direct as oci_exec
from workers.exec.tags import ProcessTag
from workers.kubecontainer.runtime import InspectedContainer
from workers.podman import PodmanRuntime

pytestmark = [pytest.mark.bench, pytest.mark.podman, pytest.mark.timeout(900)]

EXECS: Final = int(os.environ.get("ROOTLET_BENCH_EXECS", "60"))
ROUNDS: Final = int(os.environ.get("ROOTLET_BENCH_ROUNDS", "3"))
LEAVE_S: Final = 60.0
"""For the monitors of sessions to be gone: the service's exit_command_delay, and time to clean up."""

Way = Callable[[InspectedContainer], Awaitable[Any]]


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """A new cgroup with this process in it."""
    line = next(line for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::"))
    outer = Path("/sys/fs/cgroup") / line.removeprefix("0::/")
    inner = outer / f"rootlet-bench-{os.getpid()}"
    try:
        inner.mkdir()
        (inner / "cgroup.procs").write_text(str(os.getpid()))
    except OSError as error:
        pytest.skip(f"needs a cgroup (v2) that it may divide: {error}")
    try:
        yield inner
    finally:
        for pid in (inner / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):
                (outer / "cgroup.procs").write_text(pid)
        wait_until(lambda: _removed(inner), DEADLINE_S)


def _removed(directory: Path) -> bool:
    with contextlib.suppress(OSError):
        directory.rmdir()
    return not directory.exists()


@pytest.fixture
async def target(podman_service: PodmanService, cgroup: Path, tmp_path: Path) -> AsyncIterator[PodmanTarget]:
    """Through a service in that cgroup."""
    service = spawn_service(tmp_path)
    made = PodmanTarget(podman_service)
    made.runtime = PodmanRuntime(str(tmp_path / SOCKET), made.instance)
    try:
        yield made
        await made.clean()
    finally:
        service.terminate()
        await asyncio.to_thread(service.wait)


def cpu_ms(cgroup: Path) -> float:
    """CPU time of all that has ever been in it."""
    usage = next(line for line in (cgroup / "cpu.stat").read_text().splitlines() if line.startswith("usage_usec"))
    return int(usage.split()[1]) / 1000


def litter(container: InspectedContainer) -> int:
    """Processes with that container on their command line, but its own monitor."""
    found = (p.info["cmdline"] or () for p in psutil.process_iter(["cmdline"]))
    return sum(container.id in words for words in found) - 1


async def measure(way: Way, container: InspectedContainer, cgroup: Path) -> dict[str, float]:
    await way(container)  # what the first one finds out is not asked again
    await asyncio.to_thread(wait_until, lambda: not litter(container), LEAVE_S)
    before, own, walls = cpu_ms(cgroup), os.times(), []
    for _ in range(EXECS):
        begin = monotonic()
        await way(container)
        walls.append((monotonic() - begin) * 1000)
    own_after, left = os.times(), litter(container)
    await asyncio.to_thread(wait_until, lambda: not litter(container), LEAVE_S)
    own_s = own_after.user + own_after.system - own.user - own.system
    return {
        "wall p50 ms": round(statistics.median(walls), 1),
        "wall p95 ms": round(sorted(walls)[int(len(walls) * 0.95)], 1),
        "CPU ms": round((cpu_ms(cgroup) - before) / EXECS, 1),
        "of it this process ms": round(own_s * 1000 / EXECS, 2),
        "processes left at the end": left,
    }


def bare(target: oci_exec.Target, process: Path) -> Way:
    """The process that the direct way runs, and nothing around it."""
    process.write_bytes(target.process_json(["true"], ProcessTag(os.getpid(), 0, 0)))

    def run() -> None:
        pid = os.posix_spawn(target.program, target.arguments(str(process), os.devnull), target.env)
        assert os.waitpid(pid, 0)[1] == 0

    async def way(_: InspectedContainer) -> None:
        run()

    return way


async def test_execs(
    target: PodmanTarget,
    cgroup: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    container = await running(target)
    through_podman = PodmanRuntime(str(tmp_path / SOCKET), target.instance)

    async def direct(container: InspectedContainer) -> None:
        assert (await target.runtime.exec_container(container.id, ["true"], DEADLINE_S)).exit_code == 0

    async def session(container: InspectedContainer) -> None:
        assert (await through_podman.exec_container(container.id, ["true"], DEADLINE_S)).exit_code == 0

    with monkeypatch.context() as patch:
        patch.setattr(oci_exec, "RUNTIMES", frozenset())
        await session(container)  # from now on it takes no other way
    ways: dict[str, Way] = {
        "bare": bare(oci_exec.find_target(container), tmp_path / "process.json"),
        "direct": direct,
        "session": session,
    }
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            rounds[name].append(await measure(way, container, cgroup))
    await through_podman.close()
    with capsys.disabled():
        print("\n" + json.dumps(rounds, indent=1))
    assert all(found["processes left at the end"] == 0 for found in rounds["direct"])
