"""Resizes in the sync loop: an edit of resources, what it is allowed, when it is tried again, and what is told."""

from __future__ import annotations

import msgspec
import pytest

from ipc.k8s.api.v1.container import ResourceRequirements
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.status import ContainerStatus, PodCondition
from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from ipc.k8s.podresources.allocation import allocation_from_pod
from ipc.k8s.podresources.node_resources import NodeResources
from ipc.link.messages.pod_worker import SyncAction, SyncResult
from ipc.link.messages.sync_error import SyncError
from ipc.link.metrics import kubelet as metrics
from ipc.link.shm.metric_cells import METERS
from supervisor.protocol.commands import NOTHING, RestsOn
from supervisor.protocol.events import ResourcesRestored
from supervisor.protocol.source_updates import PodOperation
from tests.support.dialogue import POD_SLOT, Talk, pod, running

NODE = NodeResources(allocatable={"cpu": "4", "memory": "4Gi"}, controllers=frozenset({"cpu", "memory"}))
RESIZED = SyncResult(action=SyncAction.RESIZE_POD, target="default/a")
TOO_LOW = "cannot decrease memory limits"
FAILED = msgspec.structs.replace(RESIZED, error=SyncError.RESIZE_POD, message=TOO_LOW)


def requests(cpu: str) -> ResourceRequirements:
    return ResourceRequirements(requests={"cpu": cpu})


def asking(uid: str, cpu: str, generation: int = 1, image: str = "v1") -> Pod:
    plain = pod(uid, image=image)
    (main,) = plain.spec.containers
    spec = msgspec.structs.replace(plain.spec, containers=(msgspec.structs.replace(main, resources=requests(cpu)),))
    return msgspec.structs.replace(
        plain, spec=spec, metadata=msgspec.structs.replace(plain.metadata, generation=generation)
    )


def runs(uid: str, cpu: str, id: str = "") -> RuntimePodStatus:
    """As `asking` describes it, made with that."""
    seen = running(uid)
    (main,) = seen.containers
    return msgspec.structs.replace(
        seen,
        containers=(msgspec.structs.replace(main, resources=requests(cpu), id=id or main.id),),
        sandboxes=tuple(msgspec.structs.replace(s, resources=ResourceRequirements()) for s in seen.sandboxes),
    )


def started(*cpus: tuple[str, str]) -> Talk:
    """Talk in which these pods run, each with its cpu."""
    talk = Talk(node=NODE)
    talk.ready()
    talk.add(*(asking(uid, cpu) for uid, cpu in cpus))
    talk.relist()
    for row, (uid, cpu) in enumerate(cpus):
        talk.done(uid, changed=True)
        talk.fall_due(uid)
        talk.see(runs(uid, cpu), row=row)
        talk.done(uid)
    talk.events.clear()
    return talk


def condition(talk: Talk, uid: str) -> PodCondition | None:
    conditions = talk.told[uid].status.conditions
    return next((each for each in conditions if each.type.startswith("PodResize")), None)


def status(talk: Talk, uid: str) -> ContainerStatus:
    return talk.told[uid].status.container_statuses[0]


def sent(talk: Talk, uid: str) -> ResourceRequirements:
    wanted = talk.syncs[uid].pod
    assert wanted is not None
    return wanted.spec.containers[0].resources


def test_an_edit_of_resources_is_a_resize() -> None:
    talk = started(("a", "1"))
    assert talk.update(asking("a", "2", 2)) == ["observe a"]
    assert talk.events == ["ResizeStarted a"]
    told = condition(talk, "a")
    assert told is not None
    assert (told.type, told.status, told.reason, told.observed_generation) == ("PodResizeInProgress", "True", "", 2)
    assert talk.see(runs("a", "1")) == ["sync a"]
    assert (sent(talk, "a"), talk.syncs["a"].actuated) == (requests("2"), {})
    allocated = talk.loop.durable.allocations.urgent_version
    assert talk.rests_on["a"] == RestsOn(allocations=allocated), "who forgets it would give back the old ones"
    assert (status(talk, "a").resources, status(talk, "a").allocated_resources) == (requests("1"), {"cpu": "2"})
    talk.done("a", changed=True, results=(RESIZED,), actuated={"c-a": requests("2")})
    assert talk.events == ["ResizeStarted a", "ResizeCompleted a"]
    assert condition(talk, "a") is None
    assert status(talk, "a").resources == requests("2")
    talk.update(asking("a", "2", 3, image="v2"))
    talk.see(runs("a", "1"))
    assert talk.rests_on["a"] == NOTHING
    assert talk.syncs["a"].actuated == {"c-a": requests("2")}, "its label says with what it was made"


