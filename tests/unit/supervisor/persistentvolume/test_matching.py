"""Volumes that claims get (k8s.io/component-helpers/storage/volume, FindMatchingVolume)."""

from __future__ import annotations

from typing import Any

import pytest

from ipc.k8s.api.v1.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta, ObjectReference
from ipc.k8s.api.v1.persistent_volume import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
)
from ipc.k8s.api.v1.volume import HostPathVolumeSource, PersistentVolumeClaimSpec, VolumeResourceRequirements
from supervisor.persistentvolume.matching import find_matching_volume, selects, volume_problem

ONCE: Any = ("ReadWriteOnce",)
BOTH: Any = ("ReadWriteOnce", "ReadWriteMany")
NONE = ""


def volume(
    name: str, size: str = "1Gi", modes: Any = ONCE, phase: str = "Available", labels: Any = None, **spec: Any
) -> PersistentVolume:
    return PersistentVolume(
        metadata=ObjectMeta(name=name, labels=labels or {}, uid=name),
        spec=PersistentVolumeSpec(
            capacity={"storage": size},
            access_modes=modes,
            volume_mode="Filesystem",
            host_path=HostPathVolumeSource(path=f"/{name}"),
            persistent_volume_reclaim_policy=spec.pop("policy", "Retain"),
            **spec,
        ),
        status=PersistentVolumeStatus(phase=phase),
    )


def claim(
    name: str = "c", size: str = "1Gi", modes: Any = ONCE, namespace: str = "ns", **spec: Any
) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(
        metadata=ObjectMeta(name=name, namespace=namespace, uid=f"uid-{name}"),
        spec=PersistentVolumeClaimSpec(
            access_modes=modes,
            resources=VolumeResourceRequirements(requests={"storage": size}),
            volume_mode="Filesystem",
            **spec,
        ),
    )


def reference(name: str = "c", uid: str = "") -> ObjectReference:
    return ObjectReference(namespace="ns", name=name, uid=uid)


def red(operator: Any = "In", *values: str) -> LabelSelector:
    return LabelSelector(match_expressions=(LabelSelectorRequirement(key="color", operator=operator, values=values),))


@pytest.mark.parametrize(
    ("wanted", "volumes", "found"),
    [
        pytest.param(claim(), [], NONE, id="nothing there"),
        pytest.param(
            claim(size="2Gi"), [volume("a", "9Gi"), volume("b", "3Gi"), volume("c", "1Gi")], "b", id="smallest"
        ),
        pytest.param(claim(size="1G"), [volume("a", "999M"), volume("b", "1G")], "b", id="large enough"),
        pytest.param(claim(), [volume("a", "1Gi", BOTH), volume("b", "5Gi")], "b", id="fewest modes before size"),
        pytest.param(claim(modes=BOTH), [volume("a")], NONE, id="a mode is missing"),
        pytest.param(claim(), [volume("a", storage_class_name="x")], NONE, id="of a class"),
        pytest.param(claim(storage_class_name="x"), [volume("a")], NONE, id="of no class"),
        pytest.param(claim(storage_class_name="x"), [volume("a", storage_class_name="x")], "a", id="of its class"),
        pytest.param(claim(storage_class_name=""), [volume("a")], "a", id="explicitly of no class"),
        pytest.param(claim(), [volume("a", phase="Released")], NONE, id="released"),
        pytest.param(claim(), [volume("a", phase="Failed")], NONE, id="failed"),
        pytest.param(claim(), [volume("a", claim_ref=reference("other"))], NONE, id="kept for another"),
        pytest.param(
            claim(),
            [volume("a"), volume("b", "9Gi", claim_ref=reference())],
            "b",
            id="kept for it, before smaller ones",
        ),
        pytest.param(claim(), [volume("a", claim_ref=reference(uid="uid-c"))], "a", id="kept for its UID"),
        pytest.param(claim(), [volume("a", claim_ref=reference(uid="older"))], NONE, id="kept for one that is gone"),
        pytest.param(
            claim(), [volume("a", claim_ref=reference(), storage_class_name="x")], "a", id="kept for it, of any class"
        ),
        pytest.param(claim(size="2Gi"), [volume("a", claim_ref=reference())], NONE, id="kept for it, but too small"),
        pytest.param(
            claim(selector=LabelSelector(match_labels={"color": "red"})),
            [volume("a"), volume("b", "3Gi", labels={"color": "red"})],
            "b",
            id="selected",
        ),
    ],
)
def test_the_volume_of_a_claim(wanted: PersistentVolumeClaim, volumes: list[PersistentVolume], found: str) -> None:
    matching = find_matching_volume(wanted, volumes, lambda _: True)
    assert (matching.metadata.name if matching else NONE) == found


def test_a_volume_of_another_node_is_not_taken_even_where_it_is_kept_for_the_claim() -> None:
    kept = [volume("a"), volume("b", claim_ref=reference())]
    assert find_matching_volume(claim(), kept, lambda found: found.metadata.name == "a") is None
    assert find_matching_volume(claim(), [volume("a")], lambda _: False) is None


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        (claim(), ""),
        (claim(size="2Gi"), "requested PV is too small"),
        (claim(storage_class_name="x"), "storageClassName does not match"),
        (claim(modes=BOTH), "incompatible accessMode"),
    ],
)
def test_why_a_volume_that_is_named_is_not_for_the_claim(wanted: PersistentVolumeClaim, problem: str) -> None:
    assert volume_problem(wanted, volume("a")) == problem


@pytest.mark.parametrize(
    ("selector", "labels", "holds"),
    [
        (LabelSelector(), {}, True),
        (red("In", "red", "blue"), {"color": "red"}, True),
        (red("In", "red"), {}, False),
        (red("NotIn", "red"), {}, True),
        (red("NotIn", "red"), {"color": "red"}, False),
        (red("Exists"), {"color": ""}, True),
        (red("Exists"), {}, False),
        (red("DoesNotExist"), {}, True),
        (red("DoesNotExist"), {"color": "red"}, False),
    ],
)
def test_a_label_selector(selector: LabelSelector, labels: dict[str, str], holds: bool) -> None:
    assert selects(selector, labels) is holds
