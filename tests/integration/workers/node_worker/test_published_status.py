"""Pods as the node worker shows them, and where. On a fake Podman, in simulated time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimePodStatus, SandboxState
from ipc.link.messages.base import EventReport
from ipc.link.messages.node_worker import Observe, Relist, Relisted, Track, Untrack
from tests.fakes.clock import simulate, simulated
from tests.fakes.ownership import signed_pod
from tests.support.node_worker import FOREVER, IMAGE, NEVER_S, Host, asked
from workers.kubecontainer import labels
from workers.logs import layout, start_error


@simulated
async def test_a_tracked_pods_view_goes_to_its_row() -> None:
    host = Host()
    async with host.worker(relist_period_s=NEVER_S) as master:
        container = host.running("u1")
        asked_at = host.now()
        master.send(Track(uid="u1", row=3), Observe(uids=("u1",)))
        seen = await master.observation("u1", lambda status: bool(status.containers))
        assert (seen.row, seen.status, seen.changed) == (3, None, True)
        status = master.row(3)
        assert status is not None
        assert status.observed_at == seen.observed_at >= asked_at
        assert [(c.id, c.state) for c in status.containers] == [(container, ContainerState.RUNNING)]


@simulated
async def test_the_same_again_moves_only_the_date() -> None:
    host = Host()
    host.running("u1")
    async with host.worker(relist_period_s=NEVER_S) as master:
        master.send(Track(uid="u1", row=0))
        first = master.row(0)
        assert first is None  # The command is still on its way.
        for _ in range(3):
            before = len(master.reports)
            await asyncio.sleep(1)
            asked_at = host.now()
            master.send(Observe(uids=("u1",)))
            seen = await master.observation("u1", after=before)
            assert (seen.changed, seen.row) == (False, 0)
            status = master.row(0)
            assert status is not None
            assert status.observed_at == seen.observed_at >= asked_at


@simulated
async def test_a_relist_dates_every_tracked_row() -> None:
    host = Host()
    for number in range(5):
        host.running(f"u{number}")
    async with host.worker() as master:
        master.send(*(Track(uid=f"u{number}", row=number) for number in range(6)))
        before = len(master.reports)
        relisted = await master.first(Relisted, after=before)
        assert [seen.uid for seen in relisted.changed] == ["u5"]
        for number in range(6):
            status = master.row(number)
            assert status is not None
            assert status.observed_at == relisted.started_at


@simulated
async def test_what_does_not_fit_its_row_travels_in_the_message() -> None:
    host = Host()
    pod = host.pod("u1")
    for number in range(10):
        host.container(pod, "u1", f"c{number}")
    async with host.worker(pod_row_bytes=1024) as master:
        master.send(Track(uid="u1", row=0), Observe(uids=("u1",)))
        seen = await master.observation("u1", after=len(master.reports))
        assert seen.row == -1
        assert seen.status is not None
        assert len(seen.status.containers) == 10
        assert master.row(0) is None
        for container in seen.status.containers[1:]:
            host.podman.remove_container(container.id)
        seen = await asked(master, "u1")
        assert (seen.row, seen.status) == (0, None)
        status = master.row(0)
        assert status is not None
        assert len(status.containers) == 1


@simulated
async def test_a_tracked_pod_that_is_not_there_is_empty() -> None:
    host = Host()
    async with host.worker() as master:
        master.send(Track(uid="u1", row=0))
        seen = await asked(master, "u1")
        assert master.status(seen) == RuntimePodStatus(uid="u1", observed_at=seen.observed_at)


@simulated
async def test_a_pod_that_vanishes_becomes_empty() -> None:
    host = Host()
    container = host.running("u1")
    async with host.worker(relist_period_s=NEVER_S) as master:
        master.send(Track(uid="u1", row=0))
        host.podman.remove_pod(host.podman.container(container).pod_id)
        await master.observation("u1", lambda status: status.is_empty())


@simulated
async def test_an_observe_sees_a_sandbox_that_is_new() -> None:
    host = Host()
    async with host.worker(relist_period_s=NEVER_S) as master:
        host.podman.mute = True
        for number in range(20):
            host.running(f"other{number}")
        master.send(Track(uid="u1", row=0), Relist())
        await master.first(Relisted, after=len(master.reports))
        for attempt in range(3):
            host.running("u1", attempt)
            status = master.status(await asked(master, "u1"))
            assert [s.attempt for s in status.sandboxes] == list(range(attempt, -1, -1))
            assert len(status.containers) == attempt + 1


@simulated
async def test_track_brings_what_is_known_to_the_row_and_untrack_empties_it() -> None:
    host = Host()
    host.running("u1")
    async with host.worker(relist_period_s=NEVER_S) as master:
        master.send(Track(uid="u1", row=0), Track(uid="u2", row=1))
        await asyncio.sleep(0.1)
        status = master.row(0)
        assert status is not None
        assert (status.uid, len(status.containers)) == ("u1", 1)
        assert master.row(1) is None
        master.send(Track(uid="u1", row=5))
        await asyncio.sleep(0.1)
        assert master.row(0) is None
        assert master.row(5) == status
        master.send(Untrack(uid="u1"), Untrack(uid="never heard of"))
        await asyncio.sleep(0.1)
        assert master.row(5) is None
        master.send(Track(uid="u3", row=5), Observe(uids=("u3",)))
        await master.observation("u3", after=len(master.reports))
        reused = master.row(5)
        assert reused is not None
        assert (reused.uid, reused.is_empty()) == ("u3", True)


@simulated
async def test_every_relist_tells_of_every_orphan_until_it_is_gone() -> None:
    host = Host()
    container = host.running("u1")
    async with host.worker() as master:
        for _ in range(3):
            relisted = await master.first(Relisted, after=len(master.reports))
            (orphan,) = relisted.changed
            assert (orphan.uid, orphan.changed, orphan.row) == ("u1", False, -1)
            assert orphan.status is not None
        host.podman.remove_pod(host.podman.container(container).pod_id)
        await asyncio.sleep(1)
        relisted = await master.first(Relisted, after=len(master.reports))
        assert relisted.changed == ()


@simulated
async def test_a_stray_is_found_by_a_relist_and_followed_from_then_on() -> None:
    host = Host()
    for number in range(20):
        host.running(f"other{number}")
    host.running("u1")
    async with host.worker(relist_period_s=NEVER_S) as master:
        host.podman.mute = True
        stray = host.container("", "u1", "main")
        master.send(Track(uid="u1", row=0), Relist())
        await master.observation("u1", lambda status: len(status.containers) == 2)
        host.podman.start_container(stray)
        status = master.status(await asked(master, "u1"))
        assert {c.id: c.state for c in status.containers}[stray] is ContainerState.RUNNING
        host.podman.remove_container(stray)
        status = master.status(await asked(master, "u1"))
        assert len(status.containers) == 1


@simulated
async def test_a_stranger_in_our_pod_is_not_shown() -> None:
    host = Host()
    container = host.running("u1")
    pod = host.podman.container(container).pod_id
    host.podman.create_container({"name": "stranger", "image": IMAGE, "pod": pod, "command": list(FOREVER)})
    twin = {"name": "twin", "image": IMAGE, "pod": pod, "command": list(FOREVER)}
    host.podman.create_container({**twin, "labels": {**host.labels("u1"), labels.INSTANCE: "two"}})
    async with host.worker(relist_period_s=NEVER_S) as master:
        master.send(Track(uid="u1", row=0), Relist())
        await asyncio.sleep(1)
        for status in (master.row(0), master.status(await asked(master, "u1"))):
            assert status is not None
            assert [c.id for c in status.containers] == [container]


@simulated
async def test_a_pod_without_its_infra_container_is_still_seen() -> None:
    host = Host()
    container = host.running("u1")
    pod = host.podman.pods[host.podman.container(container).pod_id]
    del host.podman.containers[pod.infra_id]
    empty = host.podman.create_pod(signed_pod({"name": "half-made", "labels": host.labels("u2"), "no_infra": True}))
    async with host.worker() as master:
        relisted = await master.first(Relisted)
        found = {seen.uid: seen.status for seen in relisted.changed}
        one, two = found["u1"], found["u2"]
        assert one is not None
        assert [(s.id, s.state) for s in one.sandboxes] == [(pod.id, SandboxState.NOT_READY)]
        assert [c.id for c in one.containers] == [container]
        assert two is not None
        assert [(s.id, s.state) for s in two.sandboxes] == [(empty, SandboxState.NOT_READY)]
        assert not two.is_empty()


@simulated
async def test_both_ways_of_looking_show_the_same() -> None:
    host = Host()
    for number in range(30):
        host.running(f"other{number}")
    pod = host.pod("u1", 1, **{labels.SANDBOX_HASH: "h", labels.GRACE_PERIOD_S: "5"})
    host.pod("u1", 0)
    for attempt, command in enumerate((["false"], ["true"], FOREVER)):
        id = host.container(pod, "u1", command=command, **{labels.ATTEMPT: str(attempt)})
        host.podman.start_container(id)
        await asyncio.sleep(1)
    async with host.worker(relist_period_s=NEVER_S) as master:
        (relisted,) = [report for report in master.reports if isinstance(report, Relisted)]
        (listed,) = [seen.status for seen in relisted.changed if seen.uid == "u1"]
        assert listed is not None
        observation_requests = host.calls("list_pods")
        seen = await asked(master, "u1")
        assert host.calls("list_pods") == observation_requests + 1
        assert seen.status is not None
        assert seen.status.same_as(listed)
        assert not seen.changed
        assert len(listed.containers) == 3


@pytest.mark.parametrize("is_infra", [False, True])
def test_a_removal_that_podman_died_over_is_finished(is_infra: bool) -> None:
    """Without its layer Podman can list and remove it, but not show it."""

    async def main() -> None:
        host = Host()
        id = host.running("u1")
        host.running("u2")
        pod = host.podman.containers[id].pod_id
        begun = host.podman.pods[pod].infra_id if is_infra else id
        host.podman.cut_remove_container(begun)
        async with host.worker() as master:
            master.send(Track(uid="u1", row=0), Track(uid="u2", row=1), Relist())
            await master.observation("u1", lambda status: all(c.id != begun for c in status.containers))
        assert begun not in host.podman.containers
        assert (pod in host.podman.pods) is not is_infra
        assert len(host.podman.pods) == 2 - is_infra

    simulate(main)


def test_a_failed_start_is_shown_as_an_end(tmp_path: Path) -> None:
    async def main() -> None:
        host = Host()
        container = host.container(host.pod("u1"), "u1", **{labels.ATTEMPT: "2"})
        directory = layout.pod_directory(str(tmp_path), "default", "name-u1", "u1")
        async with host.worker(pod_logs_dir=tmp_path) as master:
            master.send(Track(uid="u1", row=0))
            status = master.status(await asked(master, "u1"))
            assert status.containers[0].state is ContainerState.CREATED
            start_error.write(layout.log_file(directory, "main", 2), "no such file")
            status = master.status(await asked(master, "u1"))
            (found,) = status.containers
            assert (found.id, found.state, found.error) == (container, ContainerState.EXITED, "no such file")

    simulate(main)


@simulated
async def test_what_only_says_that_it_is_ours_is_told_once_and_left_alone() -> None:
    """Copies of all labels, a claim with labels that nobody could read, and a Podman pod."""
    host = Host()
    container = host.running("u1")
    own = host.podman.container(container).labels
    hostile = {**own, labels.ATTEMPT: "9" * 5000, labels.PRE_STOP: "[" * 100_000}
    made = {
        host.podman.create_container({"name": name, "image": IMAGE, "labels": found, "command": list(FOREVER)})
        for name, found in (("copy", own), ("hostile", hostile))
    }
    pod = host.podman.pods[host.podman.create_pod({"name": "pod", "infra_name": "x_infra", "labels": own})]
    empty = host.podman.create_pod({"name": "empty", "no_infra": True, "labels": own})
    host.podman.abandon(sorted(made)[0], "removing")
    async with host.worker(relist_period_s=NEVER_S) as master:
        master.send(Track(uid="u1", row=0), Relist())
        await asyncio.sleep(1)
        for status in (master.row(0), master.status(await asked(master, "u1"))):
            assert status is not None
            assert [c.id for c in status.containers] == [container]
            assert len(status.sandboxes) == 1
        told = [report for report in master.reports if isinstance(report, EventReport)]
        (event,) = told
        assert (event.uid, event.name, event.reason) == ("", "here", "UnknownContainer")
        assert all(name in event.message for name in ("copy", "hostile", "x_infra", "empty"))
        host.podman.container("hostile").state = "created"
        host.podman.start_container(host.podman.container("hostile").id)
        host.podman.exit(host.podman.container("hostile").id, 3)
        master.send(Relist())
        await asyncio.sleep(1)
        assert told == [report for report in master.reports if isinstance(report, EventReport)]
    assert made < host.podman.containers.keys()
    assert {pod.id, empty} < host.podman.pods.keys()


@simulated
async def test_of_many_strangers_a_few_are_named() -> None:
    host = Host()
    for number in range(300):
        spec = {"name": "x" * 200 + str(number), "image": IMAGE, "labels": host.labels("u1"), "command": ["true"]}
        host.podman.create_container(spec)
    async with host.worker() as master:
        event = await master.first(EventReport)
        assert "and 290 more" in event.message
        assert len(event.message) < 1100


@simulated
async def test_a_container_that_somebody_renames_is_ours_no_more() -> None:
    """And does not look like a list that lacks something."""
    host = Host()
    container = host.running("u1")
    async with host.worker(relist_period_s=NEVER_S) as master:
        master.send(Track(uid="u1", row=0), Relist())
        await asyncio.sleep(1)
        host.podman.container(container).name = "renamed"
        relisted = master.count(Relisted)
        master.send(Relist())
        await asyncio.sleep(1)
        assert master.count(Relisted) == relisted + 1
        status = master.row(0)
        assert status is not None
        assert status.containers == ()
        assert len(status.sandboxes) == 1
