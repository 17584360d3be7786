"""The pod cache: newer-than, global timestamp, orphans."""

from __future__ import annotations

from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, RuntimePodStatus
from supervisor.pods.board_rows import NO_ROW
from supervisor.pods.cache import PodCache
from supervisor.pods.parts import KnownPods


def view(uid: str, at: float, *names: str) -> RuntimePodStatus:
    containers = tuple(
        RuntimeContainerStatus(id=name, name=name, attempt=0, state=ContainerState.RUNNING) for name in names
    )
    return RuntimePodStatus(uid=uid, observed_at=at, containers=containers)


def test_nothing_is_known_before_the_first_relist() -> None:
    assert PodCache(KnownPods()).newer_than("a", 0.0) is None


def test_a_pod_that_a_newer_relist_did_not_contain_is_empty() -> None:
    cache = PodCache(KnownPods())
    cache.relisted(5.0)
    entry = cache.newer_than("a", 4.0)
    assert entry is not None
    assert entry.status.is_empty()
    assert cache.newer_than("a", 5.0) is None, "a view must be strictly newer than the act"


def test_an_older_view_never_replaces_a_newer_one() -> None:
    cache = PodCache(KnownPods())
    assert cache.set(view("a", 10.0, "web"), 0)
    assert not cache.set(view("a", 9.0), 0)
    assert cache.get("a").containers


def test_only_content_counts_as_change() -> None:
    cache = PodCache(KnownPods())
    cache.set(view("a", 1.0, "web"), 0)
    assert not cache.set(view("a", 2.0, "web"), 0)
    assert cache.newer_than("a", 1.5) is not None


def test_what_a_relist_says_nothing_about_was_seen_by_it_unchanged() -> None:
    cache = PodCache(KnownPods())
    cache.set(view("a", 5.0, "web"), 0)
    cache.relisted(7.0)
    cache.relisted(6.0)
    entry = cache.newer_than("a", 6.5)
    assert entry is not None
    assert (entry.observed_at, entry.status.containers[0].name) == (7.0, "web")
    assert cache.newer_than("a", 7.0) is None


def test_a_doubted_view_counts_for_nothing_until_the_next_one() -> None:
    cache = PodCache(KnownPods())
    cache.set(view("a", 5.0, "web"), 0)
    cache.invalidate("a")
    cache.relisted(7.0)
    assert cache.newer_than("a", 1.0) is None, "the relist has told its change before, and that was lost"
    assert cache.get("a").containers, "for people it is the best there is"
    cache.set(view("a", 8.0), 0)
    assert cache.newer_than("a", 1.0) is not None


def test_orphans_are_what_runs_and_nobody_knows() -> None:
    known = KnownPods()
    cache = PodCache(known)
    cache.set(view("a", 1.0, "web"), NO_ROW)
    cache.set(view("b", 1.0), NO_ROW)
    assert (cache.orphans(), sorted(cache.untracked())) == (["a"], ["a", "b"])
    known.track("a")
    assert cache.orphans() == []


def test_a_relist_says_nothing_of_those_that_it_could_not_look_at() -> None:
    cache = PodCache(KnownPods())
    cache.set(view("a", 1.0, "web"), 0)
    cache.relisted(7.0, unseen=["a", "b"])
    assert cache.newer_than("a", 0.5) is None
    assert cache.newer_than("b", 0.5) is None
    assert cache.get("b").observed_at == 0.0
    assert cache.newer_than("c", 0.5) is not None
    cache.set(view("a", 8.0, "web"), 0)
    assert (cache.newer_than("a", 0.5) is not None, set(cache.unseen)) == (True, {"b"})
    cache.relisted(9.0)
    assert cache.newer_than("b", 0.5) is not None
