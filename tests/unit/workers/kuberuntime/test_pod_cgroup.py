"""A pod's slice on a fake host: made first, missed, resized, and stopped with the pod."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ipc.k8s.api.v1.container import ContainerRestartRule, ContainerRestartRuleOnExitCodes, ResourceRequirements
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podresources.cgroup_config import CgroupConfig
from ipc.k8s.podresources.node_resources import NodeResources, PodCgroups
from ipc.k8s.podresources.pod_cgroups import pod_slice
from ipc.link.messages.pod_worker import SyncDone, WorkType
from tests.fakes.runtime import Flavour
from tests.support.pods import container, pod
from tests.support.sync import FakeHost, on_host, results

OURS = PodCgroups(directory="/sys/fs/cgroup/user@1.service")
NODE = NodeResources(controllers=frozenset({"cpu", "memory", "pids"}), pod_cgroups=OURS, pod_pids_limit=50)
MIB = 1 << 20


def prepared(host: FakeHost) -> FakeHost:
    host.configure("node", resources=NODE)
    return host


def slices(host: FakeHost) -> dict[str, CgroupConfig]:
    return host.runtime.podman.slices


def whole(cpu: str, memory: str) -> Pod:
    amounts = {"cpu": cpu, "memory": memory}
    return pod(container("a"), resources=ResourceRequirements(requests=amounts, limits=amounts))


def test_a_pod_gets_its_slice_before_all_else_and_its_containers_lie_in_it(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = whole("200m", "64Mi")
        await prepared(host).sync(of)
        assert slices(host) == {
            pod_slice(OURS, of): CgroupConfig(
                memory=64 * MIB, cpu_shares=204, cpu_quota=20_000, cpu_period=100_000, pids_limit=50
            )
        }
        calls = list(host.runtime.calls)
        assert calls.index("start_slice") < calls.index("create_pod")
        (made,) = (c for c in host.runtime.podman.containers.values() if not c.is_infra)
        assert made.cgroup_parent == pod_slice(OURS, of)
        host.runtime.calls.clear()
        assert (await host.sync(of)).changed is False
        assert "start_slice" not in host.runtime.calls

    on_host(tmp_path, scenario)


def test_without_a_manager_there_is_no_slice(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        await host.sync(pod("a"))
        assert slices(host) == {}

    on_host(tmp_path, scenario)


def test_a_pod_whose_slice_vanished_is_killed_and_made_again(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod("a", "b")
        await prepared(host).sync(of)
        before = host.running()
        slices(host).clear()
        killed = await host.sync(of)
        assert killed.summary.startswith("found the pod's cgroup is missing")
        assert (host.running(), slices(host)) == ({}, {})
        assert sorted(results(killed))[:2] == [("KillContainer", "a", ""), ("KillContainer", "b", "")]
        await host.settle(of)
        assert host.running().keys() == before.keys()
        assert not set(host.running().values()) & set(before.values())
        assert slices(host).keys() == {pod_slice(OURS, of)}

    on_host(tmp_path, scenario)


def test_a_pod_that_runs_once_is_not_made_again(tmp_path: Path) -> None:
    """Nor is a container of it that a rule would start again in its sandbox: with the pod that is gone."""

    async def scenario(host: FakeHost) -> None:
        codes = ContainerRestartRuleOnExitCodes(operator="NotIn", values=(0,))
        rule = ContainerRestartRule(action="Restart", exit_codes=codes)
        ruled = container("ruled", restart_policy="Never", restart_policy_rules=(rule,))
        of = pod("once", ruled, restart_policy="Never")
        await prepared(host).sync(of)
        slices(host).clear()
        await host.sync(of)
        await host.settle(of)
        assert host.running() == {}
        assert {c.attempt for c in (await host.observe(of.metadata.uid)).containers} == {0}

    on_host(tmp_path, scenario)


def test_a_slice_that_cannot_be_made_is_told_of_and_nothing_starts(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        prepared(host).runtime.fail(1, Flavour.FAILED, "start_slice")
        done = await host.sync(pod("a"))
        assert done.error == "PodCgroupError"
        assert done.message == (
            f"failed to ensure that the pod: {done.uid} cgroups exist and are correctly applied: "
            "start_slice: an injected failure"
        )
        assert [(e.reason, e.type, e.message) for e in host.events] == [
            (
                "FailedCreatePodContainer",
                "Warning",
                "unable to ensure pod container exists: start_slice: an injected failure",
            )
        ]
        assert host.running() == {}
        await host.sync(pod("a"))
        assert host.running().keys() == {"a"}

    on_host(tmp_path, scenario)


def test_the_slice_goes_with_the_pod(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        async def end(**fields: Any) -> SyncDone:
            await host.sync(pod("a"), WorkType.TERMINATING, **fields)
            return await host.sync(pod("a"), WorkType.TERMINATED, **fields)

        await prepared(host).sync(pod("a"))
        assert (await end()).error == ""
        assert slices(host) == {}
        await host.sync(pod("a"))
        host.runtime.fail(1, Flavour.FAILED, "stop_slice")
        assert (await end(remove=True)).error == "PodCgroupError"
        assert (await end(remove=True)).error == ""
        assert slices(host) == {}

    on_host(tmp_path, scenario)


def test_a_resize_reaches_the_slice_through_systemd(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        await prepared(host).sync(whole("200m", "64Mi"))
        before, larger = host.running(), whole("400m", "128Mi")
        assert results(await host.sync(larger)) == [("ResizePodInPlace", "default/web", "")]
        (config,) = slices(host).values()
        assert (config.memory, config.cpu_quota, config.cpu_shares) == (128 * MIB, 40_000, 409)
        assert (config.pids_limit, host.running()) == (50, before)

    on_host(tmp_path, scenario)


def limited(memory: str | None, image: str = "") -> Pod:
    amounts = ResourceRequirements(limits={"memory": memory}, requests={"memory": "8Mi"}) if memory else None
    fields: dict[str, Any] = {"resources": amounts} if amounts is not None else {}
    return pod(container("a", command=["run", image], **fields), container("b", resources=of_memory("32Mi")))


def of_memory(memory: str) -> ResourceRequirements:
    return ResourceRequirements(limits={"memory": memory}, requests={"memory": "8Mi"})


@pytest.mark.parametrize(("after", "expected"), [("128Mi", 160 * MIB), ("16Mi", 48 * MIB), (None, None)])
def test_a_container_that_is_replaced_has_room_for_its_new_limits(
    tmp_path: Path, after: str | None, expected: int | None
) -> None:
    """The slice had those of both containers together, and follows before the new one starts."""

    async def scenario(host: FakeHost) -> None:
        of = limited("64Mi")
        await prepared(host).sync(of)
        assert slices(host)[pod_slice(OURS, of)].memory == 96 * MIB
        host.runtime.calls.clear()
        assert all(not error for *_, error in results(await host.sync(limited(after, "another"))))
        assert slices(host)[pod_slice(OURS, of)].memory == expected
        calls = list(host.runtime.calls)
        assert calls.index("start_slice") < calls.index("start_container")
        host.runtime.calls.clear()
        await host.settle(limited(after, "another"))
        assert "start_slice" not in host.runtime.calls

    on_host(tmp_path, scenario)


def test_a_slice_that_systemd_does_not_change_keeps_the_container_from_starting(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        await prepared(host).sync(limited("64Mi"))
        host.runtime.calls.clear()
        host.runtime.fail(1, Flavour.FAILED, "start_slice")
        done = await host.sync(limited("128Mi", "another"))
        assert done.error == "PodCgroupError"
        assert [e.reason for e in host.events if e.type == "Warning"] == ["FailedCreatePodContainer"]
        assert "start_container" not in host.runtime.calls

    on_host(tmp_path, scenario)