def test_another_edit_goes_with_it() -> None:
    talk = started(("a", "1"))
    talk.update(asking("a", "2", 2, image="v2"))
    talk.see(runs("a", "1"))
    wanted = talk.syncs["a"].pod
    assert wanted == asking("a", "2", 2, image="v2")


def test_one_that_never_fits_changes_nothing_but_the_rest_of_the_edit() -> None:
    talk = started(("a", "1"))
    talk.update(asking("a", "5", 2, image="v2"))
    assert talk.events == ["ResizeInfeasible a"]
    told = condition(talk, "a")
    assert told is not None
    assert (told.type, told.reason) == ("PodResizePending", "Infeasible")
    assert told.message == "Node didn't have enough capacity: cpu, requested: 5000, capacity: 4000"
    talk.see(runs("a", "1"))
    assert talk.syncs["a"].pod == asking("a", "1", 2, image="v2")
    assert talk.told["a"].pod == asking("a", "5", 2, image="v2"), "that is what its source states"
    assert talk.told["a"].allocated == allocation_from_pod(asking("a", "1"))
    talk.tick(after_s=1000.0)
    assert talk.events == ["ResizeInfeasible a"], "only another edit has it tried again"
    talk.update(asking("a", "1", 3, image="v2"))
    assert condition(talk, "a") is None


def test_one_for_which_there_is_no_room_is_tried_when_a_pod_has_gone() -> None:
    talk = started(("a", "1"), ("b", "2"))
    talk.update(asking("a", "3", 2))
    assert talk.events == ["ResizeDeferred a"]
    told = condition(talk, "a")
    assert told is not None
    assert told.message == "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000"
    assert talk.told["a"].allocated == allocation_from_pod(asking("a", "1"))
    talk.remove("b")
    talk.see(RuntimePodStatus(uid="b"), row=1)
    talk.done("b", changed=True)
    talk.see(RuntimePodStatus(uid="b"), row=1)
    talk.tick()
    assert talk.events[-1] == "ResizeStarted a"
    assert talk.told["a"].allocated is None, "it has what it asks for"
    told = condition(talk, "a")
    assert told is not None
    assert told.type == "PodResizeInProgress"


def test_less_makes_room_for_more_at_once() -> None:
    talk = started(("a", "1"), ("b", "3"))
    talk.update(asking("a", "2", 2))
    assert talk.events == ["ResizeDeferred a"]
    talk.update(asking("b", "2", 2))
    assert talk.events == ["ResizeDeferred a", "ResizeStarted b", "ResizeStarted a"]


def test_it_is_tried_every_three_minutes() -> None:
    """And nothing is told twice."""
    talk = started(("a", "1"), ("b", "2"))
    talk.update(asking("a", "3", 2))
    before = talk.told["a"].status
    talk.tick(after_s=181.0)
    assert talk.events == ["ResizeDeferred a"]
    assert talk.told["a"].status == before


def test_what_is_pending_counts_as_it_was() -> None:
    """Allocated never above allocatable: neither by what waits, nor by what was given to two."""
    talk = started(("a", "2"), ("b", "1"))
    talk.update(asking("a", "4", 2))
    talk.update(asking("b", "2", 2))
    assert talk.events == ["ResizeDeferred a", "ResizeStarted b"]
    talk.add(asking("c", "1"))
    assert talk.events[-1] == "OutOfcpu c"


def test_an_error_is_told_once_and_ends_with_the_try_that_succeeds() -> None:
    talk = started(("a", "2"))
    talk.update(asking("a", "1", 2))
    for _ in range(2):
        talk.see(runs("a", "2"))
        talk.done("a", results=(FAILED,))
        talk.tick(after_s=20.0)
    assert talk.events == ["ResizeStarted a", "ResizeError a"]
    told = condition(talk, "a")
    assert told is not None
    assert (told.reason, told.message, told.observed_generation) == ("Error", TOO_LOW, 2)
    talk.see(runs("a", "2"))
    talk.done("a", changed=True, results=(RESIZED,), actuated={"c-a": requests("1")})
    assert talk.events == ["ResizeStarted a", "ResizeError a", "ResizeCompleted a"]
    assert condition(talk, "a") is None


