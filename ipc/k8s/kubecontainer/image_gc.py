"""Image garbage collection: its policy, and what it says of each image. Pure.

Names and texts of pkg/kubelet/images/image_gc_manager.go.
"""

from __future__ import annotations

import enum

import msgspec


class ImageGcScope(enum.StrEnum):
    """Images that may be removed at all."""

    PULLED = "PulledImages"
    """Images that this agent has pulled and that have no name but those by which it did: a registry has them."""
    ALL = "AllImages"


class ImageGcPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """ImageGCPolicy. Ages in seconds."""

    high_threshold_percent: int = 85
    """At this use of the file system and above images are removed, ..."""
    low_threshold_percent: int = 80
    """... until its use is down to this."""
    min_age_s: float = 120.0
    max_age_s: float = 0.0
    """Unused for longer: removed whatever the use. 0.0 for never."""
    scope: ImageGcScope = ImageGcScope.PULLED
    pinned: tuple[str, ...] = ()
    """Complete names of images that stay; with ``*`` at its end all that begin so."""

    @property
    def is_off(self) -> bool:
        """StartGarbageCollection (pkg/kubelet/kubelet.go)."""
        return self.high_threshold_percent == 100 and not self.max_age_s


def policy_problem(policy: ImageGcPolicy) -> str:
    """NewImageGCManager; empty for a policy that can be used."""
    high, low = policy.high_threshold_percent, policy.low_threshold_percent
    for name, percent in (("HighThresholdPercent", high), ("LowThresholdPercent", low)):
        if not 0 <= percent <= 100:
            return f"invalid {name} {percent}, must be in range [0-100]"
    if low > high:
        return f"LowThresholdPercent {low} can not be higher than HighThresholdPercent {high}"
    return ""


class Stays(enum.StrEnum):
    """Why an image is no garbage."""

    IN_USE = "in use"
    """By a container of anybody, or a pod that this agent knows."""
    PINNED = "pinned"
    READ_ONLY = "read-only"
    """In a store that is not this user's."""
    FOREIGN = "not pulled by this agent"
    YOUNG = "younger than imageMinimumGCAge"


class ImageReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One image in Podman's storage, as a collection has found it. Wall times in epoch seconds, 0.0 is never."""

    id: str
    names: tuple[str, ...] = ()
    size_bytes: int = 0
    first_detected: float = 0.0
    last_used: float = 0.0
    users: tuple[str, ...] = ()
    """Some of its users: containers by name, pods by namespace and name."""
    stays: str = ""
    """A `Stays`; empty for garbage."""
    removed: bool = False
    error: str = ""
    """Why it could not be removed."""
