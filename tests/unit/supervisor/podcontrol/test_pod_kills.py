"""A pod that the agent ends for a reason: grace, status, condition, events, and who waits for it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ipc.host.clock import Instant
from ipc.k8s.kubecontainer.pod_failure import PodFailure, decode_failure, encode_failure
from ipc.link.messages import event_reasons
from supervisor.podcontrol.pod_kills import PodKill
from supervisor.protocol.events import EvictionsRestored
from tests.support.dialogue import Talk, absent, exited, pod, restless, running

FAILURE = PodFailure(reason="Evicted", message="The node was low. ", disruption="The node was low. ")


class End(msgspec.Struct, frozen=True):
    """An event whose handler ends a pod, as eviction, preemption and shutdown do."""

    uid: str
    kill: PodKill


class Ending:
    """A conversation with a loop that knows such events; ``told`` is what whoever waits was told."""

    def __init__(self, *pods: Any) -> None:
        self.talk = Talk()
        self.told: list[tuple[str, bool]] = []
        self.talk.loop.handlers.on(End, self._end)
        self.talk.start(*pods)

    def end(self, uid: str, **how: Any) -> list[str]:
        """The answer to the view that is asked for then."""
        assert self.talk.say(End(uid, PodKill(failure=FAILURE, **how))) == [f"observe {uid}"]  # type: ignore[arg-type]
        return self.talk.see(running(uid))

    def _end(self, event: End, now: Instant) -> None:
        state = self.talk.loop.state(event.uid)
        assert state is not None
        self.talk.loop.kills.kill(state, event.kill, now, lambda ok, _: self.told.append((event.uid, ok)))


def test_it_goes_down_and_whoever_waits_is_told_when_nothing_of_it_runs() -> None:
    ending = Ending(pod("a", grace_s=30))
    talk = ending.talk
    note = {"starved_resource": "memory"}
    assert ending.end("a", grace_period_s=1, event=event_reasons.EVICTED, annotations=note) == ["terminating a"]
    assert talk.syncs["a"].grace_period_s == 1
    assert talk.syncs["a"].evicted == FAILURE, "kept before anything is stopped"
    assert talk.events == ["Evicted a"]
    assert (talk.phase("a"), ending.told) == ("Running", [])
    assert "DisruptionTarget" not in conditions(talk), "not before its last phase"
    talk.done("a")
    assert ending.told == []
    talk.see(exited("a", 137))
    assert ending.told == [("a", True)]
    status = talk.told["a"].status
    assert (status.phase, status.reason, status.message) == ("Failed", "Evicted", FAILURE.message)
    assert conditions(talk)["DisruptionTarget"] == ("True", "TerminationByKubelet", FAILURE.message)
    assert ending.talk.loop.durable.events.events()[-1].metadata.annotations == note


@pytest.mark.parametrize(("grace_s", "override_s", "late_after_s"), [(30, 1, 10.0), (30, 20, 30.0), (30, None, 45.0)])
def test_nobody_waits_longer_than_is_reasonable(grace_s: int, override_s: int | None, late_after_s: float) -> None:
    ending = Ending(pod("a", grace_s=grace_s))
    ending.end("a", grace_period_s=override_s)
    ending.talk.tick(after_s=late_after_s - 4.0)
    assert ending.told == []
    ending.talk.tick(after_s=2.0)
    assert ending.told == [("a", False)]
    assert ending.talk.events == ["ExceededGracePeriod a"]
    ending.talk.done("a")
    ending.talk.see(exited("a", 137))
    assert ending.told == [("a", False)], "told once"


def test_a_sync_under_way_is_cancelled() -> None:
    ending = Ending(restless("a"))
    ending.talk.tick(after_s=100.0)
    kill = PodKill(failure=FAILURE)
    assert ending.talk.say(End("a", kill)) == ["cancel a"]  # type: ignore[arg-type]


def test_all_who_wait_for_one_pod_are_told() -> None:
    ending = Ending(pod("a", grace_s=30))
    ending.end("a", grace_period_s=1)
    ending.talk.say(End("a", PodKill(failure=FAILURE, grace_period_s=1)))  # type: ignore[arg-type]
    ending.talk.done("a")
    ending.talk.see(exited("a", 137))
    assert ending.told == [("a", True), ("a", True)]


def test_a_pod_that_is_removed_meanwhile_has_ended() -> None:
    ending = Ending("a")
    ending.end("a", grace_period_s=1)
    ending.talk.remove("a")
    ending.talk.done("a", cancelled=True)
    ending.talk.see(running("a"))
    ending.talk.done("a")
    ending.talk.see(exited("a"))
    assert ending.told == [("a", True)]


def test_one_that_is_not_evicted_keeps_its_containers_and_runs_with_the_next_agent() -> None:
    ending = Ending("a")
    ending.end("a", evict=False)
    assert ending.talk.syncs["a"].evicted is None
    ending.talk.done("a")
    ending.talk.see(exited("a", 0))
    assert ending.talk.syncs["a"].evicted is None
    assert (ending.talk.phase("a"), ending.told) == ("Failed", [("a", True)])


def test_the_next_agent_says_why_it_does_not_run() -> None:
    talk = Talk()
    talk.say(EvictionsRestored({"a": FAILURE}))
    talk.add("a")
    talk.ready()
    talk.relist()
    talk.done("a", changed=True)
    talk.see(absent("a"))
    assert talk.phase("a") == "Failed"
    assert conditions(talk)["DisruptionTarget"][0] == "True"


def test_a_failure_is_kept_as_text() -> None:
    assert decode_failure(encode_failure(FAILURE)) == FAILURE
    assert decode_failure("too large") == PodFailure(reason="Evicted", message="too large"), "as it was written once"


def conditions(talk: Talk) -> dict[str, tuple[str, str, str]]:
    return {c.type: (c.status, c.reason, c.message) for c in talk.told["a"].status.conditions}
