"""Shapes of the libpod API's answers about images, and about pulls of them. Pure."""

from __future__ import annotations

import msgspec

from ipc.host.libpod.go_json import GoObject


class ImageConfig(GoObject, frozen=True):
    """Configuration of an image."""

    user: str = ""
    stop_signal: str = ""


class InspectImage(GoObject, frozen=True):
    """GET images/{name}/json."""

    id: str
    repo_digests: tuple[str, ...] | None = None
    digest: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    """Annotations of its manifest."""
    user: str = ""
    size: int = 0
    config: ImageConfig | None = None


class ListImage(GoObject, frozen=True):
    """An entry of GET images/json."""

    id: str
    names: tuple[str, ...] | None = None
    repo_tags: tuple[str, ...] | None = None
    repo_digests: tuple[str, ...] | None = None
    size: int = 0
    read_only: bool = False


class ImageUser(GoObject, frozen=True):
    """A container in GET containers/json?external=true, as a user of its image."""

    id: str
    names: tuple[str, ...] | None = None
    image_id: str = msgspec.field(default="", name="ImageID")
    labels: dict[str, str] | None = None


class Mount(GoObject, frozen=True):
    """A mount of an inspected container."""

    type: str = ""
    source: str = ""


class Mounts(GoObject, frozen=True):
    """Mounts in an answer of GET containers/{id}/json."""

    mounts: tuple[Mount, ...] | None = None


class ImagesRemoved(GoObject, frozen=True):
    """DELETE images/remove."""

    errors: tuple[str, ...] | None = None


class PullLine(msgspec.Struct, frozen=True):
    """A line of POST images/pull."""

    id: str = ""
    images: tuple[str, ...] | None = None
    error: str = ""
    stream: str = ""
