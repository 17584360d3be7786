"""Looks that somebody has asked for: so many at a time, and those that fail. On a fake Podman, in simulated time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from ipc.k8s.kubecontainer.pod_status import SandboxState
from ipc.link.messages.node_worker import (
    EVERY_REQUEST,
    ObservationFailed,
    Observe,
    Observed,
    Relist,
    Relisted,
    RuntimeHealth,
    Track,
    Untrack,
)
from ipc.link.messages.pod_worker import SyncEffects
from tests.fakes.clock import simulate, simulated
from tests.fakes.podman import FakePod
from tests.fakes.runtime import Flavour
from tests.support.node_worker import NEVER_S, Host, asked, to_list
from workers.kubecontainer import labels
from workers.kubecontainer.look import Look, encode_look
from workers.kubecontainer.runtime import RuntimeEvent
from workers.pleg.empty_pods import PATIENCE_S
from workers.pleg.generic import ROUND_S
from workers.pleg.relist_schedule import RETRIES


@simulated
async def test_few_are_looked_at_one_by_one_and_many_by_one_list() -> None:
    host = Host()
    for number in range(20):
        host.running(f"u{number}")
    async with host.worker(relist_period_s=NEVER_S) as master:
        master.send(*(Track(uid=f"u{number}", row=number) for number in range(20)))
        lists, observation_requests, inspects = (
            host.calls(verb) for verb in ("list_containers", "list_pods", "inspect_container")
        )
        before = len(master.reports)
        master.send(to_list("u1", "u2", "u3"))
        for uid in ("u1", "u2", "u3"):
            await master.observation(uid, after=before)
        assert (host.calls("list_containers"), host.calls("list_pods")) == (lists, observation_requests + 3)
        before = len(master.reports)
        master.send(to_list(*(f"u{number}" for number in range(20))))
        observed = await master.first(Observed, after=before)
        assert len(observed.observations) == 20
        assert (host.calls("list_containers"), host.calls("list_pods")) == (lists + 1, observation_requests + 3)
        # Nothing had changed: what runs under a watched process needs no inspect.
        assert host.calls("inspect_container") == inspects


@pytest.mark.parametrize("others", [10, 300])
def test_what_a_sync_has_touched_is_all_that_podman_is_asked_for(others: int) -> None:
    async def main() -> None:
        host = Host()
        for number in range(others):
            host.running(f"other{number}")
        async with host.worker(relist_period_s=NEVER_S) as master:
            master.send(Track(uid="u1", row=0))
            host.podman.mute = True
            for calls, act in ((2, start), (2, restart), (2, remove)):
                before, asked_at = len(host.runtime.calls), len(master.reports)
                master.send(Observe(uids=("u1",), effects={"u1": SyncEffects(act(host))}))
                seen = await master.observation("u1", after=asked_at)
                assert list(host.runtime.calls)[before:] == ["inspect_container"] * calls
                assert len(master.status(seen).containers) == len(pods_of(host, "u1"))
            before, asked_at = len(host.runtime.calls), len(master.reports)
            master.send(Observe(uids=("u1",)))
            await master.observation("u1", after=asked_at)
            assert len(host.runtime.calls) == before, "nothing was touched"

    simulate(main)


def pods_of(host: Host, uid: str) -> list[FakePod]:
    return [pod for pod in host.podman.pods.values() if pod.labels[labels.POD_UID] == uid]


def start(host: Host) -> tuple[str, ...]:
    """As a sync tells of it: the infra container by its name."""
    id = host.running("u1")
    infra = host.podman.pods[host.podman.container(id).pod_id].infra_id
    return host.podman.container(infra).name, id


def restart(host: Host) -> tuple[str, ...]:
    (pod,) = pods_of(host, "u1")
    (old,) = (c.id for c in host.podman.members(pod) if not c.is_infra)
    host.podman.exit(old, 1)
    host.podman.remove_container(old)
    new = host.container(pod.id, "u1")
    host.podman.start_container(new)
    return old, new


def remove(host: Host) -> tuple[str, ...]:
    """The sandbox, with everything in it."""
    (pod,) = pods_of(host, "u1")
    host.podman.remove_pod(pod.id)
    return (pod.id,)


@simulated
async def test_a_pod_whose_removal_was_answered_is_gone_without_a_question() -> None:
    """Events of its own removal bring no look, whether they come before the answer or after it."""
    host = Host(latency_s=0.01)
    container = host.running("u1")
    (pod,) = pods_of(host, "u1")
    ids = (container, pod.infra_id)
    events = [
        RuntimeEvent(action=action, container_id=id, labels=dict(host.podman.container(id).labels), time=at)
        for at in (host.clock.now().wall + 1, host.clock.now().wall + 3)
        for id in ids
        for action in ("died", "remove")
    ]
    async with host.worker(relist_period_s=NEVER_S) as master:
        master.send(Track(uid="u1", row=0))
        host.podman.mute = True
        await asyncio.sleep(1)
        calls, before = len(host.runtime.calls), len(master.reports)
        host.podman.exit(container, 7)
        ended = await master.observation("u1", lambda status: not status.has_running_containers(), before)
        assert master.status(ended).containers[0].exit_code == 7
        before = len(master.reports)
        remove(host)
        tell(host, events[:4])
        master.send(Observe(uids=("u1",), effects={"u1": SyncEffects(removed=(pod.id,))}))
        gone = await master.observation("u1", lambda status: status.is_empty(), before)
        assert gone.observed_at > ended.observed_at
        master.send(Untrack(uid="u1"))
        tell(host, events[4:])
        await asyncio.sleep(60)
        assert list(host.runtime.calls)[calls:].count("inspect_container") == 0


def tell(host: Host, events: Iterable[RuntimeEvent]) -> None:
    for listener in host.podman.listeners:
        for event in events:
            listener.put_nowait(event)


async def test_what_a_sync_has_seen_is_not_inspected_again_unless_it_was_touched_later_or_has_ended() -> None:
    host = Host()
    async with host.worker(relist_period_s=NEVER_S) as master:
        master.send(Track(uid="u1", row=0))
        host.podman.mute = True
        infra, container = start(host)
        look = encode_look(Look(host.podman.inspected(infra), host.podman.clock.now().mono))

        async def inspected(*touched: str) -> int:
            before, asked_at = host.calls("inspect_container"), len(master.reports)
            master.send(Observe(uids=("u1",), effects={"u1": SyncEffects(touched, looks=(look,))}))
            seen = await master.observation("u1", after=asked_at)
            (sandbox,) = master.status(seen).sandboxes
            shown = host.podman.inspected(infra)
            assert (sandbox.infra_id, sandbox.state == SandboxState.READY) == (shown.id, shown.state == "running")
            return host.calls("inspect_container") - before

        assert await inspected(container) == 1, "the container alone"
        assert await inspected(infra) == 1, "it was touched after the look"
        assert await inspected() == 0
        host.podman.exit(host.podman.inspected(infra).id, 1)
        await inspected()  # an old look says nothing of what has ended


@simulated
async def test_the_look_at_a_container_that_has_ended_since_is_checked() -> None:
    host = Host()
    async with host.worker(relist_period_s=NEVER_S) as master:
        master.send(Track(uid="u1", row=0))
        host.podman.mute = True
        infra, container = start(host)
        look = encode_look(Look(host.podman.inspected(infra), host.podman.clock.now().mono))
        host.podman.exit(host.podman.inspected(infra).id, 1)
        asked_at = len(master.reports)
        master.send(Observe(uids=("u1",), effects={"u1": SyncEffects((container,), looks=(look,))}))
        seen = await master.observation("u1", after=asked_at)
        assert [sandbox.state for sandbox in master.status(seen).sandboxes] == [SandboxState.NOT_READY]


@simulated
async def test_an_observation_says_which_requests_it_answers() -> None:
    host = Host()
    container = host.running("u1")
    async with host.worker(relist_period_s=NEVER_S) as master:
        (relisted,) = [report for report in master.reports if isinstance(report, Relisted)]
        assert [seen.answers for seen in relisted.changed] == [EVERY_REQUEST]
        master.send(Track(uid="u1", row=0))
        for number in (1, 2):
            before = len(master.reports)
            master.send(Observe(uids=("u1",), number=number, effects={"u1": SyncEffects((container,))}))
            assert (await master.observation("u1", after=before)).answers == number
        before = len(master.reports)
        host.podman.exit(container, 3)
        assert (await master.observation("u1", after=before)).answers == 2, "what comes unasked knows no more"
        await asyncio.sleep(1)
        assert (await asked(master, "u1")).answers == EVERY_REQUEST


@simulated
async def test_what_was_touched_is_inspected_again_when_that_has_failed() -> None:
    host = Host()
    async with host.worker(relist_period_s=NEVER_S) as master:
        master.send(Track(uid="u1", row=0))
        host.podman.mute = True
        touched = start(host)
        host.runtime.fail(2, Flavour.FAILED, "inspect_container")
        before = len(master.reports)
        master.send(Observe(uids=("u1",), effects={"u1": SyncEffects(touched)}))
        await master.first(ObservationFailed, after=before)
        seen = await master.observation("u1", after=before)
        assert len(master.status(seen).containers) == 1


@simulated
async def test_requests_that_wait_are_answered_together() -> None:
    host = Host(latency_s=0.1)
    for number in range(40):
        host.running(f"u{number}")
    async with host.worker(relist_period_s=NEVER_S) as master:
        observation_requests = host.calls("list_pods")
        for _ in range(10):
            master.send(Observe(uids=("u1",)))
        await asyncio.sleep(2)
        assert host.calls("list_pods") - observation_requests <= 2


@simulated
async def test_a_request_during_a_look_gets_a_look_of_its_own() -> None:
    host = Host(latency_s=0.5)
    for number in range(20):
        host.running(f"u{number}")
    async with host.worker(relist_period_s=NEVER_S) as master:
        before = len(master.reports)
        master.send(Observe(uids=("u1",)))
        await asyncio.sleep(0.2)
        asked_at = host.now()
        master.send(Observe(uids=("u1",)))
        first = await master.observation("u1", after=before)
        assert first.observed_at < asked_at
        second = await master.observation("u1", lambda status: status.observed_at >= asked_at, after=before)
        assert second.observed_at >= asked_at


@simulated
async def test_a_pod_that_cannot_be_looked_at_holds_up_no_other() -> None:
    host = Host()
    for number in range(40):
        host.running(f"u{number}")
    async with host.worker(relist_period_s=NEVER_S) as master:
        host.runtime.fail(1, Flavour.FAILED, "list_pods")
        before, asked_at = len(master.reports), host.now()
        master.send(to_list("u1", "u2"))
        failed = await master.first(ObservationFailed, after=before)
        assert "list_pods" in failed.message
        (other,) = {"u1", "u2"} - {failed.uid}
        await master.observation(other, after=before)
        assert host.now() < asked_at + 0.1
        seen = await master.observation(failed.uid, after=before)
        assert asked_at + RETRIES.pause_s(1) <= seen.observed_at < asked_at + RETRIES.pause_s(1) + 0.1
        assert (master.count(RuntimeHealth), master.count(ObservationFailed)) == (1, 1)


def hang_once(host: Host, verb: str) -> None:
    """Let that list of pod u1 hang the next time that it is asked for."""
    answer = getattr(host.runtime, verb)
    hung: list[str] = []

    async def hanging(uid: str = "") -> Any:
        if uid == "u1" and not hung:
            hung.append(uid)
            await asyncio.sleep(NEVER_S)
        return await answer(uid)

    setattr(host.runtime, verb, hanging)


@simulated
async def test_a_pod_whose_lock_somebody_holds_is_seen_by_its_containers() -> None:
    host = Host()
    for number in range(40):
        host.running(f"u{number}")
    async with host.worker(relist_period_s=NEVER_S) as master:
        hang_once(host, "list_pods")
        before, asked_at = len(master.reports), host.now()
        master.send(to_list("u1"))
        seen = await master.observation("u1", after=before)
        assert host.now() < asked_at + PATIENCE_S + 0.1
        status = master.status(seen)
        assert (len(status.sandboxes), len(status.containers)) == (1, 1)


@simulated
async def test_a_look_that_hangs_is_given_up_and_repeated() -> None:
    host = Host()
    for number in range(40):
        host.running(f"u{number}")
    async with host.worker(relist_period_s=NEVER_S) as master:
        hang_once(host, "list_pods")
        hang_once(host, "list_containers")
        before, asked_at = len(master.reports), host.now()
        master.send(to_list("u1", "u2"))
        await master.observation("u2", after=before)
        assert host.now() < asked_at + 0.1
        seen = await master.observation("u1", after=before)
        assert asked_at + ROUND_S < seen.observed_at < asked_at + ROUND_S + 1
        assert master.count(ObservationFailed) == 0, "late is not wrong"


@simulated
async def test_a_relist_names_the_pod_that_it_could_not_look_at_and_is_soon_repeated() -> None:
    host = Host()
    host.running("u1")
    async with host.worker(relist_period_s=NEVER_S) as master:
        host.podman.mute = True
        host.running("u2")
        host.running("u3")
        master.send(Track(uid="u2", row=2), Track(uid="u3", row=3))
        host.runtime.fail(1, Flavour.TIMED_OUT, "inspect_container")
        before, asked_at = len(master.reports), host.now()
        master.send(Relist())
        relisted = await master.first(Relisted, after=before)
        assert (relisted.unseen, {seen.uid for seen in relisted.changed}) == (("u2",), {"u1", "u3"})
        await master.observation("u2", lambda status: bool(status.containers), after=before)
        relisted = await master.first(Relisted, lambda report: not report.unseen, after=before)
        assert asked_at + RETRIES.pause_s(1) / 2 < relisted.started_at < asked_at + 1.0
        assert "u1" in {seen.uid for seen in relisted.changed}


@pytest.mark.parametrize("is_infra_gone", [False, True])
def test_a_pod_that_can_never_be_looked_at_keeps_no_relist_from_succeeding(is_infra_gone: bool) -> None:
    async def main() -> None:
        host = Host()
        bad = host.podman.container(host.running("bad"))
        if is_infra_gone:
            del host.podman.containers[host.podman.pods[bad.pod_id].infra_id]
        host.podman.unreadable.add(bad.pod_id if is_infra_gone else bad.id)
        host.running("good")
        async with host.worker() as master:
            relisted = await master.first(Relisted, after=len(master.reports) - 1)
            for _ in range(3):
                assert (relisted.unseen, [seen.uid for seen in relisted.changed]) == (("bad",), ["good"])
                relisted = await master.first(Relisted, after=len(master.reports))
            assert master.count(RuntimeHealth) == 1, "it is no matter of Podman's as a whole"
            await asyncio.sleep(100)
            before = master.count(Relisted)
            await asyncio.sleep(100)
            assert master.count(Relisted) - before <= 100 / RETRIES.max_s + 2
            host.podman.unreadable.clear()
            await master.observation("bad", after=len(master.reports))
            relisted = await master.first(Relisted, lambda report: not report.unseen, after=len(master.reports))
            assert {seen.uid for seen in relisted.changed} == {"bad", "good"}

    simulate(main)
