"""Garbage of the whole node: who is asked to remove what, and whose directories stay."""

from __future__ import annotations

import msgspec

from ipc.k8s.kubecontainer.hashing import sandbox_hash
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, RuntimePodStatus
from ipc.link.messages.pod_worker import SyncAction, SyncResult, WorkType
from ipc.link.messages.sync_error import SyncError
from supervisor.config.settings import ContainerGarbageCollectionSettings
from supervisor.managers.container_gc import CONTAINER_GC_PERIOD_S
from supervisor.protocol.commands import RestsOn
from tests.support.dialogue import POD_SLOT, WALL, Talk, absent, exited, pod, running


def with_dead(status: RuntimePodStatus, count: int) -> RuntimePodStatus:
    """So many dead predecessors of its container."""
    newest = msgspec.structs.replace(status.containers[0], attempt=count)
    dead = [
        RuntimeContainerStatus(
            id=f"{status.uid}-{n}", name="main", attempt=n, state=ContainerState.EXITED, created_at=WALL
        )
        for n in reversed(range(count))
    ]
    return msgspec.structs.replace(status, containers=(newest, *dead))


def talk(max_containers: int) -> Talk:
    """With no limit but that of the node."""
    policy = ContainerGarbageCollectionSettings(max_containers=max_containers, max_per_pod_container=-1)
    return Talk(container_garbage_collection=policy)


def minute(of: Talk) -> list[str]:
    return of.tick(CONTAINER_GC_PERIOD_S)


def test_what_is_beyond_the_maximum_travels_to_the_pods_workers() -> None:
    t = talk(2)
    t.start("a", "b")
    t.tick()
    t.see(with_dead(running("a"), 3))
    t.done("a")
    t.see(with_dead(running("b"), 1), row=1)
    t.done("b")
    assert minute(t) == ["observe a"]
    assert t.see(with_dead(running("a"), 3)) == ["sync a"]
    assert t.syncs["a"].dead_containers == ("a-1", "a-0")
    assert t.rests_on["a"] == RestsOn(ends=t.loop.durable.ended_containers.version), (
        "who forgets the ends would run them again"
    )
    assert t.syncs["b"].dead_containers == ()
    t.done("a", changed=True)
    t.see(with_dead(running("a"), 1))
    assert not t.syncs["a"].dead_containers, "asked for once"


def test_without_a_maximum_nobody_is_asked() -> None:
    t = talk(-1)
    t.start("a")
    t.tick()
    t.see(with_dead(running("a"), 9))
    t.done("a")
    minute(t)
    assert t.syncs["a"].dead_containers == ()


def ended(t: Talk, uid: str, dead: int) -> None:
    """A pod that restarts nothing has ended, and stays for its logs."""
    t.add(pod(uid, policy="Never"))
    t.relist()
    t.done(uid, changed=True)
    t.see(with_dead(exited(uid), dead))
    t.done(uid, changed=True)
    t.see(with_dead(exited(uid), dead))


def test_what_cannot_be_removed_is_an_event_of_the_node() -> None:
    t = talk(-1)
    t.start("a")
    t.tick()
    t.see(with_dead(running("a"), 2))
    stuck = SyncResult(
        action=SyncAction.REMOVE_CONTAINER, target="main", error=SyncError.REMOVE, message="layer in use"
    )
    gone = SyncResult(action=SyncAction.REMOVE_CONTAINER, target="main")
    t.done("a", results=(gone, stuck), changed=True)
    assert t.events == [f"ContainerGCFailed {t.settings.node_name}"]


def test_a_pod_that_ended_is_served_too_and_ends_again() -> None:
    t = talk(0)
    t.ready()
    ended(t, "job", 2)
    assert t.syncs["job"].kind is WorkType.TERMINATED
    words = t.tick()
    assert words == ["terminated job"]
    assert t.syncs["job"].dead_containers == ("job-1", "job-0"), "not the newest: without it the job would run again"
    assert not t.syncs["job"].remove
    assert t.done("job", changed=True) == ["observe job"]
    assert t.see(exited("job")) == []
    assert t.phase("job") == "Succeeded"
    assert minute(t) == []


def test_an_ended_pod_frees_its_host_port_while_it_is_served() -> None:
    t = talk(0)
    t.ready()
    job = pod("job", policy="Never", host_port=8080)
    seen = with_dead(exited("job"), 2)
    its_own = msgspec.structs.replace(seen.sandboxes[0], hash=sandbox_hash(job))
    seen = msgspec.structs.replace(seen, sandboxes=(its_own,))
    t.add(job)
    t.relist()
    t.done("job", changed=True)
    t.see(seen)
    t.done("job", changed=True)
    t.see(seen)
    assert t.tick() == ["terminated job"]
    t.add(pod("next", host_port=8080))
    assert t.phase("next") == "Pending"


def test_a_pod_that_is_removed_while_it_is_served_goes_whole() -> None:
    t = talk(0)
    t.ready()
    ended(t, "job", 2)
    t.tick()
    t.remove("job")
    assert t.done("job", changed=True) == ["observe job"]
    assert t.see(exited("job")) == ["terminated job"]
    assert t.syncs["job"].remove
    t.done("job", changed=True)
    assert "untrack job" in t.see(absent("job"))


def test_dead_containers_do_not_keep_a_removed_pod_from_going() -> None:
    """Found and not yet sent: its worker is away."""
    t = talk(0)
    t.ready()
    ended(t, "job", 2)
    t.down(POD_SLOT)
    assert t.tick() == []
    t.remove("job")
    assert "terminated job" in t.up(POD_SLOT, 2)
    assert t.syncs["job"].remove
    t.done("job", changed=True)
    assert "untrack job" in t.see(absent("job"))


def test_directories_of_all_pods_that_are_wanted_or_exist_stay() -> None:
    t = talk(-1)
    t.add("a")
    t.tick()
    assert t.collected == [], "not before it is known what is wanted"
    t.ready()
    t.tick()
    assert t.collected == [], "nor before it is known what runs"
    t.relist(running("orphan"))
    t.tick()
    assert t.collected == [("a", "orphan")]
    t.tick()
    assert len(t.collected) == 1, "once a minute"
    t.remove("a")
    t.add("b")
    minute(t)
    assert t.collected[1] == ("a", "b", "orphan"), "as long as anything of it is left"


def test_nothing_is_collected_while_everything_goes() -> None:
    t = talk(0)
    t.start("a")
    t.stop_pods()
    minute(t)
    assert t.collected == []
