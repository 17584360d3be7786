"""The strategic merge patch from one status of a pod to another, as Go's CreateTwoWayMergePatch makes it. Pure.

Of the lists of a v1 PodStatus ``conditions``, ``podIPs`` and ``hostIPs`` merge by a key; the others are atomic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

_MERGE_KEYS: Final[Mapping[str, str]] = {"conditions": "type", "podIPs": "ip", "hostIPs": "ip"}

Value = dict[str, Any]
"""A status, or a part of one, as JSON."""


def status_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> Value:
    """Patch that turns the one into the other; empty for none. A null is as good as nothing: servers tell either."""
    patch: Value = {}
    for name in (*new, *(name for name in old if name not in new)):
        before, after = old.get(name), new.get(name)
        if before == after:
            continue
        if after is None:
            patch[name] = None
        elif isinstance(before, dict) and isinstance(after, dict):
            if inner := status_patch(before, after):
                patch[name] = inner
        elif name in _MERGE_KEYS and isinstance(before, list) and before and isinstance(after, list):
            _add_list(patch, name, before, after)
        else:
            patch[name] = after
    return patch


def _add_list(patch: Value, name: str, before: Sequence[Value], after: Sequence[Value]) -> None:
    key = _MERGE_KEYS[name]
    old = {item[key]: item for item in before}
    new = {item[key]: item for item in after}
    changes = {at: status_patch(old[at], item) if at in old else item for at, item in new.items()}
    changed = [{**change, key: at} for at, change in changes.items() if change]
    removed = [{"$patch": "delete", key: at} for at in old if at not in new]
    if changed or removed:
        patch[f"$setElementOrder/{name}"] = [{key: at} for at in new]
        patch[name] = [*changed, *removed]
    elif list(old) != list(new):
        patch[f"$setElementOrder/{name}"] = [{key: at} for at in new]
