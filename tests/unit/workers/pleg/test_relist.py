from __future__ import annotations

import pytest

from tests.support.runtime_values import container_labels, inspected, listed, listed_pod, own_labels
from workers.pleg.relist import (
    Listing,
    Members,
    is_list_cheaper,
    members_by_uid,
    relist_period_s,
    to_inspect,
    unlisted_pods,
)


def test_what_was_never_inspected_is() -> None:
    assert to_inspect([listed("c1"), listed("c2")], {"c1": inspected("c1")}) == ("c2",)


def test_members_are_sorted_by_uid_and_infra_containers_stand_for_their_pods() -> None:
    listing = Listing(
        started_at=1.0,
        containers=(
            listed("i1", is_infra=True, pod_id="p1", labels=own_labels("u1")),
            listed("c1", pod_id="p1", labels=container_labels("a", uid="u1")),
            listed("i2", is_infra=True, pod_id="p2", labels=own_labels("u2")),
            listed("i1b", is_infra=True, pod_id="p1b", labels=own_labels("u1")),
            listed("s", pod_id="", labels=container_labels("a", uid="u3")),
        ),
        pods=(listed_pod("p4", "", labels=own_labels("u4")),),
    )
    found = members_by_uid(listing)
    assert {uid: [pod.id for pod in members.pods] for uid, members in found.items()} == {
        "u1": ["p1", "p1b"],
        "u2": ["p2"],
        "u3": [],
        "u4": ["p4"],
    }
    assert found["u1"].container_ids == ("i1", "c1", "i1b")
    assert found["u3"].container_ids == ("s",)
    assert found["u4"] == Members(pods=listing.pods)


def test_what_carries_no_uid_is_nobodys() -> None:
    listing = Listing(started_at=1.0, containers=(listed("c1", labels={}),), pods=(listed_pod("p2", "", labels={}),))
    assert members_by_uid(listing) == {}


def test_a_pod_that_is_listed_twice_is_one() -> None:
    """A pod was empty when the empty pods were listed, and had its infra container when the containers were."""
    listing = Listing(
        started_at=1.0,
        containers=(listed("i1", is_infra=True, labels=own_labels("u1")),),
        pods=(listed_pod("p1", "", labels=own_labels("u1")),),
    )
    (pod,) = members_by_uid(listing)["u1"].pods
    assert pod.infra_id == "i1"


def test_pods_whose_infra_container_is_missing_must_be_asked_for() -> None:
    containers = [
        listed("i1", is_infra=True, pod_id="p1"),
        listed("c1", pod_id="p1"),
        listed("c2", pod_id="p2"),
        listed("c3", pod_id="p3"),
        listed("s", pod_id=""),
    ]
    assert unlisted_pods(containers, [listed_pod("p3", "")]) == {"p2"}


@pytest.mark.parametrize(
    ("asked", "containers", "cheaper"), [(0, 0, False), (0, 100, False), (1, 0, True), (1, 200, False), (34, 200, True)]
)
def test_one_list_is_cheaper_than_many_single_looks(asked: int, containers: int, cheaper: bool) -> None:
    assert is_list_cheaper(asked, containers, newest_took_s=0.005) is cheaper
    assert not is_list_cheaper(asked, containers, newest_took_s=60), "it is long by others' containers"


@pytest.mark.parametrize(
    ("asked", "took_s", "cheaper"),
    [(1, 0.009, True), (1, 0.3, False), (20, 0.3, False), (40, 0.3, True), (1000, 1.9, True), (1000, 2.0, False)],
)
def test_a_list_is_no_shortcut_when_others_make_it_long(asked: int, took_s: float, cheaper: bool) -> None:
    assert is_list_cheaper(asked, containers=2, newest_took_s=took_s) is cheaper


@pytest.mark.parametrize(
    ("quiet_relists", "took_s", "period_s"),
    [
        (0, 0.06, 10.0),
        (1, 0.06, 20.0),
        (4, 0.06, 160.0),
        (5, 0.06, 300.0),
        (10_000, 0.06, 300.0),
        (0, 12.0, 48.0),
        (1, 12.0, 240.0),
        (5, 12.0, 300.0),
        (5, 30.0, 600.0),
    ],
)
def test_relists_become_rare_and_never_take_more_than_a_part_of_the_time(
    quiet_relists: int, took_s: float, period_s: float
) -> None:
    assert relist_period_s(10.0, 300.0, quiet_relists, took_s) == pytest.approx(period_s)


def test_a_longest_period_below_the_shortest_does_not_count() -> None:
    assert {relist_period_s(60.0, 30.0, quiet, 0.0) for quiet in range(5)} == {60.0}
