"""Views that count: only those that are newer than the last act, and what is asked for while there is none."""

from __future__ import annotations

import pytest

from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus, SandboxState, SandboxStatus
from ipc.link.messages.node_worker import EVERY_REQUEST, Observation
from ipc.link.messages.pod_worker import SyncEffects
from supervisor.pods.observation_requests import ObservationRequests
from supervisor.pods.parts import KnownPods


def seen(at: float, uid: str = "a", answers: int = EVERY_REQUEST) -> Observation:
    status = RuntimePodStatus(uid=uid, observed_at=at)
    return Observation(uid=uid, observed_at=at, changed=True, answers=answers, row=0, status=status)


def asked(requests: ObservationRequests) -> tuple[str, ...]:
    request = requests.take_request()
    return request.uids if request is not None else ()


@pytest.fixture
def known() -> KnownPods:
    made = KnownPods()
    made.track("a")
    return made


@pytest.fixture
def requests(known: KnownPods) -> ObservationRequests:
    """One pod, tracked from the beginning and observed at 1."""
    made = ObservationRequests(known)
    made.track("a", 0.0)
    made.take(seen(1.0))
    return made


def test_a_view_counts_until_the_pod_is_acted_on(requests: ObservationRequests) -> None:
    assert requests.newer("a") is not None
    requests.acted("a", 2.0, with_effect=True)
    assert requests.acted_at("a") == 2.0
    assert requests.newer("a") is None
    assert asked(requests) == ("a",)
    requests.newer("a")
    assert asked(requests) == (), "it was asked for already"
    requests.take(seen(3.0))
    assert requests.newer("a") is not None


def test_a_view_from_before_a_death_does_not_count(requests: ObservationRequests) -> None:
    requests.lost("a", 2.0)
    requests.accept_older("a")
    assert requests.newer("a") is None


def test_a_periodic_sync_takes_the_view_from_before_a_sync_without_effect(requests: ObservationRequests) -> None:
    requests.acted("a", 2.0, with_effect=False)
    assert requests.newer("a") is None
    requests.accept_older("a")
    assert requests.newer("a") is not None


def test_a_periodic_sync_takes_no_view_from_before_a_sync_with_effect(requests: ObservationRequests) -> None:
    requests.acted("a", 2.0, with_effect=True)
    requests.acted("a", 3.0, with_effect=False)
    requests.accept_older("a")
    assert requests.newer("a") is None
    assert requests.acted_at("a") == 2.0


def test_a_request_tells_once_what_acts_have_touched(requests: ObservationRequests) -> None:
    requests.touched("a", SyncEffects(("c1",)))
    requests.touched("a", SyncEffects(("c2",)))
    requests.lost("b", 2.0)
    request = requests.take_request()
    assert request is not None
    assert request.uids == ("a", "b")
    assert request.effects == {"a": SyncEffects(("c1", "c2")), "b": SyncEffects(unsure=True)}
    assert requests.take_request() is None


def test_a_request_brings_once_what_acts_have_seen(requests: ObservationRequests) -> None:
    for look in (b"one", b"two"):
        requests.touched("a", SyncEffects(looks=(look,)))
    requests.touched("b", SyncEffects(("c1",)))
    request = requests.take_request()
    assert request is not None
    assert {uid: each.looks for uid, each in request.effects.items()} == {"a": (b"one", b"two"), "b": ()}
    requests.touched("a", SyncEffects(("c1",)))
    request = requests.take_request()
    assert request is not None
    assert not request.effects["a"].looks


def test_a_view_that_knows_nothing_of_the_last_act_does_not_count_however_new_it_is(
    requests: ObservationRequests,
) -> None:
    requests.acted("a", 2.0, with_effect=True)
    requests.touched("a", SyncEffects(("c1",)))
    request = requests.take_request()
    assert request is not None
    ended = RuntimePodStatus(uid="a", name="ended", observed_at=3.0)
    ignorant = Observation(uid="a", observed_at=3.0, changed=True, answers=request.number - 1, row=0, status=ended)
    assert requests.take(ignorant) is not None, "as content it is news"
    assert requests.cache.get("a").name == "ended"
    assert requests.newer("a") is None
    assert asked(requests) == (), "it was asked for already"
    requests.take(seen(3.5, answers=request.number))
    assert requests.newer("a") is not None


def test_after_a_look_at_everything_since_the_act_what_knows_no_number_counts_again(
    requests: ObservationRequests,
) -> None:
    """The request is still on its way; the relist has shown what the act has made."""
    requests.acted("a", 2.0, with_effect=True)
    requests.touched("a", SyncEffects(("c1",)))
    requests.take_request()
    requests.take(seen(1.5))
    requests.take(seen(2.5, answers=0))
    assert requests.newer("a") is None, "that relist was before the act"
    requests.take(seen(3.0))
    requests.take(seen(4.0, answers=0))
    entry = requests.newer("a")
    assert entry is not None
    assert entry.observed_at == 4.0


