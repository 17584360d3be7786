"""A pod that takes more than it may: it fails, goes down at once, and stays down, whatever becomes of the agent."""

from __future__ import annotations

from ipc.k8s.kubecontainer.pod_failure import PodFailure
from supervisor.protocol.events import EvictionsRestored
from supervisor.protocol.source_updates import PodOperation
from tests.support.dialogue import Talk, absent, exited, pod, restless, running

MESSAGE = 'Usage of EmptyDir volume "v" exceeds the limit "1Mi". '
FAILURE = PodFailure(reason="Evicted", message=MESSAGE)


def evicted(talk: Talk) -> list[str]:
    """Pod a runs, and its next sync finds that it has to go."""
    talk.start(restless("a"))
    talk.tick(after_s=100.0)
    return talk.done("a", evicted=MESSAGE)


def test_it_fails_at_once_and_its_containers_go() -> None:
    talk = Talk()
    assert evicted(talk) == ["observe a"]
    assert talk.see(running("a")) == ["terminating a"]
    assert talk.syncs["a"].grace_period_s == 1
    assert talk.events == ["Evicted a"]
    assert talk.phase("a") == "Running", "its containers are not down yet"
    talk.done("a")
    assert talk.see(exited("a", 137)) == ["terminated a"]
    assert talk.syncs["a"].evicted == FAILURE
    talk.done("a", changed=True)
    talk.see(absent("a"))
    status = talk.told["a"].status
    assert (status.phase, status.reason, status.message) == ("Failed", "Evicted", MESSAGE)
    [main] = status.container_statuses
    assert main.state.terminated is not None
    assert main.state.terminated.exit_code == 137, "what was seen of it stays"
    assert talk.tick(after_s=100.0) == []
    assert talk.events == ["Evicted a"], "told once"


def test_the_next_agent_does_not_run_it() -> None:
    talk = Talk()
    talk.say(EvictionsRestored({"a": FAILURE}))
    talk.add("a", "b")
    assert talk.phase("a") == "Pending", "nobody knows yet that nothing of it runs"
    talk.ready()
    assert talk.relist() == ["terminated a", "sync b"]
    assert (talk.phase("a"), talk.told["a"].status.reason) == ("Failed", "Evicted")
    assert talk.events == []


def test_a_pod_of_that_uid_that_comes_later_is_another_one() -> None:
    talk = Talk()
    talk.say(EvictionsRestored({"a": FAILURE}))
    talk.ready()
    talk.add("a")
    assert talk.relist() == ["sync a"]


def test_who_goes_anyway_is_not_evicted() -> None:
    talk = Talk()
    talk.start("a")
    talk.tick(after_s=100.0)
    talk.remove("a")
    talk.done("a", evicted=MESSAGE)
    talk.see(running("a"))
    assert talk.syncs["a"].remove
    assert talk.syncs["a"].grace_period_s == 30
    assert talk.events == []


def test_who_gets_the_room_of_a_pod_that_an_agent_before_has_evicted_waits_for_its_end() -> None:
    talk = Talk(max_pods=1)
    talk.say(EvictionsRestored({"a": FAILURE}))
    talk.update(pod("b", priority=2_000_000_000), pod("a"), op=PodOperation.RESTORE)
    assert talk.relist(running("a")) == ["terminating a"]
    talk.done("a")
    assert "sync b" in talk.see(exited("a", 137))
