"""Devices that containers are given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ipc.k8s.api.decode import decode_pod
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podresources.devices import Device, Devices
from supervisor.admission.devices import DeviceError, allocate

GPU = "example.com/gpu"
TTY = "example.com/tty"
THREE: Devices = {GPU: {name: Device() for name in ("g0", "g1", "g2")}, TTY: {"t0": Device()}}
Allocation = Mapping[str, Mapping[str, tuple[str, ...]]]


def asking(name: str, number: int, resource: str = GPU, **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": "x", "resources": {"limits": {resource: str(number)}}, **fields}


def pod(*containers: dict[str, Any], init: tuple[dict[str, Any], ...] = ()) -> Pod:
    spec = {"containers": list(containers), "initContainers": list(init)}
    return decode_pod({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})


SIDECAR = {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("wanted", "in_use", "held", "expected"),
    [
        (pod(asking("a", 1), asking("b", 2)), {}, {}, {"a": {GPU: ("g0",)}, "b": {GPU: ("g1", "g2")}}),
        (pod(asking("a", 1)), {GPU: ["g0"]}, {}, {"a": {GPU: ("g1",)}}),
        (pod(asking("a", 1), asking("b", 1, TTY)), {}, {}, {"a": {GPU: ("g0",)}, "b": {TTY: ("t0",)}}),
        (pod(asking("a", 0), asking("b", 1, "other.com/gpu")), {}, {}, {}),
        # Restarted: each container has what it had, and another number is an edit.
        (pod(asking("a", 1)), {}, {"a": {GPU: ("g2",)}}, {"a": {GPU: ("g2",)}}),
        (pod(asking("a", 2)), {GPU: ["g0"]}, {"a": {GPU: ("g2",)}}, {"a": {GPU: ("g2", "g1")}}),
        (pod(asking("a", 1)), {}, {"a": {GPU: ("g2", "g1")}}, {"a": {GPU: ("g2",)}}),
        (
            pod(asking("new", 1), asking("a", 1)),
            {},
            {"a": {GPU: ("g0",)}},
            {"new": {GPU: ("g1",)}, "a": {GPU: ("g0",)}},
        ),
        (pod(asking("a", 1)), {}, {"a": {GPU: ("gone",)}}, {"a": {GPU: ("g0",)}}),
        # Init containers come to their end before the others begin; sidecars do not.
        (
            pod(asking("a", 2), init=(asking("i", 3),)),
            {},
            {},
            {"i": {GPU: ("g0", "g1", "g2")}, "a": {GPU: ("g0", "g1")}},
        ),
        (
            pod(asking("a", 1), init=(asking("i", 1), asking("j", 2))),
            {GPU: ["g2"]},
            {},
            {"i": {GPU: ("g0",)}, "j": {GPU: ("g0", "g1")}, "a": {GPU: ("g0",)}},
        ),
        (
            pod(asking("a", 1), init=(asking("i", 1), asking("side", 1, **SIDECAR))),
            {},
            {},
            {"i": {GPU: ("g0",)}, "side": {GPU: ("g0",)}, "a": {GPU: ("g1",)}},
        ),
    ],
)
def test_each_container_is_given_its_own(
    wanted: Pod, in_use: dict[str, list[str]], held: Allocation, expected: Allocation
) -> None:
    given = allocate(wanted, THREE, in_use, held)
    assert given == expected
    assert allocate(wanted, THREE, in_use, given) == given, "it keeps them"


@pytest.mark.parametrize(
    ("wanted", "in_use", "why"),
    [
        (
            pod(asking("a", 4)),
            {},
            "requested number of devices unavailable for example.com/gpu. Requested: 4, Available: 3",
        ),
        (pod(asking("a", 2), asking("b", 2)), {}, "Requested: 2, Available: 1"),
        (pod(asking("a", 1)), {GPU: ["g0", "g1", "g2"]}, "Requested: 1, Available: 0"),
        (pod(asking("a", 3), init=(asking("side", 1, **SIDECAR),)), {}, "Requested: 3, Available: 2"),
    ],
)
def test_a_pod_that_asks_for_more_has_none(wanted: Pod, in_use: dict[str, list[str]], why: str) -> None:
    with pytest.raises(DeviceError) as raised:
        allocate(wanted, THREE, in_use)
    assert why in str(raised.value)


def test_a_device_that_is_not_healthy_is_given_to_nobody() -> None:
    one_of_two = {GPU: {"g0": Device(problem="gone"), "g1": Device()}}
    assert allocate(pod(asking("a", 1)), one_of_two, {}, {"a": {GPU: ("g0",)}}) == {"a": {GPU: ("g1",)}}
    with pytest.raises(
        DeviceError, match=r"no healthy devices present; cannot allocate unhealthy devices example\.com/gpu"
    ):
        allocate(pod(asking("a", 1)), {GPU: {"g0": Device(problem="gone")}})
