"""Syncs of pods with containers of every kind, on a fake host."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from ipc.k8s.api.v1.container import (
    Container,
    ContainerRestartRule,
    ContainerRestartRuleOnExitCodes,
    EphemeralContainer,
)
from ipc.k8s.kubecontainer.pod_status import ContainerState
from tests.fakes.runtime import Flavour
from tests.support.pods import IMAGE, UID, container, pod, sidecar
from tests.support.sync import FakeHost, on_host, results

STUBBORN = ("sleep", "1000000")
"""Does not end on SIGTERM."""
RULE = ContainerRestartRule(
    action="RestartAllContainers", exit_codes=ContainerRestartRuleOnExitCodes(operator="In", values=(42,))
)


def step(name: str, seconds: float = 0.0, **fields: Any) -> Container:
    """An init container that comes to its end."""
    return container(name, **{"args": ("sh", "-c", f"sleep {seconds}"), **fields})


def test_everything_starts_in_its_turn(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        debug = EphemeralContainer(name="debug", image=IMAGE, args=STUBBORN)
        of = pod("main", init_containers=(step("i1", 5), sidecar("s1"), step("i2")), ephemeral_containers=(debug,))
        said = []
        for _ in range(5):
            said.append((await host.sync(of)).summary)
            await asyncio.sleep(6)
        assert said == [
            "found no sandbox; created sandbox 0, started i1 (0)",
            "found 1 of 3 init containers done; started debug (0), started s1 (0)",
            "found 2 of 3 init containers done; started i2 (0)",
            "found 0 of 1 containers as they should be; started main (0)",
            "found 1 of 1 containers as they should be; nothing to do",
        ]
        assert host.running().keys() == {"s1", "debug", "main"}
        assert "Started spec.initContainers{s1}" in host.reasons()

    on_host(tmp_path, scenario)


def test_while_an_init_container_runs_nothing_is_done(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod("main", init_containers=(step("i1", 60),))
        await host.sync(of)
        done = await host.sync(of)
        assert (done.changed, done.results) == (False, ())
        assert done.summary == "found 0 of 1 init containers done; nothing to do"

    on_host(tmp_path, scenario)


def test_a_failing_init_container_backs_off_and_that_is_no_error_of_the_sync(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod("main", init_containers=(container("i1", args=("false",)),))
        for _ in range(2):
            await host.sync(of)
            await asyncio.sleep(1)
        done = await host.sync(of)
        assert results(done) == [("RemoveContainer", "i1", ""), ("StartContainer", "i1", "CrashLoopBackOff")]
        assert (done.error, "next try at" in done.summary) == ("", True)
        assert [c.attempt for c in (await host.observe(UID)).containers] == [1]

    on_host(tmp_path, scenario)


def test_an_init_container_that_fails_for_good_stops_the_pod(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod("main", init_containers=(sidecar("s1"), container("i1", args=("false",))), restart_policy="Never")
        for _ in range(3):
            done = await host.sync(of)
            await asyncio.sleep(1)
        assert results(done) == [("KillContainer", "s1", ""), ("KillPodSandbox", "web", "")]
        assert done.summary.startswith("found init container i1 failed for good; ")
        assert (await host.settle(of)).summary == "found sandbox is not ready, the pod is done; nothing to do"

    on_host(tmp_path, scenario)


def test_a_sidecar_that_does_not_start_does_not_keep_others_from_starting(tmp_path: Path) -> None:
    """A sidecar was replaced while regular containers were due; an init container would have kept them waiting."""

    async def scenario(host: FakeHost) -> None:
        before = pod("main", init_containers=(sidecar("s1"), sidecar("s2")))
        await host.settle(before)
        host.podman.exit(host.running()["main"], 1)
        after = pod("main", init_containers=(sidecar("s1", args=("no-such-command",)), sidecar("s2")))
        done = await host.sync(after)
        started = [result for result in results(done) if result[0] == "StartContainer"]
        assert started == [("StartContainer", "s1", "RunContainerError"), ("StartContainer", "main", "")]

    on_host(tmp_path, scenario)


def test_an_init_container_that_does_not_start_keeps_the_rest_from_starting(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod("main", init_containers=(container("i1", args=("no-such-command",)), container("i2")))
        done = await host.sync(of)
        assert [r for r in results(done) if r[0] == "StartContainer"] == [("StartContainer", "i1", "RunContainerError")]
        assert host.running() == {}

    on_host(tmp_path, scenario)


def test_containers_that_are_killed_in_one_sync_share_its_time(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        before = pod("a", "b", "c", termination_grace_period_seconds=10)
        await host.sync(before)
        changed = tuple(container(name, args=("sleep", "1000001")) for name in "ab")
        began = host.clock.now().mono
        done = await host.sync(pod(*changed, "c", termination_grace_period_seconds=10))
        assert host.clock.now().mono - began < 15
        assert [action for action, _, _ in results(done)] == ["KillContainer"] * 2 + ["StartContainer"] * 2

    on_host(tmp_path, scenario)


def test_a_lost_sandbox_begins_the_pod_anew(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod("main", init_containers=(step("i1"), sidecar("s1")))
        await host.settle(of)
        (infra,) = [c for c in host.podman.containers.values() if c.is_infra]
        host.podman.exit(infra.id)
        done = await host.sync(of)
        assert [result[:2] for result in results(done)] == [
            ("KillContainer", "main"),
            ("KillContainer", "s1"),
            ("RemoveContainer", "s1"),
            ("RemoveContainer", "i1"),
            ("CreatePodSandbox", "web"),
            ("StartContainer", "i1"),
        ]
        await host.settle(of)
        attempts = {c.name: c.attempt for c in (await host.observe(UID)).containers}
        assert attempts == {"i1": 1, "s1": 1, "main": 1}

    on_host(tmp_path, scenario)


def test_all_containers_restart_in_the_same_sandbox_and_their_counts_go_on(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        source = container("source", restart_policy="Never", restart_policy_rules=(RULE,))
        of = pod(source, "other", init_containers=(step("i1"), sidecar("s1")))
        await host.settle(of)
        host.podman.exit(host.running()["source"], 42)
        began = host.clock.now().mono
        done = await host.sync(of, restarting_all=True)
        assert host.clock.now().mono - began < 5, "the smallest window, whatever the grace period"
        assert [target for action, target, _ in results(done) if action == "RemoveContainer"] == [
            "other",
            "i1",
            "s1",
            "source",
        ]
        left = await host.observe(UID)
        assert (left.containers, [s.attempt for s in left.sandboxes]) == ((), [0])
        assert (await host.sync(of, restarting_all=True)).changed is False, "until the master has seen that"
        await host.settle(of)
        status = await host.observe(UID)
        assert {(c.name, c.attempt) for c in status.containers} == {(n, 1) for n in ("i1", "s1", "other", "source")}
        assert [s.attempt for s in status.sandboxes] == [0]

    on_host(tmp_path, scenario)


def test_a_restart_of_all_that_cannot_remove_one_starts_none(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod(container("source", restart_policy="Never", restart_policy_rules=(RULE,)), "other")
        await host.settle(of)
        host.podman.exit(host.running()["source"], 42)
        for nth in (1, 2):  # a removal is tried twice
            host.runtime.fail(nth, Flavour.FAILED, "remove_container")
        done = await host.sync(of)
        assert done.error == "RemoveError"
        trigger = (await host.observe(UID)).newest("source")
        assert trigger is not None
        assert (trigger.state, trigger.exit_code) == (ContainerState.EXITED, 42)
        await host.settle(of)
        assert host.running().keys() == {"source", "other"}

    on_host(tmp_path, scenario)


def test_what_the_node_has_too_many_of_is_removed_unless_it_is_needed(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod("main")
        await host.settle(of)
        host.podman.exit(host.running()["main"], 1)
        dead = (await host.observe(UID)).containers[0].id
        done = await host.sync(of, dead_containers=(dead,))
        assert ("RemoveContainer", "main", "") not in results(done), "it says how long the next one has to wait"
        assert results(await host.sync(of, dead_containers=(dead,))) == [("RemoveContainer", "main", "")]

    on_host(tmp_path, scenario)