def test_a_restart_is_done_when_the_other_container_runs() -> None:
    talk = started(("a", "1"))
    talk.update(asking("a", "2", 2))
    talk.see(runs("a", "1"))
    talk.see(RuntimePodStatus(uid="a"))
    assert talk.events == ["ResizeStarted a"], "between two containers nothing is done"
    talk.done("a", changed=True, results=(RESIZED,))
    talk.see(runs("a", "2", id="c2"))
    talk.done("a")
    assert talk.events[-1] == "ResizeCompleted a"


def test_a_worker_that_dies_leaves_a_doubt() -> None:
    talk = started(("a", "1"))
    talk.update(asking("a", "2", 2))
    talk.see(runs("a", "1"))
    assert not talk.syncs["a"].unsure_resources
    talk.down(POD_SLOT)
    talk.up(POD_SLOT, 2)
    talk.see(runs("a", "1"))
    assert talk.syncs["a"].unsure_resources
    talk.done("a", changed=True, results=(RESIZED,), actuated={"c-a": requests("2")})
    talk.update(asking("a", "2", 3, image="v2"))
    talk.see(runs("a", "1"))
    assert not talk.syncs["a"].unsure_resources


def restarted(before: Talk) -> Talk:
    """The next agent, with what this one has kept."""
    talk = Talk(node=NODE)
    talk.say(ResourcesRestored(dict(before.loop.durable.allocations.all_resources())))
    return talk


def test_the_next_agent_goes_on_with_what_was_allocated() -> None:
    before = started(("a", "1"), ("b", "2"))
    before.update(asking("a", "3", 2))
    talk = restarted(before)
    talk.update(asking("a", "3", 2), asking("b", "2"), op=PodOperation.RESTORE)
    assert condition(talk, "a") == condition(before, "a")
    assert talk.events == []
    talk.ready()
    talk.relist()
    talk.see(runs("a", "1"))
    assert (sent(talk, "a"), talk.syncs["a"].unsure_resources) == (requests("1"), True)
    assert talk.events == [], "it was told by the one before"


def test_an_edit_while_there_was_no_agent_is_a_resize_too() -> None:
    before = started(("a", "1"))
    talk = restarted(before)
    talk.update(asking("a", "2", 2), op=PodOperation.ADD)
    assert talk.events == [], "not before every source was read"
    talk.ready()
    assert talk.events == ["ResizeStarted a"]


def test_pods_that_no_source_states_are_forgotten() -> None:
    before = started(("a", "1"), ("b", "1"))
    talk = restarted(before)
    talk.add(asking("a", "1"))
    talk.ready()
    assert talk.loop.durable.allocations.all_resources().keys() == {"a"}


def test_a_pod_that_is_gone_leaves_nothing() -> None:
    talk = started(("a", "1"))
    talk.remove("a")
    talk.see(RuntimePodStatus(uid="a"))
    talk.done("a", changed=True)
    talk.see(RuntimePodStatus(uid="a"))
    assert talk.loop.durable.allocations.all_resources() == {}


@pytest.mark.parametrize(("controllers", "words"), [(frozenset({"cpu", "memory"}), 0), (frozenset[str](), 1)])
def test_where_the_host_cannot_it_is_said(controllers: frozenset[str], words: int) -> None:
    talk = Talk(node=msgspec.structs.replace(NODE, controllers=controllers))
    talk.ready()
    talk.add(asking("a", "1"))
    talk.update(asking("a", "2", 2))
    assert talk.events.count("ResizeByRestart a") == words


def test_resizes_are_counted() -> None:
    METERS.detach()
    try:
        talk = started(("a", "1"), ("b", "2"))
        talk.update(asking("a", "3", 2))
        talk.update(asking("b", "1", 2))
        talk.update(asking("b", "9", 3))
        counted = {
            operation: METERS.value(metrics.REQUESTED_RESIZES, "cpu", "requests", operation)
            for operation in ("increase", "decrease", "add", "remove")
        }
        assert counted == {"increase": 2.0, "decrease": 1.0, "add": 0.0, "remove": 0.0}
        assert METERS.value(metrics.DEFERRED_ACCEPTED_RESIZES, "pod_updated") == 1.0
        assert METERS.value(metrics.INFEASIBLE_RESIZES, "insufficient_node_allocatable") == 1.0
    finally:
        METERS.detach()
