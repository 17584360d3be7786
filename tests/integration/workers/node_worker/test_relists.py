"""When the node worker lists everything, and what that costs. On a fake Podman, in simulated time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import pairwise

from ipc.k8s.kubecontainer.pod_status import ContainerState
from ipc.link.messages.base import EventReport
from ipc.link.messages.node_worker import ObservationFailed, Observe, Observed, Relist, Relisted, Track, Untrack
from ipc.link.messages.pod_worker import SyncEffects
from tests.fakes.clock import simulate, simulated
from tests.fakes.runtime import FakeRuntime
from tests.support.node_worker import FOREVER, GROWN, IMAGE, NEVER_S, Host, Master, asked, gaps_between_relists, to_list
from workers.kubecontainer import labels
from workers.kubecontainer.overrides import STUCK_SLACK_S
from workers.kubecontainer.runtime import InspectedContainer, ListedContainer
from workers.pleg.evented import SYNC_S
from workers.pleg.observer import PODS_PER_YIELD


@simulated
async def test_without_any_doubt_relists_are_rare_after_the_first_that_was_due() -> None:
    host = Host()
    async with host.worker() as master:
        first, *later = await gaps_between_relists(master, 4)
        assert first <= 12.01
        assert min(later) >= 240.0


@simulated
async def test_an_act_of_which_the_end_is_not_known_makes_relists_frequent_again() -> None:
    """A call that was given up may still be carried out, also when nobody looks after its pod any more."""
    host = Host()
    async with host.worker() as master:
        master.send(Track(uid="u1", row=0))
        await gaps_between_relists(master, 2)
        host.podman.mute = True
        before, began = len(master.reports), host.now()
        master.send(Observe(uids=("u1",), effects={"u1": SyncEffects(unsure=True)}), Untrack(uid="u1"))
        await asyncio.sleep(50.0)
        host.running("u1")
        await master.first(Relisted, lambda relisted: any(seen.uid == "u1" for seen in relisted.changed), before)
        assert host.now() - began <= 1.2 * (10 + 20 + 40)


@simulated
async def test_the_relist_period_grows_while_nothing_is_new_and_varies_by_a_fifth() -> None:
    host = Host()
    async with host.worker() as master:
        host.podman.break_events()
        at_once, *gaps = await gaps_between_relists(master, 41)
        assert at_once < 1.0
        for gap, period_s in zip(gaps, (10, 20, 40, 80, 160, *[300] * 35), strict=True):
            assert 0.8 * period_s <= gap <= 1.2 * period_s + 0.01
        assert max(gaps[5:]) - min(gaps[5:]) > 60.0


class SlowLists(FakeRuntime):
    """Podman with very many containers."""

    list_s = 12.0

    async def list_containers(self, uid: str = "") -> tuple[ListedContainer, ...]:
        await asyncio.sleep(self.list_s)
        return await super().list_containers(uid)


@simulated
async def test_relists_that_take_longer_than_their_period_leave_time_for_single_pods() -> None:
    host = Host()
    host.runtime = SlowLists(host.podman, "one", latency_s=0.001)
    for number in range(4):
        host.running(f"u{number}")
    async with host.worker() as master:
        rests = [gap - SlowLists.list_s for gap in await gaps_between_relists(master, 5)]
        assert min(rests) >= 2 * SlowLists.list_s
        asked_at = host.now()
        master.send(Observe(uids=("u1",)))
        await master.first(Observed, after=len(master.reports))
        assert host.now() - asked_at < 0.1


class StaleLists(SlowLists):
    """The same; what it says is of the time at which it was asked."""

    async def list_containers(self, uid: str = "") -> tuple[ListedContainer, ...]:
        found = await FakeRuntime.list_containers(self, uid)
        await asyncio.sleep(self.list_s)
        return found


@asynccontextmanager
async def listing(host: Host) -> AsyncIterator[Master]:
    """A worker in the middle of a relist, with two pods that run and are tracked; it ends before the block does."""
    host.runtime = StaleLists(host.podman, "one", latency_s=0.001)
    for number in (1, 2):
        host.running(f"u{number}")
    async with host.worker(relist_period_s=NEVER_S) as master:
        master.send(Track(uid="u1", row=0), Track(uid="u2", row=1))
        host.podman.mute = True
        before = len(master.reports)
        master.send(Relist())
        await asyncio.sleep(1)
        yield master
        await master.first(Relisted, after=before)


@simulated
async def test_while_everything_is_listed_single_pods_are_observed() -> None:
    host = Host()
    async with listing(host) as master:
        before, asked_at = len(master.reports), host.now()
        successor = host.running("u1", 1)
        newcomer = host.running("u3")
        statuses = [master.status(await asked(master, uid)) for uid in ("u1", "u3")]
        assert host.now() - asked_at < 0.1
        assert [len(status.sandboxes) for status in statuses] == [2, 1]
        relisted = await master.first(Relisted, after=before)
        assert (relisted.changed, relisted.unseen) == ((), ()), "the list is older than what is known of them"
        assert relisted.started_at < asked_at
        for number, status in enumerate(statuses):
            assert master.status(await asked(master, status.uid)).same_as(status), number
        for uid, id in (("u1", successor), ("u3", newcomer)):
            before = len(master.reports)
            host.podman.exit(id)
            await master.observation(uid, lambda seen: seen.containers[0].state is ContainerState.EXITED, after=before)


@simulated
async def test_a_pod_that_is_gone_since_the_listing_began_stays_gone() -> None:
    host = Host()
    async with listing(host) as master:
        before = len(master.reports)
        host.podman.remove_pod(next(iter(host.podman.pods)))
        gone = master.status(await asked(master, "u1"))
        assert gone.is_empty()
        relisted = await master.first(Relisted, after=before)
        assert (relisted.changed, relisted.unseen) == ((), ())
        row = master.row(0)
        assert row is not None
        assert row.is_empty()


@simulated
async def test_a_pod_that_could_not_be_observed_since_the_listing_began_is_unseen() -> None:
    host = Host()
    async with listing(host) as master:
        before = len(master.reports)
        host.podman.unreadable.add(host.running("u2", 1))
        master.send(to_list("u2"))
        failed = await master.first(ObservationFailed, after=before)
        relisted = await master.first(Relisted, after=before)
        assert (failed.uid, relisted.unseen) == ("u2", ("u2",))
        host.podman.unreadable.clear()
        assert len(master.status(await asked(master, "u2")).sandboxes) == 2


@simulated
async def test_many_pods_do_not_make_a_list_that_is_long_by_others() -> None:
    host = Host()
    async with listing(host) as master:
        await master.first(Relisted, after=len(master.reports))
        before, asked_at = len(master.reports), host.now()
        master.send(Observe(uids=("u1", "u2")))
        await master.first(Observed, after=before)
        assert host.now() - asked_at < 0.1
        master.send(Relist())


@simulated
async def test_a_relist_of_many_pods_lets_others_have_their_turns() -> None:
    host = Host(latency_s=0.0)  # Time does not pass while somebody always has a turn.
    host.podman.mute = True
    rows = range(PODS_PER_YIELD * 3)
    for row in rows:
        host.running(f"u{row}")
    async with host.worker(relist_period_s=NEVER_S, pod_rows=len(rows)) as master:
        master.send(*(Track(uid=f"u{row}", row=row) for row in rows))
        asked_at = host.now()
        await asyncio.sleep(1)

        def dated() -> int:
            """Rows that the next relist has renewed."""
            return sum((found := master.row(row)) is not None and found.observed_at > asked_at for row in rows)

        before, renewed = len(master.reports), [0]
        master.send(Relist())
        while not any(isinstance(report, Relisted) for report in master.reports[before:]):
            if (now := dated()) != renewed[-1]:
                renewed.append(now)
            await asyncio.sleep(0)
        steps = [later - earlier for earlier, later in pairwise(renewed)]
        assert (sum(steps), max(steps)) == (len(rows), PODS_PER_YIELD)


@simulated
async def test_what_was_missed_makes_the_next_relist_come_sooner() -> None:
    host = Host()
    container = host.running("u1")
    host.running("u2")
    async with host.worker() as master:
        master.send(Track(uid="u1", row=0), Track(uid="u2", row=1))
        await gaps_between_relists(master, GROWN)
        host.podman.mute = True
        host.running("u1", 1)
        missed, sooner, *later = await gaps_between_relists(master, GROWN + 2)
        assert missed >= 240.0
        assert sooner <= 12.01
        assert 16.0 <= later[0] <= 24.01
        host.podman.mute = False
        host.podman.exit(container)  # told by its pidfd: no reason for doubt
        assert min(await gaps_between_relists(master, 4)) >= 240.0


@simulated
async def test_a_pod_that_begins_during_a_relist_is_no_reason_for_doubt() -> None:
    """A worker has made it, and says so at the end of its sync."""
    host = Host()
    async with host.worker() as master:
        host.podman.mute = True
        master.send(Track(uid="u1", row=0), Track(uid="u2", row=1), Observe(uids=("u2",)))
        await master.observation("u2", lambda seen: seen.is_empty())
        for uid in ("u1", "u2"):
            host.running(uid)
        found, *later = await gaps_between_relists(master, 3)
        assert found <= 12.01
        assert min(later) >= 240.0


@simulated
async def test_somebody_elses_container_with_our_labels_is_reported_soon_after_its_start() -> None:
    host = Host()
    async with host.worker() as master:
        await gaps_between_relists(master, GROWN)
        spec = {"name": "stranger", "image": IMAGE, "labels": host.labels("u1"), "command": list(FOREVER)}
        host.podman.start_container(host.podman.create_container(spec))
        started_at = host.now()
        event = await master.first(EventReport)
        assert (event.reason, host.now() <= started_at + SYNC_S + 12.01) == ("UnknownContainer", True)


@simulated
async def test_a_pod_that_nobody_wants_is_a_reason_for_doubt() -> None:
    host = Host()
    async with host.worker() as master:
        host.podman.mute = True
        host.running("u1")
        assert max(await gaps_between_relists(master, 2)) <= 12.01


@simulated
async def test_relists_that_somebody_asks_for_say_nothing_of_quiet() -> None:
    host = Host()
    async with host.worker() as master:
        for _ in range(10):
            before = len(master.reports)
            master.send(Relist())
            await master.first(Relisted, after=before)
        assert (await gaps_between_relists(master, 1))[0] <= 12.01


@simulated
async def test_what_stops_for_ever_is_looked_at_alone_until_its_time_is_over() -> None:
    host = Host()
    container = host.container(host.pod("u1"), "u1", **{labels.GRACE_PERIOD_S: "20"})
    host.podman.start_container(container)
    for number in range(9):
        host.running(f"other{number}")
    async with host.worker() as master:
        master.send(Track(uid="u1", row=0))
        await gaps_between_relists(master, GROWN)
        host.podman.abandon(container, "stopping")
        before, began, relists = len(master.reports), host.now(), host.calls("list_containers")
        master.send(
            Observe(uids=("u1",), effects={"u1": SyncEffects((container,))})
        )  # as after a sync that could not end it
        await master.observation("u1", lambda s: s.containers[0].state is ContainerState.UNKNOWN, before)
        assert host.now() < began + 20 + STUCK_SLACK_S + 10.1
        assert host.calls("list_containers") == relists


@simulated
async def test_a_container_that_cannot_be_watched_any_more_brings_the_next_relist_forward() -> None:
    host = Host()
    host.running("u1")
    async with host.worker() as master:
        await gaps_between_relists(master, GROWN)

        def fail(container: InspectedContainer) -> int | None:
            raise OSError("too many open files")

        host.runtime.open_process = fail  # type: ignore[method-assign]
        before, began = len(master.reports), host.now()
        host.running("u2")
        master.send(Observe(uids=("u2",)))
        relisted = await master.first(Relisted, after=before)
        assert relisted.started_at <= began + 10.1


@simulated
async def test_a_state_that_does_not_last_is_looked_at_often() -> None:
    host = Host()
    container = host.running("u1")
    async with host.worker() as master:
        await gaps_between_relists(master, GROWN)
        host.podman.abandon(container, "removing")
        await gaps_between_relists(master, 1)
        assert max(await gaps_between_relists(master, 5)) <= 12.01


@simulated
async def test_what_cannot_be_watched_is_found_by_relists_that_stay_frequent() -> None:
    host = Host()
    container = host.running("u1")

    def fail(container: InspectedContainer) -> int | None:
        raise OSError("too many open files")

    open_process = host.runtime.open_process
    host.runtime.open_process = fail  # type: ignore[method-assign]
    async with host.worker() as master:
        master.send(Track(uid="u1", row=0))
        assert max(await gaps_between_relists(master, 5)) <= 12.01
        host.podman.kill_monitor(container)
        host.podman.exit(container)
        host.runtime.open_process = open_process  # type: ignore[method-assign]
        await master.observation("u1", lambda s: s.containers[0].state is ContainerState.EXITED, len(master.reports))
        assert min((await gaps_between_relists(master, GROWN + 3))[GROWN:]) >= 240.0


async def _quiet_calls(pods: int, minutes: int) -> dict[str, int]:
    """How often each verb is called in that time of a node worker that knows everything already."""
    host = Host()
    for number in range(pods):
        host.running(f"u{number}")
    async with host.worker(pod_rows=pods) as master:
        master.send(*(Track(uid=f"u{number}", row=number) for number in range(pods)))
        await gaps_between_relists(master, GROWN)
        before = Counter(host.runtime.calls)
        await asyncio.sleep(60 * minutes)
        return dict(Counter(host.runtime.calls) - before)


def test_when_nothing_happens_the_number_of_calls_does_not_depend_on_the_number_of_pods() -> None:
    minutes = 60
    few, many = (simulate(partial(_quiet_calls, pods, minutes)) for pods in (60, 300))
    assert few.keys() == many.keys() == {"list_containers", "list_empty_pods", "version"}
    for calls in (few, many):
        assert 1.8 * minutes <= calls.pop("version") <= 2.0 * minutes
        # A relist every 4 to 6 minutes.
        assert all(minutes / 6 - 1 <= count <= minutes / 4 + 1 for count in calls.values())


@simulated
async def test_a_relist_inspects_only_what_has_changed() -> None:
    host = Host()
    for number in range(60):
        host.running(f"u{number}")
    async with host.worker(relist_period_s=NEVER_S) as master:
        host.podman.mute = True
        await asyncio.sleep(1)
        host.running("new")
        before = Counter(host.runtime.calls)
        master.send(Relist())
        await master.first(Relisted, after=len(master.reports))
        calls = dict(Counter(host.runtime.calls) - before)
        assert calls == {"list_containers": 1, "list_empty_pods": 1, "inspect_container": 2}


@simulated
async def test_a_relist_asked_for_during_a_relist_is_made() -> None:
    host = Host(latency_s=0.5)
    async with host.worker(relist_period_s=NEVER_S) as master:
        master.send(Relist())
        await asyncio.sleep(0.2)
        asked_at = host.now()
        master.send(Relist())
        await master.first(Relisted, lambda report: report.started_at >= asked_at)
