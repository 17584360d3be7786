"""Reports of workers about a pod have none of its Secrets' values, in events, statuses and the log."""

from __future__ import annotations

import base64

import msgspec
import pytest

from ipc.k8s.api.v1.config_objects import Secret
from ipc.k8s.api.v1.env import EnvFromSource, SecretEnvSource
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.status import ContainerStateTerminated
from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from ipc.k8s.podobjects.redaction import MAX_VALUES_BYTES, WITHHELD
from ipc.link.messages.base import EventReport
from ipc.link.messages.event_reasons import EventType
from ipc.link.messages.node_worker import ObservationFailed
from ipc.link.messages.pod_worker import SyncAction, SyncResult
from ipc.link.messages.sync_error import SyncError
from supervisor.protocol.events import EndsRestored
from tests.support.dialogue import Talk, exited, pod

VALUE = b"planted-4c1fe5d0"
FAILED = "Readiness probe failed: "


def secret(value: bytes = VALUE) -> Secret:
    return Secret(metadata=ObjectMeta(name="s", namespace="default"), data={"key": value}, type="Opaque")


def using(uid: str) -> Pod:
    plain = pod(uid)
    (main,) = plain.spec.containers
    sources = (EnvFromSource(secret_ref=SecretEnvSource(name="s", optional=True)),)
    containers = (msgspec.structs.replace(main, env_from=sources),)
    return msgspec.structs.replace(plain, spec=msgspec.structs.replace(plain.spec, containers=containers))


def talk_with(*secrets: Secret) -> Talk:
    talk = Talk()
    talk.ready()
    talk.relist()
    talk.state(*secrets)
    talk.start(using("a"))
    return talk


def told_of(talk: Talk, text: str, type: EventType = EventType.WARNING) -> str:
    """As the event of a probe."""
    message = f"{FAILED}{text}"
    talk.say(EventReport(uid="a", namespace="default", name="a", type=type, reason="Unhealthy", message=message))
    return talk.loop.durable.events.events()[-1].message.removeprefix(FAILED)


def ended_saying(message: str, **fields: bool) -> RuntimePodStatus:
    view = exited("a", exit_code=1)
    containers = tuple(msgspec.structs.replace(each, message=message, **fields) for each in view.containers)
    return msgspec.structs.replace(view, containers=containers)


def crash_trace(talk: Talk) -> str:
    [main] = talk.told["a"].status.container_statuses
    ended: ContainerStateTerminated | None = main.state.terminated or main.last_state.terminated
    assert ended is not None
    return ended.message


def test_an_event_has_no_value() -> None:
    talk = talk_with(secret())
    encoded = base64.b64encode(b"user:" + VALUE).decode()
    assert told_of(talk, f"it is {VALUE.decode()}!") == "it is <secret>!"
    assert encoded[8:-4] not in told_of(talk, encoded)


def test_a_value_that_is_cut_leaves_no_half() -> None:
    talk = talk_with(secret(b"0123456789" * 20))
    for length in range(1990, 2060, 7):
        assert "01234" not in told_of(talk, "-" * (length - len(FAILED) - 150) + "0123456789" * 20)


def test_a_value_that_was_replaced_is_known_still() -> None:
    talk = talk_with(secret())
    talk.state(secret(b"another-value"))
    assert told_of(talk, f"{VALUE.decode()} another-value") == "<secret> <secret>"
    talk.retract(secret(b"another-value"))
    assert told_of(talk, "another-value") == "<secret>"


def test_what_may_hold_an_unknown_value_is_withheld() -> None:
    talk = Talk()
    talk.add(using("a"))
    assert told_of(talk, "a") == WITHHELD or talk.loop.durable.events.events()[-1].message == WITHHELD
    assert told_of(talk, "a", EventType.NORMAL) == "a"
    talk.state(secret())
    talk.ready()
    assert told_of(talk, "a") == "a"


def test_beyond_the_maximum_texts_are_withheld() -> None:
    told_of(talk := talk_with(secret(b"x" * (MAX_VALUES_BYTES + 1))), "anything")
    assert talk.loop.durable.events.events()[-1].message == WITHHELD


def test_the_last_words_of_a_container_have_no_value() -> None:
    talk = talk_with(secret())
    talk.see(ended_saying(f"it was {VALUE.decode()}\r\n"))
    assert crash_trace(talk) == "it was <secret>\r\n"


def test_last_words_that_were_cut_leave_no_half() -> None:
    talk = talk_with(secret())
    talk.see(ended_saying(f"{VALUE.decode()[3:]} and more words {VALUE.decode()[:13]}", message_cut=True))
    assert "4c1f" not in crash_trace(talk)
    assert "plant" not in crash_trace(talk)


def test_last_words_are_told_when_the_secret_is_known() -> None:
    """Also those of a pod that no sync comes for any more."""
    talk = Talk()
    talk.add(using("a"))
    talk.relist()
    talk.see(ended_saying(VALUE.decode()))
    assert crash_trace(talk) == WITHHELD
    talk.state(secret())
    assert crash_trace(talk) == "<secret>"


def test_what_is_kept_of_an_end_has_no_value_and_is_made_fit_once() -> None:
    talk = talk_with(secret(b"secret"))
    view = ended_saying(f"{'-' * 40} a secret {'-' * 40}", message_cut=True)
    for _ in range(3):  # as it is observed, and as it is remembered when it is gone
        talk.see(view)
        [end] = talk.loop.durable.ended_containers.everything()["a"].runs
        assert end.message == f"{'-' * 25} a <secret> {'-' * 25}"
        assert crash_trace(talk) == end.message
        view = msgspec.structs.replace(view, containers=())


def test_what_was_told_while_the_secrets_were_known_is_kept_through_a_restart() -> None:
    before = talk_with(secret())
    before.see(ended_saying(f"it was {VALUE.decode()}"))
    after = Talk()
    after.say(EndsRestored(before.loop.durable.ended_containers.everything(), 0.0))
    after.add(using("a"))
    after.relist()
    after.see(ended_saying(f"it was {VALUE.decode()}"))
    [end] = after.loop.durable.ended_containers.everything()["a"].runs
    assert end.message == "it was <secret>"


def test_the_results_of_a_sync_have_no_value() -> None:
    talk = talk_with(secret())
    talk.update(using("a"))
    failed = SyncResult(
        action=SyncAction.START_CONTAINER,
        target="main",
        error=SyncError.RUN_CONTAINER,
        message=f"`{VALUE.decode()}`\x1b",
    )
    talk.see(exited("a"))
    talk.done("a", results=(failed,), error=SyncError.INTERNAL, message=VALUE.decode(), summary="s")
    [main] = talk.told["a"].status.container_statuses
    assert main.state.waiting is not None
    assert main.state.waiting.message == r"`<secret>`\x1b"
    assert talk.logs
    assert VALUE.decode() not in "".join(talk.logs)


def test_a_look_that_failed_has_no_value() -> None:
    talk = talk_with(secret())
    talk.say(ObservationFailed(uid="a", message=VALUE.decode()))
    assert talk.loop.durable.events.events()[-1].message == "error determining status: <secret>"


@pytest.mark.parametrize("text", ["\udcff", "\u202e", "\x1b]0;x\x07"])
def test_an_event_is_safe(text: str) -> None:
    assert told_of(talk_with(), text).isprintable()
