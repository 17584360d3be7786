"""Changes of resources that a kubelet would make in place."""

from __future__ import annotations

from typing import Any

import pytest

from ipc.api.v1.pod import Pod
from supervisor.admission.resize import restarts_for_resize
from tests.harness.manifests import pod

IN_PLACE = {"resourceName": "cpu", "restartPolicy": "NotRequired"}
BY_RESTART = {"resourceName": "cpu", "restartPolicy": "RestartContainer"}


def asking(cpu: str, *policies: dict[str, str], memory: str = "1Gi", **fields: Any) -> Pod:
    resources = {"requests": {"cpu": cpu, "memory": memory, "ephemeral-storage": cpu}}
    main = {"name": "main", "image": "busybox", "resources": resources, "resizePolicy": list(policies), **fields}
    return pod(containers=[{"name": "first", "image": "busybox"}, main])


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        (asking("1"), asking("1", command=["other"]), ""),
        (asking("1"), asking("2"), "cpu"),
        (asking("1", IN_PLACE), asking("2", IN_PLACE), "cpu"),
        (asking("1", BY_RESTART), asking("2", BY_RESTART), ""),
        (asking("1", BY_RESTART), asking("2", BY_RESTART, memory="2Gi"), "memory"),
        (asking("1"), asking("2", memory="2Gi"), "cpu and memory"),
        (pod(containers=[{"name": "first", "image": "busybox"}]), asking("1"), ""),
    ],
)
def test_what_restarts_against_its_policy(before: Pod, after: Pod, names: str) -> None:
    why = "resizing in place is not built yet: main is restarted, against its resizePolicy"
    expected = [f"spec.containers[1].resources: {names} changed: {why}"] if names else []
    assert list(restarts_for_resize(before, after)) == expected
