"""The three types of patches by their names, as the API server takes them and `rootlet patch --type` says them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Final

import msgspec

from ipc.host.text.json_types import JsonObject
from ipc.k8s.api.v1.config_objects import ConfigMap, Secret
from ipc.k8s.api.v1.persistent_volume import PersistentVolume, PersistentVolumeClaim
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.scheduling import PriorityClass, RuntimeClass
from ipc.k8s.patching.strategic_merge import strategic_merge
from ipc.k8s.patching.strategic_schema import StructSchema
from ipc.k8s.patching.values import PatchError, parse_json, parse_object
from supervisor.patching.json_merge import json_merge

STRATEGIC: Final = "strategic"
JSON_MERGE: Final = "merge"
JSON_PATCH: Final = "json"
PATCH_TYPES: Final = (STRATEGIC, JSON_MERGE, JSON_PATCH)
MAX_DEPTH: Final = 100
"""Deepest nesting of a patch."""
_TYPES: Final[Mapping[str, type[msgspec.Struct]]] = {
    "Pod": Pod,
    "ConfigMap": ConfigMap,
    "Secret": Secret,
    "PriorityClass": PriorityClass,
    "RuntimeClass": RuntimeClass,
    "PersistentVolume": PersistentVolume,
    "PersistentVolumeClaim": PersistentVolumeClaim,
}


def schema_of_kind(kind: str) -> StructSchema:
    """How fields of a kind are patched."""
    return StructSchema(_TYPES[kind])


_STEPS: Final = {ord("{"): 1, ord("["): 1, ord("}"): -1, ord("]"): -1}
_NO_BRACKETS: Final = bytes(byte for byte in range(256) if byte not in _STEPS)


def patched(original: JsonObject, patch: bytes, patch_type: str, kind: str) -> JsonObject:
    """The object after a patch of one of `PATCH_TYPES`. Raises PatchError."""
    try:
        found = _patched(original, patch, patch_type, kind)
    except RecursionError:
        raise PatchError(f"the patch is nested deeper than {MAX_DEPTH}") from None
    if not isinstance(found, dict):
        raise PatchError("nothing is left of the object")
    return found


def _patched(original: JsonObject, patch: bytes, patch_type: str, kind: str) -> object:
    if _depth(patch) > MAX_DEPTH:
        raise PatchError(f"the patch is nested deeper than {MAX_DEPTH}")
    if patch_type == JSON_PATCH:
        from supervisor.patching.json_patch import json_patch  # with the library, for the few who need it

        return json_patch(original, parse_json(patch))
    if patch_type == JSON_MERGE:
        return json_merge(original, parse_object(patch))
    return strategic_merge(original, parse_object(patch), schema_of_kind(kind))


def _depth(text: bytes) -> int:
    """An upper bound of its nesting: brackets within strings count too."""
    brackets = text.translate(None, _NO_BRACKETS)
    return max(itertools.accumulate(map(_STEPS.__getitem__, brackets)), default=0)
