"""PriorityClasses of documents: decoded, checked, and put into the pods that name them, of every source."""

from __future__ import annotations

from typing import Any

import pytest

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podobjects.config_objects import ObjectKey, ObjectKind
from supervisor.protocol.manifests import APPLY_SOURCE, FILE_SOURCE, DecodedFile, DesiredPod, SourceSnapshot
from supervisor.protocol.source_updates import PodOperation, PodUpdate, Update
from supervisor.sources.objects.decode import decode_manifest
from supervisor.sources.objects.merge import PodConfig
from tests.support.manifests import NOW, ORIGIN, manifest, text


def priority_class(name: str = "gold", value: Any = 1000, **fields: Any) -> dict[str, Any]:
    api = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**api, "metadata": {"name": name}, "value": value, **fields}


def decode(*manifests: dict[str, Any], file: str = "web.yaml") -> DecodedFile:
    return decode_manifest(text(*manifests), file, ORIGIN)


def snapshot(*manifests: dict[str, Any], source: str = FILE_SOURCE, file: str = "web.yaml") -> SourceSnapshot:
    if not manifests:
        return SourceSnapshot(source=source, complete=True)
    decoded = decode(*manifests, file=file)
    assert decoded.errors == ()
    return SourceSnapshot(source=source, pods=decoded.pods, objects=decoded.objects, complete=True)


def sources() -> PodConfig:
    return PodConfig((FILE_SOURCE, APPLY_SOURCE))


def changed(updates: tuple[Update, ...]) -> list[tuple[PodOperation, Pod]]:
    return [(update.op, pod) for update in updates if isinstance(update, PodUpdate) for pod in update.pods]


def priorities(config: PodConfig) -> dict[str, tuple[str, int | None]]:
    specs = {item.pod.metadata.name: item.pod.spec for item in config.desired()}
    return {name: (spec.priority_class_name, spec.priority) for name, spec in specs.items()}


def test_a_class_is_an_object_without_a_namespace() -> None:
    decoded = decode(
        priority_class(description="more than others", preemptionPolicy="Never"),
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClassList",
            "items": [{"metadata": {"name": "tin"}, "value": -1}],
        },
    )
    assert decoded.errors == ()
    assert [str(item.key) for item in decoded.objects] == ["PriorityClass gold", "PriorityClass tin"]
    assert decoded.objects[0].key == ObjectKey(ObjectKind.PRIORITY_CLASS, "", "gold")


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (priority_class(apiVersion="v1"), "apiVersion: "),
        (priority_class(value="1"), "value: expected integer"),
        (priority_class(value=2**31), "value: "),
        (
            priority_class(value=10**9 + 1),
            "value: Forbidden: maximum allowed value of a user",
        ),
        (
            priority_class(metadata={"name": "gold", "namespace": "x"}),
            "metadata.namespace: Forbidden: ",
        ),
        (priority_class("system-gold"), "metadata.name: Forbidden: names that begin with system- are the system's"),
        (priority_class("system-node-critical", 7), "its value must be 2000001000"),
        (priority_class("system-node-critical", 2000001000, globalDefault=True), "its globalDefault must be false"),
        (priority_class(preemptionPolicy="Sometimes"), "preemptionPolicy: "),
        (priority_class("No"), "metadata.name: "),
        (priority_class(weight=1), "weight: unknown field"),
        ({key: value for key, value in priority_class().items() if key != "value"}, "value: "),
    ],
)
def test_a_wrong_class_is_an_error_of_its_document(document: dict[str, Any], message: str) -> None:
    errors = [str(error) for error in decode(document).errors]
    assert len(errors) == 1
    assert message in errors[0]


def test_pods_get_the_number_of_their_class() -> None:
    config = sources()
    config.merge(
        snapshot(
            manifest("named", priorityClassName="gold"),
            manifest("system", priorityClassName="system-node-critical"),
            manifest("number", priorityClassName="gold", priority=5),
            manifest("unknown", priorityClassName="tin"),
            manifest("plain"),
            priority_class(preemptionPolicy="Never"),
        ),
        NOW,
    )
    assert priorities(config) == {
        "named": ("gold", 1000),
        "system": ("system-node-critical", 2_000_001_000),
        "number": ("gold", 5),
        "unknown": ("tin", None),
        "plain": ("", None),
    }
    assert next(item.pod for item in config.desired()).spec.preemption_policy == "Never"


def test_a_class_that_comes_and_goes_counts_for_the_pods_of_every_source() -> None:
    config = sources()
    config.merge(snapshot(manifest("web", priorityClassName="gold"), manifest("other")), NOW)
    came = config.merge(snapshot(priority_class(), source=APPLY_SOURCE), NOW)
    assert [(op, pod.metadata.name, pod.spec.priority) for op, pod in changed(came)] == [
        (PodOperation.UPDATE, "web", 1000)
    ]
    assert changed(config.merge(snapshot(priority_class(), source=APPLY_SOURCE), NOW)) == []
    assert changed(config.merge(snapshot(source=APPLY_SOURCE), NOW)) == []
    assert priorities(config)["web"] == ("gold", 1000), "a class that is gone takes no pod's priority away"


def test_the_default_is_for_pods_that_name_none_and_the_lowest_of_several() -> None:
    config = sources()
    defaults = [priority_class("a", 10, globalDefault=True), priority_class("b", 5, globalDefault=True)]
    config.merge(snapshot(manifest("plain"), manifest("named", priorityClassName="gold"), *defaults), NOW)
    assert priorities(config) == {"plain": ("b", 5), "named": ("gold", None)}


def test_a_class_keeps_its_value_until_it_is_gone() -> None:
    config = sources()
    config.merge(snapshot(manifest("web", priorityClassName="gold"), priority_class()), NOW)
    config.merge(snapshot(manifest("web", priorityClassName="gold"), priority_class(value=7)), NOW)
    assert priorities(config)["web"] == ("gold", 1000)
    assert [error.message for error in config.conflicts()] == [
        "PriorityClass gold stays as it was: Forbidden: may not be changed in an update"
    ]


def test_after_a_restart_a_pod_keeps_its_priority_until_its_class_is_read() -> None:
    before = sources()
    before.merge(snapshot(manifest("web", priorityClassName="gold"), priority_class()), NOW)
    after = sources()
    after.restore([DesiredPod(source=FILE_SOURCE, pod=item.pod, file=item.file) for item in before.desired()])
    assert changed(after.merge(snapshot(manifest("web", priorityClassName="gold")), NOW)) == []
    assert priorities(after)["web"] == ("gold", 1000)
