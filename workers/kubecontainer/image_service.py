"""The part of the Runtime protocol that is about images, as ImageManagerService is one of its own in the CRI.

Errors and deadlines are those of `workers.kubecontainer.runtime.Runtime`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Protocol

import msgspec

from ipc.k8s.podobjects.registry_login import RegistryLogin

ImageStamp = Hashable
"""As long as it is the same, no image has come, gone or got another name."""


class ImageInfo(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    digests: tuple[str, ...]
    user: str
    stop_signal: str
    size_bytes: int = 0
    digest: str = ""
    """Digest of its manifest, ``sha256:...``."""
    labels: Mapping[str, str] = {}
    """Labels that its containers have, unless they are given others of the same names."""
    directs_runtime: bool = False
    """Whether its manifest has annotations that crun obeys, and that Podman before 4.6 makes its containers' own."""


class ImageUsage(msgspec.Struct, frozen=True, kw_only=True):
    """The storage's file system, and what images occupy on it, in bytes."""

    capacity: int
    available: int
    exclusive: Mapping[str, int] | None = None
    """By image id: what goes with it, because no other image has it; None when that is not known."""


class ImageUser(msgspec.Struct, frozen=True, kw_only=True):
    """A container, whosever it is, and the images that it needs."""

    id: str
    name: str
    images: tuple[str, ...]
    """Ids; of what is mounted into it what whoever made it has named."""


class ListedImage(msgspec.Struct, frozen=True, kw_only=True):
    """One image of the storage, whosever it is."""

    id: str
    names: tuple[str, ...] = ()
    """With tags, and of what was pulled by digest with that."""
    digests: tuple[str, ...] = ()
    """The same names with the digests of its manifests."""
    size_bytes: int = 0
    """With all its layers, also those that others have too."""
    is_read_only: bool = False
    """Whether it lies in another store than the user's own."""


class ImageService(Protocol):
    """The images of a container runtime's storage."""

    async def inspect_image(self, reference: str) -> ImageInfo | None:
        """GET images/{name}/json; None when absent."""

    def image_stamp(self, having: str = "") -> ImageStamp | None:
        """Stamp of all images, without asking Podman; None when there is none, or when it is not known that the image
        with the id ``having`` is among them. Looks at one file."""

    async def list_images(self) -> tuple[ListedImage, ...]:
        """GET images/json: images of everybody who uses the same storage, without build's intermediate ones."""

    async def list_image_users(self) -> tuple[ImageUser, ...]:
        """GET containers/json?all=true&external=true: containers of everybody, in every state, also those of other
        programs on the same storage. Those that are not ours are inspected, for images that are mounted into them:
        Podman removes these."""

    async def remove_image(self, image: ListedImage) -> None:
        """DELETE images/remove: with all its names, without its parents. Gone is success. Raises WRONG_STATE when it is
        used; one that has got another name meanwhile stays, too."""

    async def image_usage(self, layer: str) -> ImageUsage | None:
        """Where images are stored and how much they occupy. Reads files; Podman is asked once, when no ``layer`` of a
        container is known that shows where. None when it cannot be known."""

    async def pull_image(
        self, reference: str, on_progress: Callable[[str], None], login: RegistryLogin | None = None
    ) -> str:
        """POST images/pull: the image id. Cancelling it breaks the pull off. ``on_progress`` takes texts about it.
        Without a ``login`` those of the agent's user count.

        Raises PULL with the registry's message, without passwords; TIMEOUT after imagePullTimeout; UNAVAILABLE also
        when the service goes away meanwhile: the registry is not to blame, and a second pull does what the first one
        did not.
        """
