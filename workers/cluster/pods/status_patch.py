"""The strategic merge patch from one status of a pod to another (component-helpers, PatchPodStatus). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ipc.api.nulls import without_nulls
from ipc.api.v1.status import PodStatus
from ipc.patching.strategic_diff import two_way_patch
from ipc.patching.strategic_schema import StructSchema
from ipc.text.json_types import JsonObject, JsonValue

_STATUS: Final = StructSchema(PodStatus)


def status_patch(old: Mapping[str, JsonValue], new: Mapping[str, JsonValue]) -> JsonObject:
    """Patch that turns the one into the other; empty for none. A null is as good as nothing: servers tell either."""
    return two_way_patch(without_nulls(old), without_nulls(new), _STATUS)