def test_a_new_node_worker_is_told_of_acts_that_its_list_may_not_have_seen(requests: ObservationRequests) -> None:
    """The request that told of them was on its way, and its list may be older than they are."""
    requests.acted("a", 2.0, with_effect=True)
    requests.touched("a", SyncEffects(("c1",)))
    assert asked(requests) == ("a",)
    requests.ask_again()
    request = requests.take_request()
    assert request is not None
    assert (request.uids, request.effects["a"].unsure) == (("a",), True)
    requests.take(seen(3.0, answers=request.number - 1))
    assert requests.newer("a") is None, "it knows of no act"
    requests.take(seen(4.0, answers=request.number))
    assert requests.newer("a") is not None


def test_a_new_node_worker_need_not_be_told_of_acts_that_were_seen(requests: ObservationRequests) -> None:
    requests.acted("a", 2.0, with_effect=True)
    requests.touched("a", SyncEffects(("c1",)))
    assert asked(requests) == ("a",)
    requests.take(seen(3.0))
    requests.ask_again()
    assert requests.take_request() is None


def test_a_new_node_worker_is_asked_for_what_is_open(requests: ObservationRequests) -> None:
    requests.touched("a", SyncEffects())
    assert asked(requests) == ("a",)
    requests.ask_again()
    assert asked(requests) == ("a",)


def test_the_first_relist_of_a_new_node_worker_answers_what_only_waits(requests: ObservationRequests) -> None:
    requests.acted("a", 1.0, with_effect=True)
    assert requests.newer("a") is None
    assert asked(requests) == ("a",)
    requests.ask_again()
    assert requests.newer("a") is None
    assert requests.take_request() is None, "it begins with a relist"
    requests.relisted(2.0, ())
    assert requests.newer("a") is not None
    assert requests.take_request() is None


def test_a_pod_that_the_first_relist_does_not_answer_for_is_asked_for(requests: ObservationRequests) -> None:
    requests.acted("a", 3.0, with_effect=False)
    assert requests.newer("a") is None
    assert asked(requests) == ("a",)
    requests.ask_again()
    requests.relisted(2.0, ())
    assert asked(requests) == ("a",), "it was acted on after that relist began"
    requests.relisted(2.5, ())
    assert requests.take_request() is None, "it was asked for"


def test_a_new_node_worker_asks_again_by_itself_for_what_it_could_not_see(requests: ObservationRequests) -> None:
    requests.acted("a", 1.0, with_effect=True)
    assert requests.newer("a") is None
    assert asked(requests) == ("a",)
    requests.ask_again()
    requests.relisted(2.0, ("a",))
    assert requests.take_request() is None
    requests.take(seen(3.0, answers=0))
    assert requests.newer("a") is not None


def test_a_new_node_worker_is_told_of_what_may_come_late(requests: ObservationRequests, known: KnownPods) -> None:
    requests.touched("a", SyncEffects(unsure=True))
    for _ in range(2):
        request = requests.take_request()
        assert request is not None
        assert (request.uids, request.effects["a"].unsure) == (("a",), True)
        requests.take(seen(2.0))
        requests.ask_again()
    known.forget("a")
    requests.ask_again()
    request = requests.take_request()
    assert request is None


def test_a_request_tells_once_what_is_gone(requests: ObservationRequests) -> None:
    requests.touched("a", SyncEffects(("c1",), removed=("s1",)))
    requests.touched("a", SyncEffects(removed=("s2",)))
    request = requests.take_request()
    assert request is not None
    assert request.effects == {"a": SyncEffects(("c1",), removed=("s1", "s2"))}
    requests.touched("a", SyncEffects())
    request = requests.take_request()
    assert request is not None
    assert request.effects == {}


def test_a_view_of_a_pod_that_was_forgotten_is_not_kept(requests: ObservationRequests, known: KnownPods) -> None:
    known.forget("a")
    assert requests.take(seen(2.0)) is None
    assert list(known.items()) == []


@pytest.mark.parametrize(("relisted_at", "is_gone"), [(2.0, False), (4.0, True)])
def test_of_a_pod_that_nobody_states_yet_a_relist_says_nothing_that_is_older_than_its_view(
    relisted_at: float, is_gone: bool
) -> None:
    """The node worker passes over pods that were observed since the relist began."""
    sandbox = SandboxStatus(
        id="s", name="s", infra_id="i", attempt=0, state=SandboxState.READY, hash="", created_at=1.0
    )
    view = RuntimePodStatus(uid="b", observed_at=3.0, sandboxes=(sandbox,))
    requests = ObservationRequests(KnownPods())
    requests.take(Observation(uid="b", observed_at=3.0, changed=True, row=0, status=view))
    for absent in requests.absent(relisted_at, (), requests.cache.untracked()):
        requests.take(absent)
    assert requests.cache.get("b").is_empty() == is_gone
