"""Processes of containers, found in /proc: real processes."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ipc.host.clock import SystemClock
from tests.support.podman_service import wait_until
from workers.proc.procfs import MAX_STAT_BYTES, read_once, start_ticks, state_of
from workers.stats import host, machine, process_table, processes
from workers.stats.collector import KUBELET, PODS, Collector
from workers.stats.process_table import ProcessTable, Root, parse_stat
from workers.stats.targets import ContainerTarget, PodDirectories, PodTarget
from workers.userns.unshare import Unshare

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]

DEADLINE_S = 30.0


@contextlib.contextmanager
def running(script: str) -> Iterator[subprocess.Popen[str]]:
    """A shell in a session of its own, which ends with all that it has started."""
    shell = subprocess.Popen(
        ["bash", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    with shell:
        try:
            yield shell
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)


def line_of(shell: subprocess.Popen[str]) -> str:
    assert shell.stdout is not None
    return shell.stdout.readline().strip()


def go_on(shell: subprocess.Popen[str]) -> None:
    assert shell.stdin is not None
    shell.stdin.write("\n")
    shell.stdin.flush()


@pytest.mark.parametrize("text", [b"", b"1 (x", b"1 (x) R 1 2 3", b"garbage"])
def test_what_is_no_stat_is_no_process(text: bytes) -> None:
    assert parse_stat(1, text) is None


def test_a_name_may_have_any_character() -> None:
    fields = b" ".join([b"S", b"7", *(str(n).encode() for n in range(5, 60))])
    found = parse_stat(1, b"1 (a) R 9 (b c) " + fields)
    assert found is not None
    assert found.parent == 7


def test_this_process_has_used_cpu_time_and_one_that_is_gone_is_none() -> None:
    found = parse_stat(os.getpid(), read_once(os.getpid(), "stat", MAX_STAT_BYTES))
    assert found is not None
    assert found.parent == os.getppid()
    assert found.counters.user_ticks > 0
    with running("exit") as shell:
        shell.wait(DEADLINE_S)
    assert parse_stat(shell.pid, read_once(shell.pid, "stat", MAX_STAT_BYTES)) is None


def test_descendants_of_the_first_process_are_the_containers() -> None:
    with running("sleep 1000 & echo $!; sleep 1000 & echo $!; wait") as shell:
        children = {int(line_of(shell)), int(line_of(shell))}
        found = ProcessTable().scan([Root("x", shell.pid, start_ticks(shell.pid))])
        assert {p.pid for p in found["x"]} == {shell.pid, *children}


def test_a_container_within_another_ones_tree_is_its_own() -> None:
    with running("sleep 1000 & echo $!; wait") as shell:
        child = int(line_of(shell))
        found = ProcessTable().scan([Root("outer", shell.pid), Root("inner", child)])
        assert {name: {p.pid for p in members} for name, members in found.items()} == {
            "outer": {shell.pid},
            "inner": {child},
        }


def test_new_processes_are_found_and_those_that_end_are_not() -> None:
    table = ProcessTable()
    with running("read x; sleep 1000 & echo $!; read x; kill $!; wait; echo; read x") as shell:
        root = Root("x", shell.pid, start_ticks(shell.pid))
        assert [p.pid for p in table.scan([root])["x"]] == [shell.pid]
        go_on(shell)
        child = int(line_of(shell))
        assert {p.pid for p in table.scan([root])["x"]} == {shell.pid, child}
        go_on(shell)
        line_of(shell)
        assert [p.pid for p in table.scan([root])["x"]] == [shell.pid]


def test_processes_that_were_seen_before_their_container_was_known_are_found() -> None:
    table = ProcessTable()
    with running("sleep 1000 & echo $!; wait") as shell:
        child = int(line_of(shell))
        assert table.scan([]) == {}
        assert {p.pid for p in table.scan([Root("x", shell.pid)])["x"]} == {shell.pid, child}


def test_a_pid_that_another_process_has_by_now_is_no_containers() -> None:
    with running("echo; read x") as shell:
        line_of(shell)
        assert ProcessTable().scan([Root("x", shell.pid, start_ticks(shell.pid) + 1)]) == {}


def test_a_process_that_is_nobodys_is_looked_at_again_after_some_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    table = ProcessTable()
    read: list[int] = []

    def counting(pid: int, name: str, max_bytes: int) -> bytes:
        read.append(pid)
        return read_once(pid, name, max_bytes)

    with running("echo; read x") as shell:
        line_of(shell)
        table.scan([])
        monkeypatch.setattr(process_table, "read_once", counting)
        for _ in range(process_table.ROUNDS):
            table.scan([])
        assert read.count(shell.pid) == 1


def test_the_figures_of_the_host() -> None:
    cpu, memory, limit = host.read_cpu(1.0), host.read_memory(1.0).memory, host.read_process_limit(1.0)
    assert cpu is not None
    assert memory is not None
    assert memory.usage is not None
    assert memory.limit is not None
    assert cpu.usage_ns
    assert 0 < memory.usage < memory.limit
    assert limit.max_pid
    assert limit.processes
    found = machine.read_machine()
    assert found.num_cores == os.cpu_count()
    assert found.memory_capacity == memory.limit
    assert {thread for node in found.topology for core in node.cores for thread in core.thread_ids}


def target(pid: int) -> PodTarget:
    main = ContainerTarget(
        id="c" * 64,
        name="main",
        attempt=0,
        image="x",
        pid=pid,
        start_ticks=start_ticks(pid),
        started_at=1.0,
        layer="",
    )
    return PodTarget(
        uid="u", name="web", namespace="default", started_at=1.0, host_network=False, infra=None, containers=(main,)
    )


def collector(directory: Path) -> Collector:
    directories = PodDirectories(pods=str(directory), logs=str(directory))
    return Collector("n", directories, SystemClock(), Unshare(podman="/nonexistent"), agent_pid=os.getpid())


def test_a_pod_and_the_node(tmp_path: Path) -> None:
    with running("echo; read x") as shell:
        line_of(shell)
        snapshot = collector(tmp_path).collect([target(shell.pid)], 0)
    (pod,) = snapshot.pods
    (main,) = pod.containers
    assert main.cpu is not None
    assert main.memory is not None
    assert main.memory.usage
    assert main.cpu.nano_cores is None, "after one sample"
    assert pod.network is not None
    assert pod.ephemeral_storage is not None
    assert pod.ephemeral_storage.used is None, "the layer is not known"
    assert snapshot.node.fs is not None
    assert snapshot.node.fs.type
    assert {c.name for c in snapshot.node.system_containers} >= {KUBELET, PODS}


def test_a_process_that_does_nothing_is_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[int] = []
    real = process_table.resident_and_shared

    def noting(pid: int) -> tuple[int, int]:
        if pid == shell.pid:
            measured.append(pid)
        return real(pid)

    monkeypatch.setattr(processes, "resident_and_shared", noting)
    collecting = collector(tmp_path)

    def usage(pid: int, number: int) -> tuple[float, int]:
        (pod,) = collecting.collect([target(pid)], number).pods
        assert pod.containers[0].memory is not None
        return pod.containers[0].memory.time, pod.containers[0].memory.usage or 0

    with running("echo; read x; printf -v text %08000000d 1; echo; read x") as shell:
        line_of(shell)
        wait_until(lambda: state_of(shell.pid) == "S", DEADLINE_S)
        numbers = itertools.count()
        first = usage(shell.pid, next(numbers))

        def is_not_measured() -> bool:
            """Not so when the kernel of a host that is short of memory has taken pages in between."""
            before = len(measured)
            time, _ = usage(shell.pid, next(numbers))
            assert time > first[0]
            return len(measured) == before

        wait_until(is_not_measured, DEADLINE_S)
        go_on(shell)
        line_of(shell)
        before = len(measured)
        assert usage(shell.pid, next(numbers))[1] > first[1] + 4_000_000
        assert len(measured) > before


def test_counters_of_a_pod_do_not_fall_when_its_container_is_replaced_or_nobody_looks(tmp_path: Path) -> None:
    collecting = collector(tmp_path)
    busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo; read x"

    def usage(pid: int) -> int:
        (pod,) = collecting.collect([target(pid)], 0).pods
        assert pod.cpu is not None
        assert pod.cpu.usage_ns is not None
        return pod.cpu.usage_ns

    with running(busy) as shell:
        line_of(shell)
        before = usage(shell.pid)
        assert before > 0
        collecting.rest()
        assert usage(shell.pid) >= before
    with running("echo; read x") as shell:
        line_of(shell)
        other = target(shell.pid)
        (main,) = other.containers
        successor = msgspec.structs.replace(main, id="d" * 64)
        (pod,) = collecting.collect([msgspec.structs.replace(other, containers=(successor,))], 1).pods
        assert pod.cpu is not None
        assert pod.cpu.usage_ns is not None
        assert pod.cpu.usage_ns >= before


def test_a_container_that_has_ended_has_no_figures(tmp_path: Path) -> None:
    with running("exit") as shell:
        pid = shell.pid
        wait_until(lambda: shell.poll() is not None, DEADLINE_S, 0.01)
    (pod,) = collector(tmp_path).collect([target(pid)], 0).pods
    (main,) = pod.containers
    assert (main.cpu, main.memory, pod.network) == (None, None, None)
    assert pod.memory is None or pod.memory.usage is None
