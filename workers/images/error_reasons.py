"""Reasons of errors that are about images, by Podman's words: its API has no other word for them. Pure.

Mirrors evalCRIPullErr (pkg/kubelet/images/image_manager.go) and the reasons that runtimes give it (cri-api
pkg/errors/errors.go). A registry has a part in these words; nothing but the reason that is told rests on them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ipc.link.messages.sync_error import SyncError

_PING: Final = "pinging container registry "
"""Podman's first request to a registry (go.podman.io/image, docker/docker_client.go)."""
_NO_CONNECTION: Final = ": dial tcp"
"""Go's error of a connection, or of a look-up of its address (net.OpError)."""
_REJECTED: Final = "Source image rejected: "
"""The user's policy.json does not let the image in (go.podman.io/image, copy/single.go)."""
_IMAGE_VOLUME: Final = ("creating image volume ", "mounting image volume ", "creating overlay mount for image ")
"""Podman's words for a mount of an image (libpod/container_internal_common.go)."""


class PullFault(NamedTuple):
    """Why a pull has failed."""

    reason: SyncError
    message: str


def pull_fault(reference: str, message: str) -> PullFault:
    """Reason and words of a failed pull; ``message`` is Podman's."""
    _, pinged, answer = message.partition(_PING)
    if pinged and _NO_CONNECTION in answer:
        why = f"image pull failed for {reference} because the registry is unavailable: {message}"
        return PullFault(SyncError.REGISTRY_UNAVAILABLE, why)
    if message.startswith(_REJECTED) or f": {_REJECTED}" in message:
        why = f"image pull failed for {reference} because the signature validation failed: {message}"
        return PullFault(SyncError.SIGNATURE_VALIDATION_FAILED, why)
    return PullFault(SyncError.IMAGE_PULL, message)


def start_fault(message: str) -> SyncError:
    """Reason of a container that Podman could not start; ``message`` is Podman's."""
    is_of_image = any(words in message for words in _IMAGE_VOLUME)
    return SyncError.IMAGE_VOLUME_MOUNT_FAILED if is_of_image else SyncError.RUN_CONTAINER
