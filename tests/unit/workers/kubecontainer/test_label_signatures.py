"""Labels that are believed: what this agent has signed under that name, and what is older than its key."""

from __future__ import annotations

import hmac
from typing import Any

import msgspec
import pytest

from ipc.k8s.kubecontainer.label_key import SANDBOX_KEYS, LabelKey, signs_sandbox
from tests.support.runtime_values import UID, infra, inspected, listed, listed_pod
from workers.kubecontainer import labels
from workers.kubecontainer.label_signatures import Ownership
from workers.kubecontainer.labels import ContainerLabels, SandboxLabels, write

KEY = LabelKey(secret=b"k" * 32, made_at=1000.0)
ONE = Ownership(instance="one", key=KEY)
OF_POD: dict[str, Any] = {"instance": "one", "pod_name": "web", "pod_namespace": "default", "pod_uid": UID}
SANDBOX = write(SandboxLabels(**OF_POD, attempt=1))
CONTAINER = write(ContainerLabels(**OF_POD, name="main", attempt=2))
SANDBOX_NAME = "web_default_0c3ad6a8_1"
INFRA_NAME = f"{SANDBOX_NAME}_infra"
CONTAINER_NAME = "main_web_default_0c3ad6a8_2"
OLD, NEW = 999.0, 1001.0


def owns(
    found: dict[str, str], name: str = CONTAINER_NAME, created_at: float = NEW, ownership: Ownership = ONE
) -> bool:
    """Words about a container in a list are also those in an inspect."""
    shown = (
        ownership.owns(listed("c", name=name, labels=found, created_at=created_at)),
        ownership.owns(inspected("c", name=name, labels=found, created_at=created_at)),
    )
    assert shown[0] is shown[1]
    return shown[0]


def test_what_is_signed_is_ours() -> None:
    assert owns(ONE.signed_container(CONTAINER_NAME, CONTAINER))


def test_a_sandbox_and_its_infra_container_are_ours() -> None:
    own = ONE.signed_sandbox(SANDBOX_NAME, SANDBOX)
    assert ONE.owns_pod(listed_pod(name=SANDBOX_NAME, labels=own, created_at=NEW))
    assert ONE.owns(infra(name=INFRA_NAME, labels=own, created_at=NEW))
    assert ONE.owns(listed("i", name=INFRA_NAME, is_infra=True, labels=own, created_at=NEW))


@pytest.mark.parametrize("name", ["keen_turing", "", SANDBOX_NAME, f"{CONTAINER_NAME}_infra", CONTAINER_NAME.upper()])
def test_a_copy_has_another_name(name: str) -> None:
    assert not owns(ONE.signed_container(CONTAINER_NAME, CONTAINER), name)


@pytest.mark.parametrize("name", ["keen_turing", "_infra", SANDBOX_NAME, f"{INFRA_NAME}_infra"])
def test_a_copy_of_a_sandbox_has_another_name(name: str) -> None:
    own = ONE.signed_sandbox(SANDBOX_NAME, SANDBOX)
    assert not ONE.owns(infra(name=name, labels=own, created_at=NEW))
    if name != SANDBOX_NAME:
        assert not ONE.owns_pod(listed_pod(name=name, labels=own, created_at=NEW))


def test_a_container_cannot_speak_for_a_sandbox_nor_the_other_way_round() -> None:
    for own in (ONE.signed_container("x", CONTAINER), ONE.signed_sandbox("x", CONTAINER)):
        found = listed("c", name="x", labels=own, created_at=NEW)
        as_infra = listed("c", name="x_infra", is_infra=True, labels=own, created_at=NEW)
        assert ONE.owns(found) is not ONE.owns(as_infra)


@pytest.mark.parametrize("key", CONTAINER)
@pytest.mark.parametrize("change", ["", "1", "9" * 5000, "\ud800"], ids=["none", "another", "long", "surrogate"])
def test_each_label_that_is_read_is_signed(key: str, change: str) -> None:
    own = ONE.signed_container(CONTAINER_NAME, {**CONTAINER, key: "2"})
    assert not owns({**own, key: change})
    assert not owns({other: text for other, text in own.items() if other != key})


def test_labels_cannot_trade_their_texts() -> None:
    own = ONE.signed_container(CONTAINER_NAME, {**CONTAINER, labels.POD_NAME: "a", labels.POD_NAMESPACE: "bc"})
    assert not owns({**own, labels.POD_NAME: "ab", labels.POD_NAMESPACE: "c"})


def test_other_labels_do_not_matter() -> None:
    assert owns({**ONE.signed_container(CONTAINER_NAME, CONTAINER), "maintainer": "x", labels.SANDBOX_HASH: "x"})


