"""Periodic syncs that are passed over: those that would find nothing to do, and never many in a row."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from ipc.k8s.api.v1.container import Container, ResourceRequirements
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podresources.node_resources import NodeResources, PodCgroups
from ipc.link.messages.sync_error import SyncError
from ipc.link.metrics import rootlet
from ipc.link.shm.metric_cells import METERS
from supervisor.admission.predicates import UNKNOWN_NODE
from supervisor.pods.lifecycle import MAX_RESTS
from supervisor.pods.record import head_start
from supervisor.protocol.events import HostAddressesChanged, SettingsChanged
from tests.support.dialogue import Talk, exited, pod, restless, running

PERIOD_S = 100.0
"""Longer than from any periodic sync to the next."""
FIRST_RESTS = MAX_RESTS - head_start("a")
"""Periodic syncs of that pod that are passed over before the first one."""


def started(wanted: Pod | str = "a", node: NodeResources = UNKNOWN_NODE) -> Talk:
    talk = Talk(node=node)
    talk.start(wanted)
    return talk


def passed_over(talk: Talk) -> int:
    """Number of periods until a pod is synced."""
    for number in range(2 * MAX_RESTS):
        if talk.tick(after_s=PERIOD_S):
            return number
    raise AssertionError("it is never synced")


def test_a_pod_of_which_a_sync_found_nothing_to_do_rests_and_is_synced_all_the_same_in_the_end() -> None:
    METERS.detach()
    talk = started()
    assert passed_over(talk) == FIRST_RESTS
    assert METERS.value(rootlet.RESTS) == FIRST_RESTS
    for _ in range(2):
        talk.done("a")
        assert passed_over(talk) == MAX_RESTS


@pytest.mark.parametrize("uid", ["c", "b", "a", "g", "e"])
def test_the_first_sync_of_a_pod_is_earlier_than_the_others_by_a_number_of_periods_of_its_own(uid: str) -> None:
    talk = started(uid)
    assert passed_over(talk) == MAX_RESTS - head_start(uid)
    talk.done(uid)
    assert passed_over(talk) == MAX_RESTS


def test_pods_that_something_has_happened_to_at_once_are_not_synced_together_afterwards() -> None:
    talk = started()
    assert passed_over(talk) == FIRST_RESTS
    talk.done("a")
    talk.fall_due("a")
    assert talk.see(running("a")) == ["sync a"]
    talk.done("a")
    assert passed_over(talk) == FIRST_RESTS


def test_as_many_pods_have_each_head_start() -> None:
    pods = Counter(head_start(hashlib.md5(str(number).encode()).hexdigest()) for number in range(1000))
    assert sorted(pods) == list(range(MAX_RESTS + 1))
    assert min(pods.values()) > 150


@pytest.mark.parametrize("answer", [{"error": SyncError.TIMEOUT}, {"cancelled": True}, {"changed": True}], ids=repr)
def test_after_a_sync_that_did_or_may_have_done_something_the_pod_does_not_rest(answer: dict[str, Any]) -> None:
    talk = started()
    talk.fall_due("a")
    assert talk.see(running("a")) == ["sync a"]
    assert talk.done("a", **answer) + talk.tick(after_s=PERIOD_S) == ["observe a"]
    assert talk.see(running("a")) == ["sync a"]


def test_a_pod_rests_when_it_was_observed_as_its_start_has_made_it() -> None:
    talk = Talk()
    talk.add("a")
    talk.relist()
    talk.done("a", changed=True)
    assert talk.see(running("a")) == []
    assert passed_over(talk) == FIRST_RESTS


def test_a_change_that_is_observed_brings_a_sync_and_an_end_to_rest() -> None:
    talk = started()
    assert talk.see(exited("a", 1)) == ["sync a"]
    talk.done("a")
    assert passed_over(talk) == 0, "not all of it runs"


def test_an_edit_brings_a_sync() -> None:
    talk = started()
    assert talk.tick(after_s=PERIOD_S) == []
    assert talk.update(pod("a", image="v2")) == ["observe a"]
    assert talk.see(running("a")) == ["sync a"]


@pytest.mark.parametrize("changed", [SettingsChanged, HostAddressesChanged], ids=["settings", "addresses"])
def test_what_has_changed_beside_the_pod_ends_the_rest(changed: type) -> None:
    talk = started()
    event = SettingsChanged(talk.settings) if changed is SettingsChanged else HostAddressesChanged(("10.0.0.9",))
    talk.say(event)
    assert passed_over(talk) == 0


def _limited(uid: str) -> Pod:
    wanted = pod(uid)
    resources = ResourceRequirements(limits={"ephemeral-storage": "1Gi"})
    containers = (Container(name="main", image="v1", resources=resources),)
    return msgspec.structs.replace(wanted, spec=msgspec.structs.replace(wanted.spec, containers=containers))


def _shaped(uid: str) -> Pod:
    wanted = pod(uid)
    annotations = {"kubernetes.io/egress-bandwidth": "1M"}
    return msgspec.structs.replace(wanted, metadata=msgspec.structs.replace(wanted.metadata, annotations=annotations))


@pytest.mark.parametrize("make", [restless, _limited, _shaped], ids=["volume", "limit of the disk", "bandwidth"])
def test_a_pod_that_has_what_nobody_observes_is_always_synced(make: Callable[[str], Pod]) -> None:
    talk = started(make("a"))
    assert passed_over(talk) == 0


def test_a_pod_with_a_slice_is_always_synced() -> None:
    node = msgspec.structs.replace(UNKNOWN_NODE, pod_cgroups=PodCgroups())
    assert passed_over(started("a", node)) == 0


def test_pods_that_run_already_when_the_agent_starts_are_synced_once() -> None:
    talk = Talk()
    talk.relist(running("a"))
    assert talk.add("a") == ["track a", "sync a"]
    talk.done("a")
    assert passed_over(talk) == FIRST_RESTS
