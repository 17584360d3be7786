"""Which views count: only those that are newer than the last act, and what is asked for while there is none."""

from __future__ import annotations

import pytest

from ipc.kubecontainer.pod_status import RuntimePodStatus, SandboxState, SandboxStatus
from ipc.messages.node_worker import Observation
from supervisor.podworkers.observation_requests import ObservationRequests


def seen(at: float, uid: str = "a") -> Observation:
    status = RuntimePodStatus(uid=uid, observed_at=at)
    return Observation(uid=uid, observed_at=at, changed=True, row=0, status=status)


@pytest.fixture
def requests() -> ObservationRequests:
    """One pod, tracked from the beginning and observed at 1."""
    made = ObservationRequests()
    made.track("a", 0.0)
    made.take(seen(1.0))
    return made


def test_a_view_counts_until_the_pod_is_acted_on(requests: ObservationRequests) -> None:
    assert requests.newer("a") is not None
    requests.acted("a", 2.0, with_effect=True)
    assert requests.acted_at("a") == 2.0
    assert requests.newer("a") is None
    assert requests.take_requests() == ("a",)
    requests.newer("a")
    assert requests.take_requests() == (), "it was asked for already"
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


def test_a_new_node_worker_is_asked_for_what_is_open(requests: ObservationRequests) -> None:
    requests.ask("a")
    assert requests.take_requests() == ("a",)
    requests.ask_again()
    assert requests.take_requests() == ("a",)


def test_a_view_of_a_pod_that_was_forgotten_is_not_kept(requests: ObservationRequests) -> None:
    requests.forget("a")
    assert requests.take(seen(2.0)) is None
    assert requests.cache.entry("a") is None


@pytest.mark.parametrize(("relisted_at", "is_gone"), [(2.0, False), (4.0, True)])
def test_of_a_pod_that_nobody_states_yet_a_relist_says_nothing_that_is_older_than_its_view(
    relisted_at: float, is_gone: bool
) -> None:
    """The node worker passes over pods that were observed since the relist began."""
    sandbox = SandboxStatus(
        id="s", name="s", infra_id="i", attempt=0, state=SandboxState.READY, hash="", created_at=1.0
    )
    view = RuntimePodStatus(uid="b", observed_at=3.0, sandboxes=(sandbox,))
    requests = ObservationRequests()
    requests.take(Observation(uid="b", observed_at=3.0, changed=True, row=0, status=view))
    for absent in requests.absent(relisted_at, (), requests.cache.unknown(())):
        requests.take(absent)
    assert requests.cache.get("b").is_empty() == is_gone
