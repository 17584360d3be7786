"""The agent's own processes multiply, leave, are killed by a pod, or all at once: no container notices."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal

import psutil
import pytest

from ipc.host import clock
from ipc.link.messages.event_reasons import SYNC_CRASH_LOOP_BACK_OFF
from supervisor.pods.crash_attribution import CRASH_THRESHOLD
from tests.e2e.agent import MOMENT_POLL_S, Agent, Json, restart_count
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import pod, pods

pytestmark = [pytest.mark.e2e, pytest.mark.podman, pytest.mark.timeout(300)]

PODS = 12
RUNNING = pods("run", PODS)
FIRST_LOOK_DEADLINE_S = 30.0
ON_DEMAND = frozenset({"rootlet-api-1", "rootlet-dial-3"})
"""As the processes are called."""


@pytest.fixture(scope="module")
def running(agent: Agent) -> Agent:
    """An agent with pods that run."""
    agent.run(*RUNNING.values())
    return agent


def loads(agent: Agent) -> list[int]:
    """Pods of every pod worker, as long as all of them run."""
    workers = [worker for name, worker in sorted(agent.workers().items()) if name.startswith("pods-")]
    return [worker["pods"] for worker in workers] if {w["state"] for w in workers} == {"Running"} else []


def reload(agent: Agent, count: int) -> None:
    agent.configure({"workers": {**agent.settings["workers"], "count": count}})
    agent.process.send_signal(signal.SIGHUP)


def assert_untouched(agent: Agent, before: object) -> None:
    agent.until_ready(RUNNING)
    assert agent.eye.pod_table() == before
    assert {restart_count(found) for found in agent.pods().values()} == {0}


@pytest.mark.slow
def test_who_comes_after_a_pause_finds_everything_although_nobody_was_there(new_agent: NewAgent) -> None:
    agent = new_agent(workers={"idleTimeout": "2s"})
    names = pods("paused", 3)
    agent.start()
    agent.run(*names.values())
    before = agent.eye.pod_table()
    for command in (("get", "pods", "--no-headers"), ("logs", "paused-000"), ("exec", "paused-000", "--", "true")):
        agent.until(lambda: not ON_DEMAND & {p.name() for p in agent.marked_processes()}, "nobody is there", poll_s=0.5)
        done = agent.cli(*command)
        assert done.code == 0, done
        assert command[0] != "get" or [line.split()[:3] for line in done.out.splitlines()] == [
            [name, "1/1", "Running"] for name in names
        ]
    assert agent.eye.pod_table() == before
    assert {worker["deaths"] for worker in agent.workers().values()} == {0}


@pytest.mark.slow
def test_another_number_of_workers_restarts_no_container(running: Agent) -> None:
    before, house = running.eye.pod_table(), running.house()
    assert len(before) == 2 * PODS
    for count, shares in ((4, [PODS // 4] * 4), (1, [PODS]), (2, [PODS // 2, PODS // 2])):
        reload(running, count)
        running.until(lambda shares=shares: loads(running) == shares, f"{count} workers share the pods")  # type: ignore[misc]
        table = running.cli("get", "workers", "--no-headers").out.splitlines()
        assert [line.split()[0] for line in table if line.startswith("pods-")] == [f"pods-{n}" for n in range(count)]
        running.assert_works(pod(f"with-{count}"))
        assert_untouched(running, before)
    assert {worker["deaths"] for worker in running.workers().values()} == {0}
    running.until(lambda: running.house() == house, f"{running.house()} is as before: {house}")


def test_all_workers_are_restarted_on_request_one_after_the_other(running: Agent) -> None:
    before, workers = running.eye.pod_table(), running.workers()
    done = running.cli("workers", "restart", "--all")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [f"worker/{name} restarted" for name in workers]
    for name, worker in running.workers().items():
        assert (worker["incarnation"], worker["deaths"]) == (workers[name]["incarnation"] + 1, 0), name
    running.assert_works(pod("after-restart"))
    assert_untouched(running, before)


def test_a_worker_that_is_not_there_cannot_be_restarted(running: Agent) -> None:
    done = running.cli("workers", "restart", "pods-17")
    assert (done.code, done.out) == (1, "")
    assert done.err == 'Error from server (NotFound): workers "pods-17" not found\n'


def test_the_whole_agent_killed_at_once_serves_status_soon_and_restarts_no_container(running: Agent) -> None:
    before = running.eye.pod_table()
    for process in running.marked_processes():
        with contextlib.suppress(psutil.NoSuchProcess):  # one takes others along
            process.kill()
    assert running.wait_end() == -signal.SIGKILL
    begun = clock.monotonic()
    first: dict[str, Json] = {}
    served_s = 0.0

    def is_served() -> bool:
        nonlocal first, served_s
        with contextlib.suppress(OSError, http.client.HTTPException):
            first = first or running.pods()
            served_s = served_s or clock.monotonic() - begun
        return bool(first)

    running.start(first_look=is_served)
    assert first.keys() >= RUNNING.keys(), "what the checkpoint has is there at once"
    up_s = clock.monotonic() - begun
    running.until_ready(RUNNING, FIRST_LOOK_DEADLINE_S)
    ready_s = clock.monotonic() - begun
    ours = [psutil.Process(pid) for role, pid in running.processes().items() if role != "podman"]
    cpu_s = sum(process.cpu_times().user + process.cpu_times().system for process in ours)
    print(f"{len(first)} pods served after {served_s:.2f} s, the agent up after {up_s:.2f} s,")
    print(f"all {PODS} pods Ready after {ready_s:.2f} s, {cpu_s:.2f} s of CPU")
    assert_untouched(running, before)


def kill_at_the_poison_pod(agent: Agent, death: int) -> None:
    """The worker's n-th death."""

    def is_at_it() -> bool:
        worker = agent.workers()["pods-0"]
        found = worker["deaths"] == death - 1 and worker["step"].startswith("default/poison:")
        if found:
            os.kill(worker["pid"], signal.SIGKILL)
        return bool(found)

    agent.until(is_at_it, f"the worker is at the poison pod for the {death}. time", poll_s=MOMENT_POLL_S)
    agent.until(lambda: agent.workers()["pods-0"]["deaths"] == death, "it has died")


def isolations(agent: Agent) -> list[Json]:
    return [event for event in agent.events("poison") if event["reason"] == SYNC_CRASH_LOOP_BACK_OFF.reason]


@pytest.mark.slow
def test_a_pod_that_kills_its_worker_is_isolated_and_everybody_else_goes_on(new_agent: NewAgent) -> None:
    """Whenever the worker says that it is at that pod, it is killed."""
    agent = new_agent(workers={"count": 1, "maxDeaths": CRASH_THRESHOLD})
    agent.start()
    agent.run(*pods("run", 4).values())
    before = agent.eye.pod_table()
    agent.write(pod("poison"))
    for death in range(1, CRASH_THRESHOLD + 1):
        kill_at_the_poison_pod(agent, death)
    agent.until(lambda: bool(isolations(agent)), "the poison pod is isolated")
    assert f"{CRASH_THRESHOLD} deaths of its worker in a row" in agent.describe("poison")
    agent.assert_works(pod("meanwhile"))
    agent.until_ready(["poison"])
    assert before.items() <= agent.eye.pod_table().items()
    assert {restart_count(found) for found in agent.pods().values()} == {0}
