"""Patches of applied objects, as the manager of sources makes them where nobody else changes anything."""

from __future__ import annotations

from supervisor.sources.applied import AppliedStore, ApplyResult, Key


def patched(store: AppliedStore, key: Key, patch_type: str, body: bytes) -> ApplyResult | None:
    """None for an object that is not there."""
    present = store.find(key)
    return None if present is None else store.replace(present, store.changed(present, patch_type, body))
