"""Workers that hang, leave, multiply, or are killed by a pod: real processes, real signals, no Podman."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from time import sleep
from typing import Any

import psutil
import pytest

from ipc.link.messages.event_reasons import SYNC_CRASH_LOOP_BACK_OFF
from ipc.link.wire.boot import ChildContext
from supervisor.client.errors import RequestFailed
from supervisor.pods.crash_attribution import CRASH_THRESHOLD
from supervisor.processes.worker_pool import FIRST_POD_SLOT, QUARANTINE_SLOT
from tests.process.model_children import (
    GOOD_IMAGE,
    POISON_IMAGE,
    Agent,
    Life,
    Line,
    by_incarnation,
    hang_in_python,
    ignore_shutdown,
    sync_pods,
)
from tests.support.raw_libpod import UnixConnection
from tests.support.variants import seldom

pytestmark = pytest.mark.process

Start = Callable[..., Agent]
A, B = FIRST_POD_SLOT, FIRST_POD_SLOT + 1
PODS = tuple(f"pod-{number:02}" for number in range(12))
ALL_WELL = by_incarnation({})
DEADLINE_S = 30.0


def workers_of(count: int) -> dict[str, Any]:
    """So many are there always."""
    return {"count": count, "podsPerWorker": 0, "heartbeatTimeout": "2s"}


@pytest.fixture
def start() -> Iterator[Start]:
    agents: list[Agent] = []

    def make(lifecycle: Callable[[ChildContext], Life] = ALL_WELL, *, count: int = 1, **workers: Any) -> Agent:
        agents.append(Agent(lifecycle, workers={**workers_of(count), **workers}))
        return agents[-1]

    yield make
    for agent in agents:
        agent.close()


def is_next(agent: Agent, name: str, incarnation: int) -> bool:
    worker = agent.workers().get(name, {})
    return bool(worker and worker["incarnation"] >= incarnation and worker["state"] == "Running")


def syncs_since(agent: Agent, line: int) -> Counter[tuple[str, int]]:
    """(pod, slot) of what has ended since."""
    return Counter((entry.uid, entry.slot) for entry in agent.journal()[line:] if entry.what == "end")


def assert_one_actor_per_pod(journal: list[Line]) -> None:
    """A sync begins when the one before has ended, or its worker has died."""
    open_: dict[str, Line] = {}
    for line in journal:
        before = open_.pop(line.uid, None)
        if line.what == "begin":
            assert before is None or before.incarnation < line.incarnation, f"{line} while {before}"
            open_[line.uid] = line


# --- hangs ---------------------------------------------------------------------------------------------------------


def test_where_a_worker_hangs_is_in_the_agent_s_log_with_slot_and_incarnation(start: Start) -> None:
    agent = start(by_incarnation({1: hang_in_python}))
    agent.until(lambda: is_next(agent, "pods-0", 2), "the hanging worker is replaced")
    assert f"signal {signal.SIGABRT:d} to slot {A}: no heartbeat" in agent.log
    _, _, story = agent.log.partition(f"slot {A} incarnation 1 ")
    assert f"ended with {-signal.SIGABRT}; it was here:\n" in story
    assert "in block_the_loop_here" in story
    assert "in never_comes_back" in story


def test_a_stopped_worker_is_continued_and_has_not_died(start: Start) -> None:
    agent = start()
    agent.state(*PODS)
    agent.until(lambda: syncs_since(agent, 0).keys() >= {(name, A) for name in PODS}, "every pod was synced")
    before = agent.workers()["pods-0"]
    os.kill(before["pid"], signal.SIGSTOP)
    agent.until(lambda: f"signal {signal.SIGCONT:d} to slot {A}: it was stopped" in agent.log, "it is continued")
    line = len(agent.journal())
    agent.until(lambda: syncs_since(agent, line).keys() >= {(name, A) for name in PODS}, "every pod is synced again")
    now = agent.workers()["pods-0"]
    assert {key: now[key] for key in ("pid", "incarnation", "deaths")} == {
        key: before[key] for key in ("pid", "incarnation", "deaths")
    }


def test_a_worker_that_is_stopped_again_and_again_is_replaced(start: Start) -> None:
    agent = start()
    agent.until(lambda: agent.is_running(["pods-0"]), "the agent is up")
    with stopped_for_good(agent.workers()["pods-0"]["pid"]):
        agent.until(lambda: is_next(agent, "pods-0", 2), "the stopped worker is replaced")
    assert f"signal {signal.SIGABRT:d} to slot {A}: no heartbeat" in agent.log


@contextlib.contextmanager
def stopped_for_good(pid: int) -> Iterator[None]:
    """Somebody stops the process as often as it is continued, until it has ended."""
    script = f"while kill -STOP {pid}; do :; done"
    with subprocess.Popen(["sh", "-c", script], stderr=subprocess.DEVNULL) as stopper:
        yield
        assert stopper.wait(DEADLINE_S) == 0


def test_a_stopped_zygote_is_continued_and_a_worker_that_died_meanwhile_is_replaced(start: Start) -> None:
    agent = start()
    agent.until(lambda: agent.is_running(["pods-0"]), "the agent is up")
    [zygote] = psutil.Process(agent.pid).children()
    zygote.suspend()
    os.kill(agent.workers()["pods-0"]["pid"], signal.SIGKILL)
    agent.until(lambda: is_next(agent, "pods-0", 2), "the killed worker is replaced")
    assert f"signal {signal.SIGCONT:d} to the zygote: it was stopped" in agent.log
    assert psutil.Process(agent.pid).children() == [zygote]


# --- the master ----------------------------------------------------------------------------------------------------


def healthz(agent: Agent) -> tuple[int, str]:
    """Asked on a connection of its own."""
    connection = UnixConnection(str(agent.client.socket))
    try:
        connection.request("GET", "/healthz?exclude=podman&exclude=relist")  # there is none here
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_the_health_check_fails_while_the_master_is_stopped_and_heals(start: Start) -> None:
    agent = start()
    agent.until(lambda: agent.is_running(["pods-0"]), "the agent is up")
    assert healthz(agent) == (200, "ok")
    os.kill(agent.pid, signal.SIGSTOP)
    try:
        agent.until(lambda: healthz(agent)[0] == 500, "the health check fails")
        status, why = healthz(agent)
        assert status == 500
        assert f"[-]syncloop failed: the master (pid {agent.pid}) is stopped" in why
        assert why.endswith("healthz check failed\n")
    finally:
        os.kill(agent.pid, signal.SIGCONT)
    agent.until(lambda: healthz(agent) == (200, "ok"), "it heals")


# --- a poison pod --------------------------------------------------------------------------------------------------


def test_a_poison_pod_is_isolated_and_the_agent_and_the_rest_of_its_shard_go_on(start: Start) -> None:
    agent = start(maxDeaths=CRASH_THRESHOLD)
    agent.state(*PODS)
    agent.state("poison", image=POISON_IMAGE)
    agent.until(lambda: bool(agent.workers()), "the agent answers")
    agent.until(lambda: len(agent.events(SYNC_CRASH_LOOP_BACK_OFF.reason)) == 1, "the poison pod is isolated")
    [event] = agent.events(SYNC_CRASH_LOOP_BACK_OFF.reason)
    assert (event["type"], event["involvedObject"]["name"]) == ("Warning", "poison")
    assert Counter(line.what for line in agent.journal())["died"] <= CRASH_THRESHOLD + 1
    line = len(agent.journal())
    agent.until(lambda: all(syncs_since(agent, line)[uid, A] >= 2 for uid in PODS), "the others are synced")
    assert "died" not in {entry.what for entry in agent.journal()[line:]}
    # Back-off is over: the worker gets another try, and what it does then does not count against the agent.
    agent.until(lambda: "died" in {entry.what for entry in agent.journal()[line:]}, "it gets another try")
    agent.until(
        lambda: any(event["message"].endswith("20 s") for event in agent.events(SYNC_CRASH_LOOP_BACK_OFF.reason)),
        "it waits for longer",
    )
    assert not agent.has_ended()
    assert {entry.slot for entry in agent.journal()[line:] if entry.what == "died"} == {QUARANTINE_SLOT}
    line = len(agent.journal())
    agent.state("poison", image=GOOD_IMAGE)
    agent.until(lambda: syncs_since(agent, line)["poison", QUARANTINE_SLOT] >= 2, "its new manifest is tried at once")
    deaths = agent.workers()["pods-0"]["deaths"]
    assert deaths <= CRASH_THRESHOLD, "nobody else feels what it does in quarantine"
    assert_one_actor_per_pod(agent.journal())


def test_a_restart_of_its_worker_gives_a_poison_pod_another_try(start: Start) -> None:
    agent = start()
    agent.state("poison", image=POISON_IMAGE)
    agent.until(lambda: bool(agent.workers()), "the agent answers")
    agent.until(lambda: len(agent.events(SYNC_CRASH_LOOP_BACK_OFF.reason)) == 1, "the poison pod is isolated")
    agent.until(lambda: is_next(agent, "quarantine", 1), "there is a worker for it")
    line = len(agent.journal())
    agent.client.restart_worker("quarantine")
    agent.until(lambda: "died" in {entry.what for entry in agent.journal()[line:]}, "it is tried again", 5.0)


# --- workers that are asked to leave -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pods-0", "node", "api", "dialer"])
def test_a_worker_is_replaced_on_request_and_has_not_died(start: Start, name: str) -> None:
    agent = start(maxDeaths=1)
    agent.state(*PODS)
    agent.until(lambda: agent.is_running(["pods-0"]), "the agent is up")
    before = agent.workers()
    agent.client.restart_worker(name)
    agent.until(lambda: is_next(agent, name, 2), f"{name} is replaced")
    line = len(agent.journal())
    agent.until(lambda: all(syncs_since(agent, line)[uid, A] >= 1 for uid in PODS), "all pods are synced")
    after = agent.workers()
    assert {n for n in before if after[n]["pid"] != before[n]["pid"]} == {name}
    assert {worker["deaths"] for worker in after.values()} == {0}
    assert_one_actor_per_pod(agent.journal())


def test_a_worker_that_does_not_leave_is_killed_after_the_grace_period(start: Start) -> None:
    agent = start(by_incarnation({1: ignore_shutdown}))
    agent.until(lambda: agent.is_running(["pods-0"]), "the agent is up")
    agent.client.restart_worker("pods-0")
    with pytest.raises(RequestFailed, match="does not run just now"):
        agent.client.restart_worker("pods-0")
    agent.until(lambda: is_next(agent, "pods-0", 2), "it is replaced")
    assert "still there after it was asked to leave" in agent.log
    assert agent.workers()["pods-0"]["deaths"] == 0


def test_a_worker_that_is_not_there_is_not_found(start: Start) -> None:
    agent = start()
    agent.until(lambda: agent.is_running(["pods-0"]), "the agent is up")
    with pytest.raises(RequestFailed, match=r'NotFound.*workers "pods-9" not found'):
        agent.client.restart_worker("pods-9")


# --- another number of workers -------------------------------------------------------------------------------------


def test_pods_move_to_new_workers_and_away_from_those_that_go_without_a_second_actor(start: Start) -> None:
    agent = start(count=2)
    agent.state(*PODS)
    agent.until(lambda: agent.is_running(["pods-0", "pods-1"]), "the agent is up")
    agent.until(lambda: {uid for uid, _ in syncs_since(agent, 0)} == set(PODS), "all pods were synced")

    def loads() -> list[int]:
        return [worker["pods"] for name, worker in sorted(agent.workers().items()) if name.startswith("pods-")]

    agent.reload(workers=workers_of(4))
    agent.until(lambda: agent.is_running([f"pods-{n}" for n in range(4)]), "four workers run")
    agent.until(lambda: loads() == [3, 3, 3, 3], "the pods are shared out anew")
    line = len(agent.journal())
    agent.until(lambda: {uid for uid, _ in syncs_since(agent, line)} == set(PODS), "all pods are synced")
    assert {slot for _, slot in syncs_since(agent, line)} == set(range(A, A + 4))

    agent.reload(workers=workers_of(1))
    agent.until(lambda: agent.is_running(["pods-0"]), "one worker is left")
    assert loads() == [len(PODS)]
    line = len(agent.journal())
    agent.until(lambda: {uid for uid, _ in syncs_since(agent, line)} == set(PODS), "all pods are synced")
    assert {slot for _, slot in syncs_since(agent, line)} == {A}
    assert "configuration reloaded: " in agent.log

    agent.reload(workers=workers_of(2))
    agent.until(lambda: is_next(agent, "pods-1", 2), "a slot that was left begins with its next incarnation")
    assert {worker["deaths"] for worker in agent.workers().values()} == {0}
    assert_one_actor_per_pod(agent.journal())


def test_the_second_worker_is_there_while_there_are_pods_for_it_and_each_pod_has_one_actor(start: Start) -> None:
    agent = start(count=2, podsPerWorker=8)
    agent.until(lambda: agent.is_running(["pods-0"]), "the agent is up, with one worker")
    agent.state(*PODS)
    agent.until(lambda: agent.is_running(["pods-0", "pods-1"]), "the second one came")
    agent.until(lambda: {uid for uid, _ in syncs_since(agent, 0)} == set(PODS), "all pods were synced")
    agent.until(lambda: {slot for _, slot in syncs_since(agent, 0)} == {A, B}, "some have moved to it")

    agent.reload(workers={**workers_of(2), "podsPerWorker": len(PODS) * 2})
    agent.until(lambda: agent.is_running(["pods-0"]), "one worker is left")
    line = len(agent.journal())
    agent.until(lambda: {uid for uid, _ in syncs_since(agent, line)} == set(PODS), "all pods are synced")
    agent.reload(workers={**workers_of(2), "podsPerWorker": len(PODS) - 1})
    agent.until(lambda: is_next(agent, "pods-1", 2), "it comes again, as its slot's next incarnation")
    assert {worker["deaths"] for worker in agent.workers().values()} == {0}
    assert_one_actor_per_pod(agent.journal())


def test_a_worker_that_dies_while_its_pods_move_away_is_no_loss(start: Start) -> None:
    agent = start(count=2)
    agent.state(*PODS)
    agent.until(lambda: agent.is_running(["pods-0", "pods-1"]), "the agent is up")
    pid = agent.workers()["pods-1"]["pid"]
    agent.reload(workers=workers_of(1))
    os.kill(pid, signal.SIGKILL)
    agent.until(lambda: agent.is_running(["pods-0"]), "one worker is left")
    line = len(agent.journal())
    agent.until(lambda: all(syncs_since(agent, line)[uid, A] >= 1 for uid in PODS), "all pods are synced")
    assert_one_actor_per_pod(agent.journal())


def test_sync_pods_is_what_these_tests_say(start: Start) -> None:
    """Every pod again and again, each by one worker at a time."""
    agent = start(lambda context: sync_pods, count=2)
    agent.state(*PODS)
    agent.until(lambda: min(Counter(u for u, _ in syncs_since(agent, 0).elements()).values(), default=0) >= 2, "twice")
    assert {slot for _, slot in syncs_since(agent, 0)} == {A, B}
    assert_one_actor_per_pod(agent.journal())


# --- without file descriptors --------------------------------------------------------------------------------------

STARVED_S = 3.0
FEW_TRIES = 8
"""In STARVED_S: pauses of 0.1, 0.2, 0.4, … seconds."""


@contextlib.contextmanager
def starved(process: psutil.Process, spare: int) -> Iterator[None]:
    """Starve a process, which may open only so many files more."""
    before = process.rlimit(psutil.RLIMIT_NOFILE)
    process.rlimit(psutil.RLIMIT_NOFILE, (process.num_fds() + spare, before[1]))
    yield
    process.rlimit(psutil.RLIMIT_NOFILE, before)


@pytest.mark.parametrize(("role", "spare"), [("master", 0), seldom("master", 2), seldom("zygote", 0), ("zygote", 2)])
def test_without_file_descriptors_workers_wait_for_their_successors_and_nothing_spins(
    start: Start, role: str, spare: int
) -> None:
    agent = start(maxDeaths=FEW_TRIES)
    agent.state(*PODS)
    agent.until(lambda: syncs_since(agent, 0).keys() >= {(name, A) for name in PODS}, "every pod was synced")
    master = psutil.Process(agent.pid)
    process = master if role == "master" else next(c for c in master.children() if c.name() == "rootlet-zygote")
    limit = psutil.Process(agent.workers()["pods-0"]["pid"]).rlimit(psutil.RLIMIT_NOFILE)
    with starved(process, spare):
        os.kill(agent.workers()["pods-0"]["pid"], signal.SIGKILL)
        used_s = sum(process.cpu_times()[:2])
        sleep(STARVED_S)
        assert sum(process.cpu_times()[:2]) - used_s < STARVED_S / 3
        tries = agent.log.count(f"slot {A} incarnation ")
        assert tries <= FEW_TRIES, agent.log
    line = len(agent.journal())
    agent.until(lambda: syncs_since(agent, line).keys() >= {(name, A) for name in PODS}, "every pod is synced again")
    assert agent.exit_code is None
    assert psutil.Process(agent.workers()["pods-0"]["pid"]).rlimit(psutil.RLIMIT_NOFILE) == limit
    assert_one_actor_per_pod(agent.journal())
