"""Resizes on a fake host: which calls are made, in which order, and what is told of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ipc.k8s.api.v1.container import Container, ContainerResizePolicy, ResourceRequirements
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podresources.node_resources import NodeResources
from tests.fakes.runtime import Flavour
from tests.support.pods import container, pod
from tests.support.sync import FakeHost, on_host, results

MIB = 1 << 20
DELEGATED = NodeResources(controllers=frozenset({"cpu", "memory"}))
DONE = ("ResizePodInPlace", "default/web", "")
FAILED = ("ResizePodInPlace", "default/web", "ResizePodInPlaceError")


def sized(name: str, cpu: str, memory: str, **fields: Any) -> Container:
    limits = {"cpu": cpu, "memory": memory}
    requests = {"cpu": "10m", "memory": "1Mi"}
    return container(name, resources=ResourceRequirements(limits=limits, requests=requests), **fields)


def sized_pod(*sizes: tuple[str, str]) -> Pod:
    return pod(*(sized(name, *size) for name, size in zip("abc", sizes, strict=False)))


def limits(host: FakeHost, name: str) -> tuple[int, int]:
    made = host.runtime.podman.containers[host.running()[name]].resources
    return made["cpu"]["quota"], made["memory"]["limit"] // MIB


def delegated(host: FakeHost) -> None:
    host.configure("node", resources=DELEGATED)


def test_what_runs_gets_its_resources_and_goes_on(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        delegated(host)
        await host.sync(sized_pod(("100m", "64Mi")))
        before = host.running()
        host.reasons()
        larger = sized_pod(("200m", "128Mi"))
        done = await host.sync(larger)
        assert results(done) == [DONE]
        assert done.summary == "found 1 of 1 containers as they should be; resized memory of a, resized cpu of a"
        assert host.running() == before
        assert limits(host, "a") == (20_000, 128)
        assert done.actuated == {before["a"]: larger.spec.containers[0].resources}
        assert host.reasons() == []
        again = await host.sync(larger, actuated=done.actuated)
        assert (again.changed, again.results) == (False, ())

    on_host(tmp_path, scenario)


def test_less_comes_before_more_and_memory_before_cpu(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        delegated(host)
        await host.sync(sized_pod(("100m", "64Mi"), ("100m", "64Mi"), ("100m", "64Mi")))
        done = await host.sync(sized_pod(("200m", "128Mi"), ("100m", "32Mi"), ("50m", "16Mi")))
        assert done.summary.partition("; ")[2] == (
            "resized memory of c, resized memory of b, resized memory of a, resized cpu of c, resized cpu of a"
        )

    on_host(tmp_path, scenario)


def test_memory_that_is_in_use_is_not_taken_away(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        delegated(host)
        await host.sync(sized_pod(("100m", "64Mi")))
        host.runtime.podman.containers[host.running()["a"]].memory_usage = 40 * MIB
        done = await host.sync(sized_pod(("200m", "32Mi")))
        assert results(done) == [FAILED]
        assert done.results[0].message == (
            'cannot decrease memory limits: attempting to set container "a" memory limit (33554432) '
            "below current usage (41943040)"
        )
        assert limits(host, "a") == (10_000, 64), "nothing is done by halves"
        assert done.actuated == {}
        host.runtime.podman.containers[host.running()["a"]].memory_usage = None
        unknown = await host.sync(sized_pod(("200m", "32Mi")))
        assert unknown.results[0].message == 'cannot decrease memory limits: missing container "a" memory usage'

    on_host(tmp_path, scenario)


@pytest.mark.parametrize("flavour", list(Flavour))
def test_a_call_that_fails_or_is_lost_is_made_good_by_the_next_sync(tmp_path: Path, flavour: Flavour) -> None:
    async def scenario(host: FakeHost) -> None:
        delegated(host)
        await host.sync(sized_pod(("100m", "64Mi")))
        before, larger = host.running(), sized_pod(("200m", "128Mi"))
        host.runtime.fail(2, flavour, "update_container")
        done = await host.sync(larger)
        assert done.effects.unsure
        assert limits(host, "a")[1] == 128
        (given,) = done.actuated.values()
        assert given.limits == {"cpu": "100m", "memory": "128Mi"}, "what has been answered is known"
        host.next_worker()
        delegated(host)
        again = await host.sync(larger, actuated=done.actuated)
        assert results(again) == [DONE]
        assert (host.running(), limits(host, "a")) == (before, (20_000, 128))

    on_host(tmp_path, scenario)


def test_what_was_given_without_a_word_is_found_out(tmp_path: Path) -> None:
    """A worker died after its call, and then the edit was taken back."""

    async def scenario(host: FakeHost) -> None:
        delegated(host)
        wanted = sized_pod(("100m", "64Mi"))
        await host.sync(wanted)
        host.runtime.podman.update_container(host.running()["a"], {"memory": {"limit": 128 * MIB}})
        unasked = await host.sync(wanted)
        assert (unasked.changed, limits(host, "a")) == (False, (10_000, 128))
        done = await host.sync(wanted, unsure_resources=True)
        assert done.summary.endswith("restored limits of a")
        assert limits(host, "a") == (10_000, 64)
        assert not (await host.sync(wanted, unsure_resources=True)).changed

    on_host(tmp_path, scenario)


def test_a_container_that_asks_for_it_is_made_anew(tmp_path: Path) -> None:
    policy = (ContainerResizePolicy(resource_name="memory", restart_policy="RestartContainer"),)

    async def scenario(host: FakeHost) -> None:
        delegated(host)
        await host.sync(pod(sized("a", "100m", "64Mi", resize_policy=policy), sized("b", "100m", "64Mi")))
        before = host.running()
        done = await host.sync(pod(sized("a", "100m", "128Mi", resize_policy=policy), sized("b", "200m", "64Mi")))
        assert results(done) == [("KillContainer", "a", ""), DONE, ("StartContainer", "a", "")]
        assert [e.message for e in host.events if e.reason == "Killing"] == ["Container a resize requires restart"]
        assert host.running()["a"] != before["a"]
        assert host.running()["b"] == before["b"]
        assert (limits(host, "a"), limits(host, "b")) == ((10_000, 128), (20_000, 64))

    on_host(tmp_path, scenario)


def test_without_controllers_containers_are_made_anew(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        await host.sync(sized_pod(("100m", "64Mi"), ("100m", "64Mi")))
        before = host.running()
        done = await host.sync(sized_pod(("200m", "64Mi"), ("100m", "64Mi")))
        assert [name for name in "ab" if host.running()[name] != before[name]] == ["a"]
        assert ("update_container" in host.runtime.calls) is False
        assert done.actuated == {}

    on_host(tmp_path, scenario)


def test_another_class_of_quality_needs_other_containers(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        delegated(host)
        await host.sync(pod("a"))
        before = host.running()
        await host.sync(pod(sized("a", "100m", "64Mi")))
        assert host.running()["a"] != before["a"]

    on_host(tmp_path, scenario)


def test_an_init_container_that_runs_is_resized_too(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        delegated(host)
        await host.sync(pod("b", init_containers=(sized("a", "100m", "64Mi"),)))
        before = host.running()
        done = await host.sync(pod("b", init_containers=(sized("a", "200m", "64Mi"),)))
        assert results(done) == [DONE]
        assert (host.running(), limits(host, "a")) == (before, (20_000, 64))

    on_host(tmp_path, scenario)


def test_a_crash_after_a_resize_starts_with_the_new_resources_and_its_back_off(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        delegated(host)
        await host.sync(sized_pod(("100m", "64Mi")))
        larger = sized_pod(("200m", "128Mi"))
        given = (await host.sync(larger)).actuated
        host.runtime.podman.exit(host.running()["a"], 1)
        await host.settle(larger, actuated=given)
        assert limits(host, "a") == (20_000, 128)

    on_host(tmp_path, scenario)