@pytest.mark.parametrize("signature", ["", "1:", "1:" + "0" * 64, "x" * 1_000_000, "ä", "\ud800"])
def test_no_other_text_is_a_signature(signature: str) -> None:
    assert not owns({**CONTAINER, labels.SIGNATURE: signature})


def test_another_agent_signs_otherwise() -> None:
    for other in (
        Ownership(instance="one", key=LabelKey(secret=b"l" * 32, made_at=KEY.made_at)),
        Ownership(instance="two", key=KEY),
    ):
        own = other.signed_container(CONTAINER_NAME, {**CONTAINER, labels.INSTANCE: other.instance})
        assert owns(own, ownership=other)
        assert not owns(own)


OLD_FORM = (
    f'["1","sandbox","{SANDBOX_NAME}",[["rootlet.dev/instance","one"],["io.kubernetes.pod.name","web"],'
    f'["io.kubernetes.pod.namespace","default"],["io.kubernetes.pod.uid","{UID}"],'
    '["rootlet.dev/termination-grace-period-seconds","30"],["rootlet.dev/attempt","1"],'
    '["rootlet.dev/sandbox-hash",""],["rootlet.dev/host-network","false"]]]'
)
NEW_FORM = OLD_FORM.replace('["1"', '["2"').replace(
    '["rootlet.dev/attempt","1"],', '["rootlet.dev/attempt","1"],["rootlet.dev/resources","{}"],'
)


def signature(version: int, form: str) -> str:
    return f"{version}:{hmac.new(KEY.secret, form.encode(), 'sha256').hexdigest()}"


def test_what_an_older_version_has_signed_stays_ours_without_the_labels_that_came_later() -> None:
    signed = {key: text for key, text in SANDBOX.items() if key != labels.RESOURCES}
    signed |= {labels.SIGNATURE: signature(1, OLD_FORM)}
    planted = {**signed, labels.RESOURCES: '{"limits":{"cpu":"1"}}'}
    for found in (signed, planted):
        assert ONE.owns_pod(listed_pod(name=SANDBOX_NAME, labels=found, created_at=NEW))
        assert labels.read_sandbox(found).resources is None
    raised = {**signed, labels.SIGNATURE: signed[labels.SIGNATURE].replace("1:", "2:", 1)}
    assert not ONE.owns_pod(listed_pod(name=SANDBOX_NAME, labels=raised, created_at=NEW))


def test_what_is_signed_stays_signed_in_later_versions() -> None:
    """Another form makes strangers of all containers that run: who needs one has to go on reading this one."""
    own = ONE.signed_sandbox(SANDBOX_NAME, SANDBOX)
    assert own["rootlet.dev/signature"] == signature(2, NEW_FORM.replace('"{}"', '"' + own[labels.RESOURCES] + '"'))
    assert tuple(key for key, _ in labels.CONTAINER.values()) == (
        "rootlet.dev/instance",
        "io.kubernetes.pod.name",
        "io.kubernetes.pod.namespace",
        "io.kubernetes.pod.uid",
        "rootlet.dev/termination-grace-period-seconds",
        "rootlet.dev/attempt",
        "rootlet.dev/resources",
        "rootlet.dev/container-hash",
        "io.kubernetes.container.name",
        "rootlet.dev/restart-backoff-seconds",
        "rootlet.dev/leaves-processes",
        "io.kubernetes.container.preStopHandler",
        "io.kubernetes.container.terminationMessagePath",
        "io.kubernetes.container.terminationMessagePolicy",
        "rootlet.dev/devices",
        "rootlet.dev/image-volumes",
    )


def test_devices_are_signed_where_there_are_any() -> None:
    """A container without one stays known to an agent that knows no such label."""
    devices = {"example.com/gpu": ("g0",)}
    given = write(ContainerLabels(**OF_POD, name="main", attempt=2, devices=devices))
    signed = [ONE.signed_container(CONTAINER_NAME, each) for each in (CONTAINER, given)]
    assert [each[labels.SIGNATURE].partition(":")[0] for each in signed] == ["2", "3"]
    assert [dict(labels.read_container(each).devices) for each in signed] == [{}, devices]
    planted = {**signed[0], labels.DEVICES: given[labels.DEVICES]}
    assert owns(planted)
    assert labels.read_container(planted).devices == {}
    assert not owns({**signed[1], labels.DEVICES: ""})


def test_images_of_volumes_are_signed_where_there_are_any() -> None:
    images = {"model": "quay.io/a/model@sha256:abc"}
    given = write(ContainerLabels(**OF_POD, name="main", attempt=2, image_volumes=images))
    signed = ONE.signed_container(CONTAINER_NAME, given)
    assert signed[labels.SIGNATURE].startswith("5:")
    assert (owns(signed), dict(labels.read_container(signed).image_volumes)) == (True, images)
    assert not owns({**signed, labels.IMAGE_VOLUMES: '{"model":"quay.io/b/other@sha256:abc"}'})
    planted = {**ONE.signed_container(CONTAINER_NAME, CONTAINER), labels.IMAGE_VOLUMES: given[labels.IMAGE_VOLUMES]}
    assert owns(planted)
    assert labels.read_container(planted).image_volumes == {}


