"""One table says how labels are written and read: what is written is read again, what is spoiled counts as absent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from ipc.k8s.api.v1.probe import ExecAction, LifecycleHandler
from workers.kubecontainer import labels
from workers.kubecontainer.labels import ContainerLabels, SandboxLabels, read_container, read_sandbox, read_uid, write

UID = "0c3ad6a8-0000-4000-8000-000000000001"
OF_POD: dict[str, Any] = {
    "instance": "one",
    "pod_name": "web.example",
    "pod_namespace": "default",
    "pod_uid": UID,
    "grace_period_s": 2**63 - 1,
    "attempt": labels.MAX_ATTEMPT,
    "hash": "0123456789abcdef",
}
SANDBOX = SandboxLabels(**OF_POD, host_network=True)
CONTAINER = ContainerLabels(
    **OF_POD,
    name="main",
    backoff_s=20.5,
    leaves_processes=True,
    pre_stop=LifecycleHandler(exec=ExecAction(command=("sh", "-c", "echo 'ä\x00\n'"))),
    termination_message_path="/dev/termination log\n",
    termination_message_policy="FallbackToLogsOnError",
)
Own = SandboxLabels | ContainerLabels
READ: dict[type[Own], Callable[[dict[str, str]], Own]] = {SandboxLabels: read_sandbox, ContainerLabels: read_container}


@pytest.mark.parametrize("own", [SANDBOX, CONTAINER, SandboxLabels(), ContainerLabels()])
def test_what_is_written_is_read_again(own: Own) -> None:
    assert READ[type(own)](write(own)) == own


@pytest.mark.parametrize(("kind", "table"), [(SandboxLabels, labels.SANDBOX), (ContainerLabels, labels.CONTAINER)])
def test_every_field_has_a_label_that_is_always_written(kind: type[Own], table: labels.Table) -> None:
    """Else an image could supply it."""
    assert {field.name for field in msgspec.structs.fields(kind)} == table.keys()
    assert write(kind()).keys() == {key for key, _ in table.values()}


HOSTILE = {
    "five thousand digits": "9" * 5000,
    "more than 64 bits": "9" * 23,
    "a negative number": "-1",
    "no ASCII digit": "²",
    "not a number": "nan",
    "endless": "inf",
    "a word": "yes please",
    "a path": "../../../etc",
    "a line break": "a\nb",
    "nested": "[" * 100_000,
    "ten megabytes": "a" * 10_000_000,
    "a lone surrogate": '{"exec":{"command":["\ud800"]}}',
    "null": "null",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_no_text_makes_reading_fail(text: str) -> None:
    """Only what could be ours gets in: a short word."""
    sandbox = read_sandbox({key: text for key, _ in labels.SANDBOX.values()})
    container = read_container({key: text for key, _ in labels.CONTAINER.values()})
    assert (sandbox.attempt, sandbox.grace_period_s, sandbox.host_network) == (0, 30, False)
    assert sandbox.active_since == ""
    assert (container.attempt, container.grace_period_s, container.backoff_s) == (0, 30, 0.0)
    assert (container.pre_stop, container.leaves_processes) == (None, False)
    assert len(msgspec.msgpack.encode(container)) < 1000
    assert read_uid({labels.POD_UID: text}) == container.pod_uid
    for word in (container.pod_uid, container.name, container.pod_name, container.pod_namespace, container.hash):
        assert word in ("", text)
        assert not set("/\n ") & set(word)


@pytest.mark.parametrize(
    ("key", "text", "field", "value"),
    [
        (labels.ATTEMPT, "2147483647", "attempt", 2147483647),
        (labels.ATTEMPT, "2147483648", "attempt", 0),
        (labels.ATTEMPT, "0000000003", "attempt", 3),
        (labels.ATTEMPT, "00000000003", "attempt", 0),
        (labels.GRACE_PERIOD_S, "9223372036854775807", "grace_period_s", 2**63 - 1),
        (labels.GRACE_PERIOD_S, "9223372036854775808", "grace_period_s", 30),
        (labels.BACKOFF_S, "86400", "backoff_s", 86400.0),
        (labels.BACKOFF_S, "86401", "backoff_s", 0.0),
        (labels.BACKOFF_S, "1e308", "backoff_s", 0.0),
        (labels.POD_UID, "a" * 63, "pod_uid", "a" * 63),
        (labels.POD_UID, "a" * 64, "pod_uid", ""),
        (labels.POD_NAME, "a" * 254, "pod_name", ""),
        (labels.CONTAINER_HASH, "0123456789abcdef", "hash", "0123456789abcdef"),
        (labels.CONTAINER_HASH, "0123456789abcdeg", "hash", ""),
        (labels.LEAVES_PROCESSES, "True", "leaves_processes", False),
    ],
)
def test_bounds(key: str, text: str, field: str, value: object) -> None:
    assert getattr(read_container({key: text}), field) == value
