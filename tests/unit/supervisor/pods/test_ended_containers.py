"""Ends that are remembered: when, for how long, and what an observation has of them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ipc.host.clock import rfc3339
from ipc.k8s.api.v1.container import EphemeralContainer
from ipc.k8s.kubecontainer.pod_status import (
    CONTAINER_STATUS_UNKNOWN,
    ContainerState,
    RuntimeContainerStatus,
    RuntimePodStatus,
    SandboxState,
    SandboxStatus,
)
from ipc.k8s.kubecontainer.remembered_ends import NO_RECORD, with_remembered
from supervisor.pods.ended_containers import REMOVED_AS_IT_RAN, EndedContainers
from supervisor.pods.parts import KnownPods
from tests.support.pods import IMAGE, container, observed, pod, seen

NOW = 2_000_000_000.0
POD = pod(
    "main", init_containers=(container("init"),), ephemeral_containers=(EphemeralContainer(name="look", image=IMAGE),)
)
UID = POD.metadata.uid
EXITED, RUNNING = ContainerState.EXITED, ContainerState.RUNNING
NOTHING = RuntimePodStatus(uid=UID, observed_at=9.0)
SANDBOX = SandboxStatus(id="s", name="s", infra_id="i", attempt=0, state=SandboxState.NOT_READY, created_at=NOW - 10)


def told(*containers: RuntimeContainerStatus, known: KnownPods | None = None) -> EndedContainers:
    made = EndedContainers(known or KnownPods())
    made.observed(POD, observed(POD, *containers), NOW)
    return made


def names(status: RuntimePodStatus) -> list[tuple[str, int, int, bool]]:
    return [(c.name, c.attempt, c.exit_code, c.is_remembered) for c in status.containers]


def lost(name: str, **fields: Any) -> RuntimeContainerStatus:
    return seen(POD, name, EXITED, exit_code=137, reason=CONTAINER_STATUS_UNKNOWN, **fields)


@pytest.mark.parametrize("name", ["main", "init", "look"])
def test_an_end_outlives_its_container(name: str) -> None:
    ends = told(seen(POD, name, EXITED, exit_code=3))
    assert names(ends.merged(NOTHING)) == [(name, 0, 3, True)]
    assert ends.merged(NOTHING).is_empty(), "nothing of it is in the runtime"
    ends.observed(POD, NOTHING, NOW)
    assert names(with_remembered(NOTHING, ends.lacked_by(NOTHING))) == [(name, 0, 3, True)]


def test_one_that_is_there_is_as_it_is_observed() -> None:
    there = observed(POD, seen(POD, "main", EXITED, exit_code=3))
    ends = told(*there.containers)
    assert ends.merged(there) is there
    again = observed(POD, seen(POD, "main", RUNNING))
    ends.observed(POD, again, NOW)
    assert names(ends.merged(NOTHING)) == [("main", 0, 137, True)], "somebody has started it again"


@pytest.mark.parametrize("name", ["main", "init", "look"])
def test_what_ran_when_it_went_has_ended_then(name: str) -> None:
    ends = told(seen(POD, name, RUNNING, 2))
    ends.observed(POD, NOTHING, NOW + 5)
    [gone] = ends.merged(NOTHING).containers
    assert (gone.name, gone.attempt, gone.state, gone.exit_code) == (name, 2, EXITED, 137)
    assert (gone.reason, gone.error, gone.finished_at) == (CONTAINER_STATUS_UNKNOWN, REMOVED_AS_IT_RAN, NOW + 5)


def test_how_a_pod_that_is_wanted_no_more_has_ended_outlives_its_containers() -> None:
    ends = told(seen(POD, "main", RUNNING), seen(POD, "init", EXITED, exit_code=0))
    ends.ended(observed(POD, seen(POD, "main", EXITED, exit_code=3), seen(POD, "look", EXITED, exit_code=1)))
    assert sorted(names(ends.merged(NOTHING))) == [("init", 0, 0, True), ("main", 0, 3, True)], "and begins no run"
    ends.ended(observed(POD, lost("main")))
    assert sorted(names(ends.merged(NOTHING))) == [("init", 0, 0, True), ("main", 0, 3, True)]


def after_another_agent(*containers: RuntimeContainerStatus, alive_at: float = NOW - 3) -> EndedContainers:
    made = EndedContainers(KnownPods())
    made.restored(told(*containers).everything(), alive_at)
    return made


@pytest.mark.parametrize(("alive_at", "finished_at"), [(NOW - 3, NOW - 3), (0.0, NOW - 20), (NOW + 99, NOW)])
def test_what_ran_under_an_agent_before_has_ended_with_that_agents_last_sign_of_life(
    alive_at: float, finished_at: float
) -> None:
    ends = after_another_agent(seen(POD, "main", RUNNING, 1, started_at=NOW - 20), alive_at=alive_at)
    ends.observed(POD, NOTHING, NOW)
    [gone] = ends.merged(NOTHING).containers
    assert (gone.exit_code, gone.reason, gone.error) == (137, CONTAINER_STATUS_UNKNOWN, "")
    assert gone.finished_at == finished_at
    assert ends.urgent_version == ends.version, "it is written at once: the next agent says the same"


def test_it_has_ended_for_who_asks_before_anything_is_told_of_the_pod() -> None:
    ends = after_another_agent(seen(POD, "main", RUNNING, started_at=NOW - 20))
    assert [(c.name, c.finished_at) for c in ends.lacked_by(NOTHING)] == [("main", NOW - 3)]
    assert names(ends.merged(NOTHING)) == [("main", 0, 137, True)]


def test_what_ran_is_not_over_as_long_as_nobody_has_looked() -> None:
    ends = after_another_agent(seen(POD, "main", RUNNING), seen(POD, "init", EXITED))
    unseen = RuntimePodStatus(uid=UID)
    assert names(ends.merged(unseen)) == [("init", 0, 0, True)]
    assert [c.name for c in ends.lacked_by(unseen)] == ["init"]
    running = observed(POD, seen(POD, "main", RUNNING))
    assert [(c.name, c.state) for c in ends.merged(running).containers] == [("init", EXITED), ("main", RUNNING)]


def test_one_that_is_about_to_start_has_ended_only_where_a_newer_view_lacks_it() -> None:
    ends = EndedContainers(KnownPods())
    ends.begins(UID, seen(POD, "main", RUNNING, 1), now_mono=NOTHING.observed_at)
    assert ends.urgent_version == 1
    ends.observed(POD, NOTHING, NOW)
    assert ends.merged(NOTHING) is NOTHING, "the view is older than the container"
    assert ends.lacked_by(NOTHING) == ()
    later = msgspec.structs.replace(NOTHING, observed_at=NOTHING.observed_at + 1)
    ends.observed(POD, later, NOW)
    assert names(ends.merged(later)) == [("main", 1, 137, True)]


def test_one_that_was_about_to_start_when_the_host_ended_counts_as_begun() -> None:
    ends, made = EndedContainers(KnownPods()), seen(POD, "main", ContainerState.CREATED)
    ends.begins(UID, made, now_mono=1.0)
    ends.observed(POD, observed(POD, made), NOW)
    after = EndedContainers(KnownPods())
    after.restored(ends.everything(), NOW - 3)
    assert names(after.merged(NOTHING)) == [("main", 0, 137, True)]
    ends.observed(POD, observed(POD, seen(POD, "main", RUNNING, id=made.id)), NOW)
    assert ends.urgent_version == 1, "that it runs is no news"


def test_a_run_goes_on_without_a_write_at_once() -> None:
    known = KnownPods()
    ends = told(seen(POD, "main", RUNNING), known=known)
    urgent = ends.urgent_version
    assert urgent == ends.version == 1, "its beginning is written at once"
    ends.observed(POD, observed(POD, seen(POD, "main", RUNNING, stop_signal="SIGINT")), NOW)
    assert (ends.version, ends.urgent_version) == (2, urgent)
    ends.removed(UID, ("nothing",))
    known.forget(UID)
    assert (ends.version, ends.urgent_version) == (3, urgent)


def test_the_first_sandbox_is_remembered_beyond_it() -> None:
    ends = EndedContainers(KnownPods())
    for created_at, since in ((NOW - 40, ""), (NOW - 20, rfc3339(NOW - 50))):
        box = msgspec.structs.replace(SANDBOX, created_at=created_at, active_since=since)
        ends.observed(POD, msgspec.structs.replace(NOTHING, sandboxes=(box,)), NOW)
    assert ends.merged(NOTHING).began_at == NOW - 50
    there = msgspec.structs.replace(NOTHING, sandboxes=(SANDBOX,))
    assert ends.merged(there).began_at == NOW - 50
    older = msgspec.structs.replace(SANDBOX, created_at=NOW - 50)
    assert ends.merged(msgspec.structs.replace(NOTHING, sandboxes=(older,))).began_at == 0.0


def test_an_end_that_the_runtime_has_lost_is_as_it_was_told() -> None:
    end = seen(POD, "main", EXITED, exit_code=0, started_at=NOW - 20, finished_at=NOW - 9)
    ends = told(end)
    after = observed(POD, lost("main", id=end.id, started_at=NOW - 20, finished_at=NOW - 20))
    ends.observed(POD, after, NOW)
    [main] = ends.merged(after).containers
    assert (main.exit_code, main.reason, main.finished_at, main.is_remembered) == (0, "", NOW - 9, False)


@pytest.mark.parametrize(("alive_at", "finished_at"), [(NOW - 3, NOW - 3), (0.0, NOW - 20), (NOW + 99, NOW)])
def test_a_run_that_the_host_has_ended_lasted_as_long_as_the_agent_is_known_to(
    alive_at: float, finished_at: float
) -> None:
    ends = EndedContainers(KnownPods())
    ends.restored({}, alive_at)
    after = observed(POD, lost("main", started_at=NOW - 20, finished_at=NOW - 20))
    ends.observed(POD, after, NOW)
    [main] = ends.merged(after).containers
    assert main.finished_at == finished_at
    ends.restored(ends.everything(), NOW + 500)
    ends.observed(POD, after, NOW + 900)
    assert ends.merged(after).containers[0].finished_at == finished_at, "the next agent says the same"


def test_what_a_worker_has_removed_begins_as_if_it_had_never_run() -> None:
    end = seen(POD, "init", EXITED)
    ends = told(end)
    ends.removed(UID, (end.id,))
    assert ends.merged(NOTHING) is NOTHING


def test_with_a_sandbox_goes_what_has_a_successor() -> None:
    old, new = seen(POD, "main", EXITED, 0, sandbox_id="s0"), seen(POD, "main", EXITED, 1, sandbox_id="s0")
    ends = told(old, new)
    ends.removed(UID, ("s0",))
    assert names(ends.merged(NOTHING)) == [("main", 1, 0, True)]


def test_after_a_sync_that_died_what_is_gone_was_reset_if_it_may_have_been() -> None:
    ends = told(seen(POD, "init", EXITED), seen(POD, "look", RUNNING), seen(POD, "main", RUNNING))
    ends.mark_stale(UID)
    ends.observed(POD, NOTHING, NOW)
    assert [c.name for c in ends.merged(NOTHING).containers] == ["look"]
    ends = told(seen(POD, "main", EXITED))
    ends.mark_stale(UID)
    ends.observed(POD, NOTHING, NOW)
    assert [c.name for c in ends.merged(NOTHING).containers] == ["main"]


def test_two_of_each_name_are_kept_and_none_that_the_manifest_lacks() -> None:
    ends = told(*(seen(POD, "main", EXITED, attempt) for attempt in range(4)), seen(POD, "other", EXITED))
    assert [(c.name, c.attempt) for c in ends.merged(NOTHING).containers] == [("main", 3), ("main", 2)]


def test_logs_tell_no_restart_that_is_remembered() -> None:
    ends = told(seen(POD, "main", EXITED, 1))
    status = msgspec.structs.replace(NOTHING, lost_attempts={"main": 1, "init": 0})
    assert ends.merged(status).lost_attempts == {"init": 0}
    assert ends.merged(msgspec.structs.replace(NOTHING, lost_attempts={"main": 2})).lost_attempts == {"main": 2}


def test_a_pod_that_is_gone_is_forgotten_on_the_disk_too() -> None:
    known = KnownPods()
    ends = told(seen(POD, "main", EXITED), known=known)
    kept = ends.version
    assert ends.changed_after(0).keys() == {UID}
    known.forget_unwanted()
    assert ends.changed_after(kept) == {UID: NO_RECORD}
    assert ends.everything() == {}
