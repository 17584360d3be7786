"""The node runs short: conditions, what is cleaned up, who goes and when, who is let in."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ipc.k8s.api.v1.container import ResourceRequirements
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.eviction.observations import SignalObservation
from ipc.k8s.eviction.signals import Signal
from ipc.k8s.eviction.usage import ContainerUsage, DiskUsage, PodUsage
from ipc.k8s.kubecontainer.pod_failure import PodFailure
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimePodStatus
from ipc.link.messages.node_worker import ImagesCollected, NodeObserved
from ipc.link.messages.pod_worker import SyncEffects, WorkType
from supervisor.managers.image_gc import IMAGE_GC_PERIOD_S
from supervisor.protocol.events import EvictionsRestored, NodeShutdownBegan, NodeShutdownCalledOff, ShutdownCause
from tests.support.dialogue import Talk, absent, exited, pod, running

MIB = 1024 * 1024
GIB = 1024 * MIB


class Node:
    """A conversation about a node with some pods that run. Its thresholds are 1 GiB of memory and a tenth of its disk,
    unless others are given."""

    def __init__(self, *pods: Pod | str, **settings: Any) -> None:
        hard = {"eviction_hard": {"memory.available": "1Gi", "nodefs.available": "10%"}}
        self.talk = Talk(node_name="n", **{**hard, **settings})
        self.talk.start(*pods)
        self.talk.tick()

    def memory(self, available: int, **answer: Any) -> list[str]:
        return self.tell(Signal.MEMORY_AVAILABLE, available, 4 * GIB, **answer)

    def disk(self, available: int, **answer: Any) -> list[str]:
        return self.tell(Signal.NODEFS_AVAILABLE, available, 100 * GIB, **answer)

    def tell(self, signal: Signal, available: int, capacity: int, **answer: Any) -> list[str]:
        """The node worker has observed that. ``pods``: name -> use of the resource, when that was asked for."""
        observed = SignalObservation(available, capacity, 1_800_000_000.0 + self.talk.mono)
        pods = answer.get("pods")
        return self.talk.say(
            NodeObserved(
                signals={signal: observed},
                answers=self.talk.asked if pods is not None else 0,
                pods=tuple(usage(name, used) for name, used in pods.items()) if pods is not None else None,
            )
        )

    def images_collected(self) -> list[str]:
        """The node worker has removed unused images."""
        return self.talk.say(ImagesCollected(number=self.talk.image_requests[-1].number))

    def end(self, uid: str) -> list[str]:
        """The pod that was evicted goes down."""
        self.talk.see(running(uid))
        self.talk.done(uid)
        self.talk.see(exited(uid, 137))
        self.talk.done(uid, changed=True)
        return self.talk.see(RuntimePodStatus(uid=uid, name=uid, namespace="default"))

    @property
    def events(self) -> list[str]:
        return self.talk.events

    @property
    def conditions(self) -> list[str]:
        """Conditions that are True."""
        return [c.type for c in self.talk.loop.node_conditions if c.status == "True"]


def usage(name: str, used: int) -> PodUsage:
    main = ContainerUsage(name="main", memory=used, rootfs=DiskUsage(used, 1), logs=DiskUsage(0, 1))
    return PodUsage(uid=name, memory=used, processes=used, containers=(main,))


def asking(uid: str, memory: str = "", *, priority: int = 0) -> Pod:
    made = pod(uid)
    requests = ResourceRequirements(requests={"memory": memory} if memory else {})
    main = msgspec.structs.replace(made.spec.containers[0], resources=requests)
    return msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, containers=(main,), priority=priority))


def test_a_threshold_that_is_met_evicts_the_pod_that_uses_most() -> None:
    node = Node("a", "b", "c")
    assert node.conditions == []
    assert node.memory(512 * MIB) == ["observe node memory"]
    assert node.conditions == ["MemoryPressure"]
    assert node.events == ["NodeHasInsufficientMemory n", "EvictionThresholdMet n"]
    assert node.memory(512 * MIB, pods={"a": 10 * MIB, "b": GIB, "c": 20 * MIB}) == ["observe b"]
    assert node.events[2:] == ["Evicted b"]
    assert node.end("b") == ["observe node"], "at once, when nothing is left of it"
    status = node.talk.told["b"].status
    assert (status.phase, status.reason) == ("Failed", "Evicted")
    assert status.message == (
        "The node was low on resource: memory. Threshold quantity: 1Gi, available: 512Mi. "
        "Container main was using 1Gi, request is 0, has larger consumption of memory. "
    )
    [target] = [c for c in status.conditions if c.type == "DisruptionTarget"]
    assert (target.status, target.reason, target.message) == ("True", "TerminationByKubelet", status.message)
    assert node.memory(2 * GIB) == []
    assert [node.talk.phase(uid) for uid in ("a", "c")] == ["Running", "Running"]
    note = next(e for e in node.talk.loop.durable.events.events() if e.reason == "Evicted").metadata.annotations
    assert note["offending_containers"] == "main"
    assert note["starved_resource"] == "memory"


def test_one_at_a_time() -> None:
    node = Node("a", "b")
    node.memory(1)
    node.memory(1, pods={"a": GIB, "b": 2 * GIB})
    for _ in range(3):
        assert node.memory(1) == [], "it is going down"
        node.talk.tick(after_s=8.0)
    assert node.events.count("Evicted b") == 1
    assert node.events.count("Evicted a") == 0
    node.end("b")
    assert node.memory(1) == ["observe node memory"]
    assert node.memory(1, pods={"a": GIB}) == ["observe a"]


def test_one_that_does_not_go_is_waited_for_no_longer_than_thirty_seconds() -> None:
    node = Node("a", "b")
    node.memory(1)
    node.memory(1, pods={"a": GIB, "b": 2 * GIB})
    assert "observe node" not in node.talk.tick(after_s=25.0)
    assert "observe node" in node.talk.tick(after_s=10.0)


def test_a_critical_pod_stays_and_the_lowest_priority_goes_among_those_beyond_their_request() -> None:
    node = Node(
        asking("critical", priority=2_000_000_000), asking("low", "2Gi", priority=-5), asking("high", priority=5)
    )
    node.memory(1)
    node.memory(1, pods={"critical": 3 * GIB, "low": GIB, "high": MIB})
    assert node.events[-1] == "Evicted high", "low is within its request"


def test_only_critical_pods() -> None:
    node = Node(asking("critical", priority=2_000_000_000))
    node.memory(1)
    assert node.memory(1, pods={"critical": 3 * GIB}) == []
    assert "Evicted critical" not in node.events
    assert node.memory(1) == ["observe node memory"], "the next round looks again"


def test_the_image_of_a_pod_that_was_evicted_is_not_wanted_any_more() -> None:
    """Else the image stays as long as the manifest does, and the next pod is evicted for it."""
    node = Node(pod("a", image="v1"), pod("b", image="v2"))
    node.images_collected()
    node.disk(5 * GIB)
    assert node.talk.image_requests[-1].wanted == {"v1": "default/a", "v2": "default/b"}
    node.images_collected()
    node.disk(5 * GIB, pods={"a": MIB, "b": GIB})
    assert node.events[-1] == "Evicted b"
    node.end("b")
    node.talk.tick(IMAGE_GC_PERIOD_S)
    assert node.talk.image_requests[-1].wanted == {"v1": "default/a"}


def test_what_is_unknown_evicts_nobody() -> None:
    node = Node("a")
    node.memory(1)
    number = node.talk.asked
    observed = {Signal.MEMORY_AVAILABLE: SignalObservation(1, GIB, 1.0)}
    assert node.talk.say(NodeObserved(signals=observed, answers=number)) == []
    assert "Evicted a" not in node.events


def test_an_answer_that_does_not_come_is_asked_for_again() -> None:
    node = Node("a")
    assert node.memory(1) == ["observe node memory"]
    assert node.memory(1) == []
    node.talk.tick(after_s=60.0)
    assert node.memory(1) == ["observe node memory"]


def test_enough_after_all_evicts_nobody() -> None:
    node = Node("a")
    node.memory(1)
    assert node.memory(2 * GIB, pods={"a": GIB}) == []
    assert "Evicted a" not in node.events


def test_nobody_is_evicted_before_it_is_known_what_is_wanted_and_what_runs() -> None:
    talk = Talk(node_name="n", eviction_hard={"memory.available": "1Gi"})
    observed = {Signal.MEMORY_AVAILABLE: SignalObservation(1, GIB, 1.0)}
    assert talk.say(NodeObserved(signals=observed)) == []
    assert talk.events == ["NodeHasInsufficientMemory n"]


def test_a_pod_that_came_to_a_shutdown_which_is_called_off_does_not_begin_under_pressure() -> None:
    """All are taken in while it is not known what runs: an agent before this one was killed in the midst of it."""
    talk = Talk(node_name="n", eviction_hard={"memory.available": "1Gi"})
    talk.say(NodeShutdownBegan(ShutdownCause.DRAIN))
    observed = {Signal.MEMORY_AVAILABLE: SignalObservation(1, GIB, 1.0)}
    talk.say(NodeObserved(signals=observed))
    talk.see(running("there"))
    talk.add("there", "new")
    assert "Evicted new" not in talk.events
    assert talk.say(NodeShutdownCalledOff(ShutdownCause.DRAIN)) == ["shutdown called off", "sync there"]
    assert "Evicted new" in talk.events
    talk.see(absent("new"))
    assert talk.syncs["new"].kind is WorkType.TERMINATED


def test_a_condition_stays_for_the_transition_period_and_the_one_that_comes_is_dated() -> None:
    node = Node("a", eviction_pressure_transition_period_s=60.0)
    node.memory(512 * MIB)
    node.memory(2 * GIB)
    node.talk.tick(after_s=50.0)
    assert node.conditions == ["MemoryPressure"]
    node.talk.tick(after_s=12.0)
    assert node.conditions == []
    assert node.events[-1] == "NodeHasSufficientMemory n"
    condition = next(c for c in node.talk.loop.node_conditions if c.type == "MemoryPressure")
    assert condition.reason == "KubeletHasSufficientMemory"


def test_a_soft_threshold_waits_and_gives_time() -> None:
    node = Node(
        pod("a", grace_s=30),
        eviction_hard={},
        eviction_soft={"memory.available": "1Gi"},
        eviction_soft_grace_period={"memory.available": "1m"},
        eviction_max_pod_grace_period=20,
    )
    assert node.memory(1) == []
    assert node.conditions == ["MemoryPressure"]
    node.talk.tick(after_s=50.0)
    assert node.memory(1) == []
    node.talk.tick(after_s=10.0)
    assert node.memory(1) == ["observe node memory"]
    node.memory(1, pods={"a": GIB})
    node.talk.see(running("a"))
    assert node.talk.syncs["a"].grace_period_s == 20


def test_what_is_reclaimed_at_least() -> None:
    node = Node("a", "b", eviction_minimum_reclaim={"memory.available": "1Gi"})
    node.memory(512 * MIB)
    node.memory(512 * MIB, pods={"a": GIB, "b": 1})
    node.end("a")
    assert node.memory(GIB + 1) == ["observe node memory"], "above the threshold, and not far enough"
    node.memory(2 * GIB, pods={"b": 1})
    assert "Evicted b" not in node.events


# --- disks ---


def with_dead(uid: str) -> RuntimePodStatus:
    """Observation of a pod that runs in its second attempt; the first has left something."""
    found = running(uid)
    [main] = found.containers
    dead = msgspec.structs.replace(main, id=f"old-{uid}", state=ContainerState.EXITED)
    newer = msgspec.structs.replace(main, attempt=1)
    return msgspec.structs.replace(found, containers=(newer, dead))


def test_dead_containers_go_before_a_pod_does() -> None:
    node = Node("a", "b")
    assert node.talk.relist(with_dead("a")) == ["sync a"]
    node.talk.done("a")
    assert node.disk(5 * GIB) == ["observe a"]
    assert node.talk.see(with_dead("a")) == ["sync a"]
    assert node.talk.syncs["a"].dead_containers == ("old-a",)
    node.talk.done("a", changed=True, effects=SyncEffects(removed=("old-a",)))
    assert "observe node ephemeral-storage" not in node.images_collected()
    assert "observe node ephemeral-storage" in node.talk.see(running("a"))
    assert node.disk(50 * GIB, pods={"a": GIB, "b": 1}) == []
    assert not [event for event in node.events if event.startswith("Evicted")]


def test_unused_images_go_before_a_pod_does() -> None:
    node = Node("a")
    assert node.disk(5 * GIB) == []
    assert node.talk.image_requests[-1].all_unused
    assert node.disk(5 * GIB) == [], "they are being removed"
    assert node.images_collected() == ["observe node ephemeral-storage"]
    assert node.disk(50 * GIB, pods={"a": GIB}) == []
    assert "Evicted a" not in node.events


def test_images_are_waited_for_as_long_as_a_call_may_take() -> None:
    node = Node("a")
    node.disk(5 * GIB)
    assert "observe node ephemeral-storage" not in node.talk.tick(after_s=100.0), "a pull holds the storage"
    assert "observe node ephemeral-storage" in node.talk.tick(after_s=20.0)
    assert node.images_collected() == []
    node.disk(5 * GIB, pods={"a": GIB})
    assert node.events[-1] == "Evicted a"


def test_memory_needs_no_images_removed() -> None:
    node = Node("a")
    assert node.memory(1) == ["observe node memory"]


def test_unused_images_go_first_also_when_the_disk_becomes_short_while_pods_are_measured_for_memory() -> None:
    node = Node("a")
    assert node.memory(1) == ["observe node memory"]
    assert node.disk(5 * GIB, pods={"a": GIB}) == []
    assert node.talk.image_requests[-1].all_unused
    assert "Evicted a" not in node.events
    assert node.images_collected() == ["observe node ephemeral-storage"]
    node.disk(5 * GIB, pods={"a": GIB})
    assert node.events[-1] == "Evicted a"


def test_the_pod_with_most_on_the_disk_goes() -> None:
    node = Node("a", "b")
    node.disk(5 * GIB)
    assert node.conditions == ["DiskPressure"]
    assert node.images_collected() == ["observe node ephemeral-storage"]
    node.disk(5 * GIB, pods={"a": 1 * GIB, "b": 2 * GIB})
    assert node.events[-1] == "Evicted b"


# --- admission ---


@pytest.mark.parametrize(
    ("signal", "wanted", "phase"),
    [
        (Signal.MEMORY_AVAILABLE, asking("new"), "Failed"),
        (Signal.MEMORY_AVAILABLE, asking("new", "1Mi"), "Pending"),
        (Signal.MEMORY_AVAILABLE, asking("new", priority=2_000_000_000), "Pending"),
        (Signal.NODEFS_AVAILABLE, asking("new", "1Mi"), "Failed"),
        (Signal.NODEFS_AVAILABLE, asking("new", priority=2_000_000_000), "Pending"),
    ],
)
def test_who_may_begin_under_pressure(signal: Signal, wanted: Pod, phase: str) -> None:
    node = Node("a")
    node.tell(signal, 1, 100 * GIB)
    node.talk.add(wanted)
    node.talk.relist()
    assert node.talk.phase("new") == phase
    if phase == "Failed":
        status = node.talk.told["new"].status
        assert status.reason == "Evicted"
        assert status.message.startswith("Pod was rejected: The node had condition: [")


def test_a_pod_that_runs_may_be_changed() -> None:
    node = Node("a")
    node.memory(512 * MIB)
    node.talk.update(pod("a", image="v2"))
    assert node.talk.phase("a") == "Running"
    assert not node.events[2:]


def test_a_pod_that_runs_when_it_is_stated_was_there_before_the_pressure() -> None:
    node = Node("a")
    node.disk(GIB)
    node.talk.relist(running("b"))
    node.talk.add("b")
    assert node.talk.phase("b") == "Running"


def test_a_pod_that_an_agent_before_has_evicted_goes_first() -> None:
    node = Node()
    node.talk.say(EvictionsRestored({"gone": PodFailure(reason="Evicted", message="too much")}))
    node.talk.add("gone", "innocent")
    node.talk.relist()
    node.talk.see(running("gone"))
    node.talk.see(running("innocent"))
    assert node.disk(GIB) == [], "what it takes will be free in a moment"
    node.talk.done("gone")
    node.end("gone")
    assert node.disk(GIB) == [], "file systems take a moment"
    node.talk.tick(after_s=10.0)
    assert node.disk(50 * GIB) == []
    assert node.events == ["NodeHasDiskPressure n"]


def test_nobody_else_goes_for_a_disk_within_ten_seconds() -> None:
    node = Node("a", "b")
    node.disk(GIB)
    node.images_collected()
    node.disk(GIB, pods={"a": GIB, "b": 2 * GIB})
    assert node.end("b") == []
    assert node.disk(GIB) == []
    node.talk.tick(after_s=10.0)
    node.disk(GIB)
    node.images_collected()
    assert node.disk(GIB, pods={"a": GIB}) == ["observe a"]


def test_one_that_an_agent_before_has_evicted_is_waited_for_no_longer_than_others() -> None:
    node = Node()
    node.talk.say(EvictionsRestored({"gone": PodFailure(reason="Evicted", message="too much")}))
    node.talk.add("gone", "innocent")
    node.talk.relist()
    node.talk.see(running("gone"))
    node.talk.see(running("innocent"))
    node.memory(1)
    assert "observe node" in node.talk.tick(after_s=35.0)
    assert node.memory(1) == ["observe node memory"]


def test_off_means_off() -> None:
    node = Node("a", eviction_hard={})
    assert node.memory(0) == []
    assert node.conditions == []
    assert node.events == []
