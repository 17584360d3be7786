"""Bindings, and the documents that they follow from. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from ipc.k8s.api.v1.persistent_volume import PersistentVolume, PersistentVolumeClaim
from ipc.link.messages.event_reasons import EventReason
from supervisor.state.volume_bindings import Binding, ClaimKey

PODMAN_CLASS: Final = "podman"
"""Storage class of volumes that are made in Podman."""
RETAIN: Final = "Retain"
DELETE: Final = "Delete"


class Unbound(msgspec.Struct, frozen=True):
    """Why a claim is pending, as its event says it."""

    reason: EventReason
    message: str


class Documents(msgspec.Struct, frozen=True, kw_only=True):
    """Documents that are stated, and the names of those that may be: a file can be unreadable for a while."""

    volumes: Mapping[str, PersistentVolume]
    claims: Mapping[ClaimKey, PersistentVolumeClaim]
    unknown_volumes: Collection[str] = frozenset()
    unknown_claims: Collection[ClaimKey] = frozenset()
    used_claims: Collection[ClaimKey] = frozenset()
    """Claims that pods refer to which may run."""


Bindings = Mapping[str, Binding]
"""By the volume's name."""
