"""Patches of any kind, of the types that the API server takes: JSON, merge and strategic merge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ipc.k8s.patching.strategic_merge import strategic_merge
from ipc.k8s.patching.strategic_schema import FieldPatch
from ipc.k8s.patching.values import PatchError, parse_json
from supervisor.patching.json_merge import json_merge
from supervisor.patching.json_patch import json_patch
from tests.support.servers.kube_api.failures import JsonObject, Refusal, bad_request, invalid, unknown_patch

STRATEGIC: Final = "application/strategic-merge-patch+json"
MERGE: Final = "application/merge-patch+json"
JSON: Final = "application/json-patch+json"

_BY_NAME: Final = ("merge", "name")
_POD_LISTS: Final = {
    "spec.volumes": _BY_NAME,
    "spec.initContainers": _BY_NAME,
    "spec.containers": _BY_NAME,
    "spec.ephemeralContainers": _BY_NAME,
    "spec.imagePullSecrets": _BY_NAME,
    "spec.hostAliases": ("merge", "ip"),
    "spec.topologySpreadConstraints": ("merge", "topologyKey"),
    "spec.schedulingGates": _BY_NAME,
    "spec.resourceClaims": _BY_NAME,
    "status.conditions": ("merge", "type"),
    "status.podIPs": ("merge", "ip"),
    "status.hostIPs": ("merge", "ip"),
    "status.resourceClaimStatuses": _BY_NAME,
} | {
    f"spec.{containers}.{name}": ("merge", key)
    for containers in ("containers", "initContainers", "ephemeralContainers")
    for name, key in (
        ("ports", "containerPort"),
        ("env", "name"),
        ("volumeMounts", "mountPath"),
        ("volumeDevices", "devicePath"),
    )
}
_LISTS: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {
    "Pod": _POD_LISTS,
    "Node": {
        "status.conditions": ("merge", "type"),
        "status.addresses": ("merge", "type"),
        "spec.podCIDRs": ("merge", ""),
    },
    "Service": {"spec.ports": ("merge", "port"), "status.conditions": ("merge", "type")},
    "ServiceAccount": {"secrets": _BY_NAME},
    "PersistentVolumeClaim": {"status.conditions": ("merge", "type")},
}
"""The lists that merge, by kind and path: ``patchStrategy`` and ``patchMergeKey`` of k8s.io/api."""
_METADATA: Final = {"metadata.ownerReferences": ("merge", "uid"), "metadata.finalizers": ("merge", "")}


class _Paths:
    """How the fields below a path are patched; which fields there are is not its business."""

    def __init__(self, lists: Mapping[str, tuple[str, str]], path: str = "") -> None:
        self._lists = lists
        self._path = path

    def field(self, name: str) -> FieldPatch:
        path = f"{self._path}.{name}" if self._path else name
        strategy, key = self._lists.get(path, ("", ""))
        return FieldPatch(below=_Paths(self._lists, path), strategy=strategy, merge_key=key)


def patched(found: JsonObject, body: bytes, content_type: str, kind: str) -> JsonObject:
    """The object after the patch. Raises Refusal."""
    if content_type not in (STRATEGIC, MERGE, JSON):
        raise unknown_patch()
    try:
        patch = parse_json(body)
        if content_type == JSON:
            return _object(json_patch(found, patch))
        if not isinstance(patch, dict):
            told = "array" if isinstance(patch, list) else type(patch).__name__
            raise bad_request(
                f"error decoding patch: json: cannot unmarshal {told} into Go value of type map[string]interface {{}}"
            )
        if content_type == MERGE:
            return _object(json_merge(found, patch))
        return strategic_merge(found, patch, _Paths({**_LISTS.get(kind, {}), **_METADATA}))
    except PatchError as error:
        if content_type == JSON:
            said = "the server rejected our request due to an error in our request"
            raise Refusal(422, "Invalid", said, {}) from None
        raise bad_request(str(error)) from None


def _object(found: object) -> JsonObject:
    if not isinstance(found, dict):
        raise invalid("", "", [])
    return found
