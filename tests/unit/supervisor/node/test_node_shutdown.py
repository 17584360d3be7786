"""The node goes down: groups by priority, each in its time; nobody is admitted; and the way back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from supervisor.config.settings import Seconds
from supervisor.node.node_shutdown import GATHERING_S
from supervisor.protocol.events import NodeShutdownBegan, NodeShutdownCalledOff, ShutdownCause
from tests.support.dialogue import Talk, absent, exited, pod, running

CRITICAL = 2_000_000_000
HOST, DRAIN = ShutdownCause.HOST, ShutdownCause.DRAIN


def talk_of(*pods: Any, total_s: float = 30, critical_s: float = 10) -> Talk:
    talk = Talk(
        shutdown_grace_period_s=Seconds(total_s), shutdown_grace_period_critical_pods_s=Seconds(critical_s), rows=8
    )
    talk.start(*pods)
    return talk


def end(talk: Talk, uid: str) -> list[str]:
    """The pod's containers stop in time; what follows from that."""
    talk.see(running(uid))
    assert talk.syncs[uid].kind == "terminating"
    talk.done(uid)
    return talk.see(exited(uid, 137))


def two() -> tuple[Any, Any]:
    return pod("low", grace_s=40), pod("high", grace_s=2, priority=CRITICAL)


def test_critical_pods_end_last_each_within_its_time() -> None:
    talk = talk_of(*two())
    assert talk.say(NodeShutdownBegan(HOST)) == ["shutdown", "observe low"]
    assert "observe high" in end(talk, "low")
    assert talk.syncs["low"].grace_period_s == 20
    assert end(talk, "high")[-1] == "shutdown is over"
    assert talk.syncs["high"].grace_period_s == 2, "its own is shorter than the group's 10 s"
    status = talk.told["low"].status
    assert (status.phase, status.reason) == ("Failed", "Terminated")
    assert status.message == "Pod was terminated in response to imminent node shutdown."
    target = next(condition for condition in status.conditions if condition.type == "DisruptionTarget")
    assert (target.status, target.reason) == ("True", "TerminationByKubelet")


def test_the_next_group_does_not_wait_for_one_that_takes_too_long() -> None:
    talk = talk_of(*two())
    talk.say(NodeShutdownBegan(HOST))
    assert talk.tick(after_s=10) == []
    assert talk.tick(after_s=10) == ["observe high"]


def test_groups_share_what_logind_gives() -> None:
    talk = talk_of(pod("low", grace_s=40), pod("high", grace_s=40, priority=CRITICAL))
    talk.say(NodeShutdownBegan(HOST, available_s=6))
    end(talk, "low")
    end(talk, "high")
    assert (talk.syncs["low"].grace_period_s, talk.syncs["high"].grace_period_s) == (4, 2)


def test_no_pod_is_admitted_meanwhile_or_after() -> None:
    talk = talk_of(pod("low"))
    talk.say(NodeShutdownBegan(HOST))
    talk.add("late")
    end(talk, "low")
    talk.add("later")
    for uid in ("late", "later"):
        status = talk.told[uid].status
        assert (status.phase, status.reason) == ("Failed", "NodeShutdown")
        assert status.message == "Pod was rejected: Pod was rejected as the node is shutting down."
    assert "NodeShutdown late" in talk.events


def test_an_edit_meanwhile_is_there_when_the_pod_comes_back() -> None:
    talk = talk_of(pod("low"))
    talk.say(NodeShutdownBegan(DRAIN))
    assert "keep low" not in talk.update(pod("low", image="v2"))
    end(talk, "low")
    talk.done("low")
    talk.see(exited("low", 137))
    talk.say(NodeShutdownCalledOff(DRAIN))
    talk.done("low")
    talk.see(absent("low"))
    newest = talk.syncs["low"].pod
    assert newest is not None
    assert newest.spec.containers[0].image == "v2"


def test_a_refused_edit_of_a_pod_that_will_come_back_is_not_kept() -> None:
    talk = talk_of(pod("low"))
    talk.say(NodeShutdownBegan(DRAIN))
    talk.add("late")
    edited = pod("late")
    elsewhere = msgspec.structs.replace(edited.spec, node_selector={"zone": "another"})
    assert "keep late" in talk.update(msgspec.structs.replace(edited, spec=elsewhere))


def test_called_off_every_pod_comes_back() -> None:
    talk = talk_of(pod("low"))
    talk.say(NodeShutdownBegan(DRAIN))
    end(talk, "low")
    talk.done("low")
    talk.see(exited("low", 137))
    talk.add("late")
    assert talk.say(NodeShutdownCalledOff(DRAIN)) == ["shutdown called off", "terminated low"]
    talk.done("low")
    assert "sync low" in talk.see(absent("low"))
    talk.done("late")
    assert talk.see(absent("late")) == ["terminated late"]
    talk.done("late")
    assert "sync late" in talk.see(absent("late"))
    assert (talk.phase("low"), talk.phase("late")) == ("Pending", "Pending")


@pytest.mark.parametrize("period_s", [0, 30])
def test_a_drain_needs_no_configuration(period_s: int) -> None:
    talk = talk_of(pod("low", grace_s=7), total_s=period_s, critical_s=0)
    assert talk.say(NodeShutdownBegan(DRAIN)) == ["drain", "observe low"]
    assert end(talk, "low")[-1] == "drain is over"
    assert talk.syncs["low"].grace_period_s == 7