def test_since_when_a_pod_is_active_is_signed_where_it_is_told() -> None:
    begun = write(SandboxLabels(**OF_POD, attempt=1, active_since="2026-01-02T03:04:05Z"))
    signed = [ONE.signed_sandbox(SANDBOX_NAME, each) for each in (SANDBOX, begun)]
    assert [each[labels.SIGNATURE].partition(":")[0] for each in signed] == ["2", "4"]
    assert labels.read_sandbox({**signed[0], labels.ACTIVE_SINCE: begun[labels.ACTIVE_SINCE]}).active_since == ""
    for found, is_ours in ((signed[1], True), ({**signed[1], labels.ACTIVE_SINCE: ""}, False)):
        assert ONE.owns_pod(listed_pod(name=SANDBOX_NAME, labels=found, created_at=NEW)) is is_ours
        assert signs_sandbox(KEY, SANDBOX_NAME, found) is is_ours


# --- of before the key ---


def without_new_labels(own: dict[str, str]) -> dict[str, str]:
    """As versions that did not sign wrote them: no hook was no label, nor was a flag that is off."""
    return {key: text for key, text in own.items() if key not in (labels.PRE_STOP, labels.LEAVES_PROCESSES)}


@pytest.mark.parametrize(
    ("created_at", "name", "adopted"),
    [
        (OLD, CONTAINER_NAME, True),
        (OLD, "keen_turing", False),
        (OLD, "main_web_default_0c3ad6a8_3", False),
        (NEW, CONTAINER_NAME, False),
        (KEY.made_at, CONTAINER_NAME, False),
        (0.0, CONTAINER_NAME, False),
    ],
    ids=["ours", "a copy", "another attempt", "younger than the key", "as old", "nobody knows"],
)
def test_what_is_older_than_the_key_is_adopted_under_its_name(created_at: float, name: str, adopted: bool) -> None:
    assert owns(without_new_labels(CONTAINER), name, created_at) is adopted


def test_a_sandbox_that_is_older_than_the_key_is_adopted_under_its_name() -> None:
    for name, adopted in ((SANDBOX_NAME, True), ("x", False)):
        assert ONE.owns_pod(listed_pod(name=name, labels=SANDBOX, created_at=OLD)) is adopted
        assert ONE.owns(infra(name=f"{name}_infra", labels=SANDBOX, created_at=OLD)) is adopted
    assert not ONE.owns_pod(listed_pod(name=SANDBOX_NAME, labels=SANDBOX, created_at=NEW))


def test_what_was_signed_with_a_key_that_is_lost_is_adopted_too() -> None:
    lost = Ownership(instance="one", key=LabelKey(secret=b"l" * 32, made_at=0.0))
    own = lost.signed_container(CONTAINER_NAME, CONTAINER)
    assert owns(own, created_at=OLD)
    assert not owns(own, created_at=NEW)


@pytest.mark.parametrize("attempt", ["9" * 5000, "9" * 23, "-2", "02"])
def test_a_spoiled_attempt_leads_to_no_name(attempt: str) -> None:
    found = {**without_new_labels(CONTAINER), labels.ATTEMPT: attempt}
    assert not owns(found, f"main_web_default_0c3ad6a8_{attempt}"[:1000], OLD)


def test_a_key_keeps_its_secret_to_itself() -> None:
    for text in (repr(KEY), str(KEY), f"{KEY}", repr(ONE), str(msgspec.structs.replace(ONE, instance="x"))):
        assert "kkk" not in text
        assert "secret" not in text


def test_a_command_knows_a_signed_sandbox_without_a_worker() -> None:
    """`rootlet stop --pods` reads the same labels."""
    known = {str(version): tuple(keys) for version, keys in labels.signed_keys(labels.SANDBOX).items()}
    assert known == SANDBOX_KEYS
    own = ONE.signed_sandbox(SANDBOX_NAME, SANDBOX)
    assert signs_sandbox(KEY, SANDBOX_NAME, own)
    assert not signs_sandbox(KEY, "keen_turing", own)
    assert not signs_sandbox(KEY, SANDBOX_NAME, {**own, labels.GRACE_PERIOD_S: "0"})
    assert not signs_sandbox(KEY, SANDBOX_NAME, SANDBOX)
    for wrong in ("", "9:00", "x", "2:\ud800"):
        assert not signs_sandbox(KEY, SANDBOX_NAME, {**own, labels.SIGNATURE: wrong})
