"""Restarts of single containers in the sync loop: what is refused, what a sync is told, and when a request is over."""

from __future__ import annotations

import msgspec
import pytest

from ipc.k8s.api.v1.container import Container, EphemeralContainer
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimePodStatus
from supervisor.protocol.commands import NOTHING, RestsOn
from supervisor.protocol.events import ContainerRestartsRestored
from supervisor.protocol.refusals import RequestRefused
from tests.support.dialogue import POD_SLOT, Talk, absent, exited, pod, running


def ask(talk: Talk, uid: str, container: str = "main", grace_period_s: int | None = None) -> list[str]:
    return talk.say(talk.loop.container_restarts.request("default", uid, container, grace_period_s))


def successor(uid: str) -> RuntimePodStatus:
    seen = running(uid)
    (main,) = seen.containers
    return msgspec.structs.replace(seen, containers=(msgspec.structs.replace(main, id="next", attempt=1),))


def test_the_next_sync_carries_it_out_and_the_successor_ends_it() -> None:
    talk = Talk()
    talk.start("a", "b")
    assert ask(talk, "a", grace_period_s=0) == ["observe a"]
    assert talk.see(running("a")) == ["sync a"]
    assert talk.syncs["a"].restarts == {"c-a": 1}
    assert "RestartRequested a" in talk.events
    version = talk.loop.durable.requested_restarts.version
    assert talk.rests_on == {"a": RestsOn(restarts=version), "b": NOTHING}, "who forgets it would leave it down"
    talk.see(successor("a"))
    assert talk.loop.durable.requested_restarts.everything() == {}
    assert talk.loop.durable.requested_restarts.version > version


def test_it_outlives_a_sync_that_died_between_stop_and_start() -> None:
    talk = Talk()
    talk.start(pod("a", policy="Never"))
    ask(talk, "a")
    ended = msgspec.structs.replace(exited("a", 143), sandboxes=running("a").sandboxes)
    assert talk.see(ended) == ["sync a"]
    assert talk.phase("a") == "Running"
    talk.down(POD_SLOT)
    talk.up(POD_SLOT, 2)
    assert talk.see(ended) == ["sync a"]
    assert talk.syncs["a"].restarts == {"c-a": None}


def test_an_agent_that_died_is_asked_again_and_forgets_pods_that_nobody_wants() -> None:
    talk = Talk()
    talk.say(ContainerRestartsRestored({"a": {"c-a": 5}, "gone": {"x": None}}))
    talk.add("a")
    talk.ready()
    talk.relist(running("a"))
    assert talk.syncs["a"].restarts == {"c-a": 5}
    assert talk.loop.durable.requested_restarts.everything() == {"a": {"c-a": 5}}


def test_a_pod_that_is_gone_has_no_requests() -> None:
    talk = Talk()
    talk.start("a")
    ask(talk, "a")
    talk.done("a")
    talk.remove("a")
    while "a" in talk.syncs and talk.loop.state("a") is not None:
        talk.done("a", changed=True)
        talk.see(absent("a"))
    assert talk.loop.durable.requested_restarts.everything() == {}


def with_others(uid: str) -> Pod:
    """With a container of each kind."""
    made = pod(uid)
    spec = msgspec.structs.replace(
        made.spec,
        init_containers=(
            Container(name="first", image="v1"),
            Container(name="side", image="v1", restart_policy="Always"),
        ),
        ephemeral_containers=(EphemeralContainer(name="look", image="v1"),),
    )
    return msgspec.structs.replace(made, spec=spec)


@pytest.mark.parametrize(
    ("name", "container", "words"),
    [
        ("nosuch", "main", 'pods "nosuch" not found'),
        ("a", "nosuch", 'container "nosuch" not found in pod "a": it has first, side, main, look'),
        ("a", "look", 'container "look" of pod "a" is an ephemeral container, which never starts again'),
        (
            "a",
            "first",
            'container "first" of pod "a" is an init container and has done its work: '
            "restart the pod, and it runs again",
        ),
        ("a", "side", 'container "side" of pod "a" has not started yet'),
    ],
)
def test_what_cannot_be_restarted_is_refused_in_words(name: str, container: str, words: str) -> None:
    talk = Talk()
    talk.start(with_others("a"))
    with pytest.raises(RequestRefused) as refused:
        ask(talk, name, container)
    assert str(refused.value) == words


def test_an_init_container_at_work_is_refused_too() -> None:
    talk = Talk()
    talk.start(with_others("a"))
    seen = running("a")
    first = msgspec.structs.replace(seen.containers[0], name="first", id="f", state=ContainerState.RUNNING)
    talk.see(msgspec.structs.replace(seen, containers=(first,)))
    with pytest.raises(RequestRefused, match="is an init container and is at work"):
        ask(talk, "a", "first")


def test_a_pod_that_ends_has_nothing_to_restart() -> None:
    talk = Talk()
    talk.start("a")
    talk.remove("a")
    with pytest.raises(RequestRefused, match='pod "a" ends or has ended'):
        ask(talk, "a")
