"""Pauses of pods in the sync loop: what is asked of workers, what is told, and what a paused pod is spared."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.probe import ExecAction, Probe
from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from ipc.link.messages.pod_worker import Freeze, SyncAction, SyncResult
from ipc.link.messages.sync_error import SyncError
from supervisor.protocol.events import FreezeRequest
from supervisor.protocol.refusals import RequestRefused
from tests.support.dialogue import Talk, absent, pod, running

PAUSED = SyncResult(action=SyncAction.PAUSE_POD, target="a")
RESUMED = SyncResult(action=SyncAction.RESUME_POD, target="a")
NO_CGROUP = msgspec.structs.replace(PAUSED, error=SyncError.FREEZE_POD, message="no cgroup")


def ask(talk: Talk, freeze: Freeze, name: str = "a", ticket: int = 1) -> list[str]:
    return talk.say(FreezeRequest(ticket=ticket, namespace="default", name=name, freeze=freeze))


def frozen(uid: str) -> RuntimePodStatus:
    seen = running(uid)
    containers = tuple(msgspec.structs.replace(c, podman_state="paused") for c in seen.containers)
    return msgspec.structs.replace(seen, containers=containers)


def probed(uid: str) -> Pod:
    plain = pod(uid)
    (main,) = plain.spec.containers
    probe = Probe(exec=ExecAction(command=("true",)), timeout_seconds=1, period_seconds=10)
    main = msgspec.structs.replace(main, liveness_probe=probe)
    return msgspec.structs.replace(plain, spec=msgspec.structs.replace(plain.spec, containers=(main,)))


def runs(of: Pod | str = "a") -> Talk:
    talk = Talk()
    talk.ready()
    talk.add(of)
    talk.relist()
    talk.done("a", changed=True)
    talk.fall_due("a")
    talk.see(running("a"))
    talk.done("a")
    return talk


def paused(of: Pod | str = "a") -> Talk:
    talk = runs(of)
    ask(talk, Freeze.PAUSE)
    talk.see(running("a"))
    talk.done("a", changed=True, results=(PAUSED,))
    talk.see(frozen("a"))
    return talk


def conditions(talk: Talk) -> dict[str, tuple[str, str | None]]:
    return {each.type: (each.status, each.reason) for each in talk.told["a"].status.conditions}


def test_a_sync_pauses_it_and_nothing_else_and_whoever_asked_is_told() -> None:
    talk = runs()
    ask(talk, Freeze.PAUSE)
    assert "sync a" in talk.see(running("a"))
    assert talk.syncs["a"].freeze is Freeze.PAUSE
    assert "freeze 1: done" in talk.done("a", changed=True, results=(PAUSED,))
    assert "Paused a" in talk.events
    assert "sync a" not in talk.see(frozen("a"))


def test_its_status_says_so_until_it_goes_on() -> None:
    talk = paused()
    told = talk.told["a"].status
    assert (told.phase, told.reason) == ("Running", "Paused")
    assert conditions(talk)["rootlet.dev/Paused"] == ("True", "Paused")
    assert conditions(talk)["Ready"] == conditions(talk)["ContainersReady"] == ("False", "Paused")
    talk.see(running("a"))
    told = talk.told["a"].status
    assert (told.phase, told.reason) == ("Running", "")
    assert "rootlet.dev/Paused" not in conditions(talk)
    assert conditions(talk)["Ready"][0] == "True"


def test_while_it_is_paused_nothing_of_it_is_synced_and_no_probe_runs() -> None:
    talk = runs(probed("a"))
    assert "a" in talk.probing
    assert "stop probing a" in ask(talk, Freeze.PAUSE)
    talk.see(running("a"))
    talk.done("a", changed=True, results=(PAUSED,))
    talk.see(frozen("a"))
    talk.probing_stopped("a")
    assert [talk.tick(after_s=200.0) for _ in range(3)] == [[], [], []]
    assert "sync a" not in talk.update(pod("a", image="v2"))
    # The pod goes on: first the processes, then the edit and the probes.
    assert "sync a" in ask(talk, Freeze.RESUME, ticket=2) + talk.see(frozen("a"))
    assert talk.syncs["a"].freeze is Freeze.RESUME
    assert "freeze 2: done" in talk.done("a", changed=True, results=(RESUMED,))
    assert "Resumed a" in talk.events
    assert "sync a" in talk.see(running("a"))
    assert not talk.syncs["a"].freeze


def test_an_agent_that_finds_it_paused_leaves_it_so() -> None:
    talk = Talk()
    talk.add("a")
    talk.ready()
    assert "sync a" not in talk.relist(frozen("a"))
    assert talk.told["a"].status.reason == "Paused"
    ask(talk, Freeze.RESUME)
    assert talk.syncs["a"].freeze is Freeze.RESUME


def test_it_can_be_deleted() -> None:
    talk = paused()
    said = talk.remove("a")
    assert "terminating a" in said + talk.see(frozen("a"))
    assert not talk.syncs["a"].freeze


def test_the_death_of_the_worker_loses_no_request() -> None:
    talk = runs()
    ask(talk, Freeze.PAUSE)
    talk.see(running("a"))
    slot = talk.slots["a"]
    talk.down(slot)
    talk.up(slot, 2)
    assert "sync a" in talk.see(running("a"))
    assert talk.syncs["a"].freeze is Freeze.PAUSE


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"results": (NO_CGROUP,)}, 'pod "a" cannot be paused: no cgroup'),
        ({"error": SyncError.UNAVAILABLE, "message": "Podman is away"}, 'pod "a" was not paused: Podman is away'),
    ],
)
def test_what_fails_is_told_and_the_pod_goes_on(answer: dict[str, Any], words: str) -> None:
    talk = runs()
    ask(talk, Freeze.PAUSE)
    talk.see(running("a"))
    assert f"freeze 1: {words}" in talk.done("a", changed=True, **answer)
    talk.tick(after_s=60.0)
    talk.see(running("a"))
    assert not talk.syncs["a"].freeze


def test_a_second_wish_replaces_the_first_one() -> None:
    talk = runs()
    ask(talk, Freeze.PAUSE)
    said = ask(talk, Freeze.RESUME, ticket=2)
    assert 'freeze 1: pod "a": somebody has asked for something else since' in said


def test_one_that_goes_down_meanwhile_ends_the_wish() -> None:
    talk = runs()
    ask(talk, Freeze.PAUSE)
    talk.see(running("a"))
    talk.remove("a")
    assert 'freeze 1: pod "a" ends meanwhile' in talk.done("a", cancelled=True)


@pytest.mark.parametrize(
    ("freeze", "name", "words"),
    [
        (Freeze.PAUSE, "nosuch", 'pods "nosuch" not found'),
        (Freeze.RESUME, "a", 'pod "a" is not paused'),
    ],
)
def test_what_cannot_be_is_refused_at_once(freeze: Freeze, name: str, words: str) -> None:
    assert f"freeze 1: {words}" in ask(runs(), freeze, name)


def test_a_pod_is_paused_once_and_only_while_it_runs() -> None:
    assert 'freeze 7: pod "a" is paused already' in ask(paused(), Freeze.PAUSE, ticket=7)
    talk = Talk()
    talk.ready()
    talk.add("a")
    talk.relist(absent("a"))
    assert 'freeze 1: pod "a" does not run: its phase is Pending' in ask(talk, Freeze.PAUSE)
    talk.remove("a")
    assert 'freeze 1: pod "a" ends or has ended' in ask(talk, Freeze.RESUME)


def test_no_container_of_a_paused_pod_is_restarted() -> None:
    with pytest.raises(RequestRefused, match='pod "a" is paused: resume it first'):
        paused().loop.container_restarts.request("default", "a", "main", None)