def test_a_second_notice_changes_nothing_and_the_hosts_makes_a_drain_urgent() -> None:
    talk = talk_of(pod("low", grace_s=100))
    talk.say(NodeShutdownBegan(DRAIN))
    assert talk.say(NodeShutdownBegan(DRAIN)) == []
    talk.see(running("low"))
    assert talk.syncs["low"].grace_period_s == 20
    assert talk.say(NodeShutdownBegan(HOST, available_s=3))[0] == "shutdown"
    assert talk.say(NodeShutdownBegan(HOST)) == []


def test_a_drained_node_stays_drained_when_the_host_stays_up() -> None:
    talk = talk_of(pod("low"))
    talk.say(NodeShutdownBegan(DRAIN))
    talk.say(NodeShutdownBegan(HOST))
    end(talk, "low")
    assert talk.say(NodeShutdownCalledOff(HOST)) == ["drain is over"]
    talk.add("late")
    assert talk.told["late"].status.reason == "NodeShutdown"
    assert talk.say(NodeShutdownCalledOff(HOST)) == []
    assert talk.say(NodeShutdownCalledOff(DRAIN))[0] == "shutdown called off"


def test_nobody_comes_back_by_an_uncordon_while_the_host_goes_down() -> None:
    talk = talk_of(pod("low"))
    talk.say(NodeShutdownBegan(HOST))
    assert talk.say(NodeShutdownBegan(DRAIN)) == ["shutdown"], "and the node is drained when it was called off"
    assert talk.say(NodeShutdownCalledOff(DRAIN)) == ["shutdown"]
    end(talk, "low")
    talk.add("late")
    assert talk.told["late"].status.reason == "NodeShutdown"
    assert "shutdown called off" in talk.say(NodeShutdownCalledOff(HOST))


def next_agent(cause: ShutdownCause) -> Talk:
    """An agent before it was killed in the midst, while both pods ran."""
    talk = Talk(shutdown_grace_period_s=Seconds(30.0), shutdown_grace_period_critical_pods_s=Seconds(10.0), rows=8)
    assert talk.say(NodeShutdownBegan(cause))[0] in ("shutdown", "drain")
    talk.add(*two())
    return talk


@pytest.mark.parametrize("cause", [HOST, DRAIN])
def test_the_next_agent_goes_on_in_order(cause: ShutdownCause) -> None:
    talk = next_agent(cause)
    assert [word for word in talk.ready() if word.startswith("term")] == []
    assert "terminating low" in talk.relist(running("low"), running("high"))
    assert "terminating high" in end(talk, "low"), "it was not synced before"
    assert end(talk, "high")[-1].endswith("is over")
    assert {talk.told[uid].status.reason for uid in ("low", "high")} == {"Terminated"}


def test_the_next_agent_does_not_wait_for_good_for_its_sources() -> None:
    talk = next_agent(HOST)
    talk.relist(running("low"), running("high"))
    assert "terminating low" in talk.tick(after_s=GATHERING_S)


def test_a_source_that_nobody_can_read_delays_nothing_later() -> None:
    talk = Talk(shutdown_grace_period_s=Seconds(30.0), rows=8)
    talk.add(pod("low"))
    talk.relist()
    talk.tick(after_s=GATHERING_S)
    talk.done("low")
    assert talk.say(NodeShutdownBegan(HOST)) == ["shutdown", "observe low"]
    talk.see(running("low"))
    assert talk.syncs["low"].kind == "terminating"


def test_the_next_agent_starts_nothing() -> None:
    talk = next_agent(HOST)
    talk.add("late")
    assert [word for word in talk.relist(running("low"), exited("high")) if word.startswith("sync")] == []
    assert [word for word in talk.ready() if word.startswith("sync")] == []
    assert {uid: talk.told[uid].status.reason for uid in ("high", "late")} == {
        "high": "Terminated",
        "late": "NodeShutdown",
    }
    end(talk, "low")
    assert talk.tick() == ["shutdown is over"]


def test_the_next_agent_is_told_that_the_host_stays_up() -> None:
    talk = next_agent(HOST)
    talk.relist(running("low"), running("high"))
    assert "sync low" in talk.say(NodeShutdownCalledOff(HOST))


def test_stop_of_all_pods_ends_critical_ones_last() -> None:
    talk = talk_of(*two())
    assert talk.stop_pods() == ["relist", "observe low"]
    talk.see(running("low"))
    talk.done("low")
    talk.see(exited("low"))
    talk.done("low")
    assert "observe high" in talk.see(absent("low"))
    assert talk.syncs["low"].grace_period_s == 40, "their own"


def test_critical_pods_begin_first() -> None:
    talk = Talk()
    talk.ready()
    talk.add(*two())
    assert [word for word in talk.relist() if word.startswith("sync")] == ["sync high", "sync low"]


def test_an_empty_node_is_down_at_once() -> None:
    assert talk_of().say(NodeShutdownBegan(HOST)) == ["shutdown", "shutdown is over"]
    assert talk_of().say(NodeShutdownCalledOff(DRAIN)) == []
