"""Devices of pods over restarts of the agent: the record, and what runs."""

from __future__ import annotations

from collections.abc import Mapping

from ipc.k8s.api.v1.container import Container, ResourceRequirements
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod, PodSpec
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, RuntimePodStatus
from ipc.k8s.podresources.devices import Device
from supervisor.managers.allocation import AllocationManager
from supervisor.managers.devices import DeviceManager
from supervisor.pods.parts import KnownPods

GPU = "example.com/gpu"


def pod(uid: str, number: int = 1) -> Pod:
    resources = ResourceRequirements(limits={GPU: str(number)} if number else {})
    spec = PodSpec(containers=(Container(name="c", image="x", resources=resources),))
    return Pod(metadata=ObjectMeta(name=uid, uid=uid), spec=spec)


def running(uid: str, *names: str, state: ContainerState = ContainerState.RUNNING) -> RuntimePodStatus:
    made = RuntimeContainerStatus(id=f"{uid}-c", name="c", attempt=0, state=state, devices={GPU: names})
    return RuntimePodStatus(uid=uid, containers=(made,))


class Node:
    """A node with two devices."""

    def __init__(self) -> None:
        self.seen: dict[str, RuntimePodStatus] = {}
        self.pods: dict[str, Pod] = {}
        self.allocations = AllocationManager(KnownPods())
        devices = {GPU: {"g0": Device(), "g1": Device()}}
        self.manager = DeviceManager(devices, self.allocations, lambda: self.seen)

    def admit(self, *pods: Pod) -> list[str]:
        problems = []
        for each in pods:
            problems.append(self.manager.problem(each))
            if not problems[-1]:
                self.pods[each.metadata.uid] = each
                self.manager.allocate(each)
        return problems

    def observe(self, view: RuntimePodStatus) -> None:
        self.seen[view.uid] = view
        self.manager.observed(self.pods.get(view.uid), view, self.pods.get)

    def given(self) -> Mapping[str, tuple[str, ...]]:
        return {uid: own["c"][GPU] for uid, own in self.allocations.all_devices()}


def test_the_third_pod_is_refused_until_one_has_ended() -> None:
    node = Node()
    words = f"Allocate failed due to requested number of devices unavailable for {GPU}. Requested: 1, Available: 0"
    assert node.admit(pod("a"), pod("b"), pod("c")) == ["", "", f"{words}, which is unexpected"]
    node.manager.release("a")
    assert node.admit(pod("c")) == [""]
    assert node.given() == {"b": ("g1",), "c": ("g0",)}


def test_a_pod_waits_for_one_that_goes_down_and_the_next_does_not() -> None:
    node = Node()
    node.admit(pod("a"), pod("b"))
    node.observe(running("a", "g0"))
    assert node.manager.problem(pod("c"), lambda: ("a",)) == ""
    node.manager.allocate(pod("c"))
    assert node.manager.is_waiting("c")
    assert node.manager.problem(pod("d"), lambda: ("a",)) != ""
    node.observe(running("a", "g0", state=ContainerState.EXITED))
    assert node.manager.release("a") == ("c",)
    assert not node.manager.is_waiting("c")
    assert node.given() == {"b": ("g1",), "c": ("g0",)}


def test_another_agent_goes_on_with_the_record() -> None:
    before, after = Node(), Node()
    before.admit(pod("a"), pod("b"))
    before.manager.release("a")
    after.allocations.restore(before.allocations.all_resources())
    assert after.admit(pod("new"), pod("b")) == ["", ""]
    assert after.given() == {"b": ("g1",), "new": ("g0",)}


def test_without_the_record_what_runs_is_believed() -> None:
    """Both were drawn the other way round; whichever is seen first, both keep what they run with."""
    for order in (("a", "b"), ("b", "a")):
        node = Node()
        node.admit(pod("a"), pod("b"))
        views = {"a": running("a", "g1"), "b": running("b", "g0")}
        for uid in order:
            node.observe(views[uid])
        assert node.given() == {"a": ("g1",), "b": ("g0",)}


def test_a_pod_that_does_not_run_makes_way() -> None:
    node = Node()
    node.admit(pod("new"), pod("a"))
    node.observe(running("a", "g0"))
    assert node.given() == {"new": ("g1",), "a": ("g0",)}


def test_what_has_ended_says_nothing() -> None:
    node = Node()
    node.admit(pod("a"))
    node.observe(running("a", "g1", state=ContainerState.EXITED))
    assert node.given() == {"a": ("g0",)}


def test_an_edit_waits_for_nothing_that_runs() -> None:
    """The old container has one device, the next one has two; one that asks for none has none."""
    node = Node()
    node.admit(pod("a"))
    node.observe(running("a", "g0"))
    node.admit(pod("a", 2))
    node.observe(running("a", "g0"))
    assert node.given() == {"a": ("g0", "g1")}
    node.admit(pod("a", 0))
    assert node.given() == {}
    assert node.admit(pod("b", 2))[0].endswith("Requested: 2, Available: 1, which is unexpected"), (
        "a still runs with it"
    )


def test_a_container_that_nobody_wants_keeps_its_device_while_it_runs() -> None:
    node = Node()
    node.observe(running("orphan", "g0"))
    node.admit(pod("a"))
    assert node.given() == {"a": ("g1",)}


def test_a_device_that_comes_is_given_out_and_one_that_goes_stays_with_who_has_it() -> None:
    node = Node()
    node.manager.recount({GPU: {"g0": Device(), "g1": Device(problem="gone")}})
    words = f"Allocate failed due to requested number of devices unavailable for {GPU}. Requested: 1, Available: 0"
    assert node.admit(pod("a"), pod("b")) == ["", f"{words}, which is unexpected"]
    node.manager.recount({GPU: {"g0": Device(problem="gone"), "g1": Device()}})
    assert node.admit(pod("b")) == [""]
    assert node.given() == {"a": ("g0",), "b": ("g1",)}
    assert node.manager.known(node.pods["a"]) == {GPU: {"g0": Device(problem="gone")}}
    assert node.manager.known(pod("none", 0)) == {}
    assert node.manager.known(None) == {}


def test_a_pod_that_waits_for_a_device_takes_one_that_comes() -> None:
    node = Node()
    node.manager.recount({GPU: {"g0": Device(), "g1": Device(problem="gone")}})
    node.admit(pod("a"))
    node.observe(running("a", "g0"))
    node.manager.allocate(pod("c"))
    assert node.manager.is_waiting("c")
    assert node.manager.recount({GPU: {"g0": Device(), "g1": Device()}}) == ("c",)
    assert node.given() == {"a": ("g0",), "c": ("g1",)}
