"""Adapters of the groups about static pods as a cluster sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from ipc.k8s.api.annotations import CONFIG_MIRROR
from tests.kubelet_tables.later import Later, Result
from tests.kubelet_tables.translate import Json, pod
from workers.cluster.pods.mirror_pod import mirror_name, mirror_pod


def _static_pod_name(case: Json) -> Result:
    return case["expected"], mirror_name(case["pod_name"], case["node_name"])


def _mirror_pod_create(case: Json) -> Result:
    """The cases' pods have no containers; annotations of the static pod go along, as upstream."""
    if case["node"] is None:
        raise Later("never: a mirror waits until the Node was read")
    owner = case["node"]["metadata"]
    static = pod({"spec": {"containers": [{"name": "c", "image": "i"}]}, **case["pod"]})
    made = msgspec.json.decode(mirror_pod(static, owner["name"], owner["uid"]))["metadata"]
    expected = (case["expect_error"], case["expected_annotations"], case["expected_owner_references"])
    mirrored = {name: value for name, value in made["annotations"].items() if name == CONFIG_MIRROR}
    return expected, (False, mirrored, made["ownerReferences"])


ADAPTERS: Final[Mapping[str, Callable[[Json], Result]]] = {
    "static_pod_name": _static_pod_name,
    "mirror_pod_create": _mirror_pod_create,
}
