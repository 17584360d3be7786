"""Decodes what the libpod API answers about images, and about pulls of them (as `workers.libpod.decode` does). Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from workers.kubecontainer.runtime import ErrorKind, ImageInfo, ImageUser, ListedImage, RuntimeCallError
from workers.libpod.failures import MAX_MESSAGE_CHARS, kind_by_cause
from workers.libpod.go_json import GoObject, decode_list, decode_value

_DIGEST: Final = "sha256:"
MAX_PROGRESS_CHARS: Final = 256
"""Longest text kept of a pull's progress, in characters."""
_USERINFO: Final = re.compile(r"//[^/@\s]*@")


class _ImageConfig(GoObject, frozen=True):
    user: str = ""
    stop_signal: str = ""


class _Image(GoObject, frozen=True):
    id: str
    repo_digests: tuple[str, ...] | None = None
    digest: str = ""
    labels: dict[str, str] | None = None
    user: str = ""
    size: int = 0
    config: _ImageConfig | None = None


class _ListImage(GoObject, frozen=True):
    id: str
    names: tuple[str, ...] | None = None
    repo_tags: tuple[str, ...] | None = None
    repo_digests: tuple[str, ...] | None = None
    size: int = 0
    read_only: bool = False


class _ImageUser(GoObject, frozen=True):
    id: str
    names: tuple[str, ...] | None = None
    image_id: str = msgspec.field(default="", name="ImageID")
    labels: dict[str, str] | None = None


class _Mount(GoObject, frozen=True):
    type: str = ""
    source: str = ""


class _Mounts(GoObject, frozen=True):
    mounts: tuple[_Mount, ...] | None = None


class _ImagesRemoved(GoObject, frozen=True):
    errors: tuple[str, ...] | None = None


class _PullReport(msgspec.Struct, frozen=True):
    id: str = ""
    images: tuple[str, ...] | None = None
    error: str = ""
    stream: str = ""


def decode_image(body: bytes) -> ImageInfo:
    """GET images/{name}/json. Like every decode function here it raises msgspec.DecodeError."""
    sock = decode_value(_Image, body)
    config = sock.config or _ImageConfig()
    return ImageInfo(
        id=sock.id,
        digests=sock.repo_digests or (),
        user=sock.user or config.user,
        stop_signal=config.stop_signal,
        size_bytes=sock.size,
        digest=sock.digest,
        labels=sock.labels or {},
    )


def decode_images(body: bytes) -> tuple[ListedImage, ...]:
    """GET images/json."""
    return tuple(
        ListedImage(
            id=sock.id.removeprefix(_DIGEST),
            names=sock.names or sock.repo_tags or (),
            digests=sock.repo_digests or (),
            size_bytes=sock.size,
            is_read_only=sock.read_only,
        )
        for sock in decode_list(_ListImage, body)
    )


def decode_image_users(body: bytes) -> tuple[tuple[ImageUser, Mapping[str, str]], ...]:
    """GET containers/json?external=true: each container as a user of its image, with its labels."""
    return tuple(
        (
            ImageUser(
                id=sock.id,
                name=next(iter(sock.names or ()), sock.id),
                images=(sock.image_id.removeprefix(_DIGEST),),
            ),
            sock.labels or {},
        )
        for sock in decode_list(_ImageUser, body)
    )


def decode_mounted_images(body: bytes) -> tuple[str, ...]:
    """GET containers/{id}/json: images that are mounted into it, as whoever made it has named them."""
    return tuple(mount.source for mount in decode_value(_Mounts, body).mounts or () if mount.type == "image")


def check_images_removed(call: str, body: bytes) -> None:
    """DELETE images/remove, which answers 200 in any case. Raises RuntimeCallError for its errors but those of images
    that are gone."""
    for error in decode_value(_ImagesRemoved, body).errors or ():
        kind = kind_by_cause(error) or ErrorKind.INTERNAL
        if kind is not ErrorKind.IMAGE_UNKNOWN:
            raise RuntimeCallError(kind, call, error[:MAX_MESSAGE_CHARS])


def decode_progress(line: bytes) -> str:
    """One line of POST images/pull before its last: what is being done; empty when it does not say."""
    try:
        words = decode_value(_PullReport, line).stream
    except msgspec.DecodeError:
        return ""  # The last line tells; this one is only for people.
    return " ".join(words.split())[:MAX_PROGRESS_CHARS]


def decode_pull(line: bytes) -> str:
    """The last line of POST images/pull, which answers 200 in any case: the image id. Raises PULL for its error."""
    report = decode_value(_PullReport, line) if line else _PullReport()
    if report.error:
        raise RuntimeCallError(ErrorKind.PULL, "pull image", without_userinfo(report.error)[:MAX_MESSAGE_CHARS])
    image_id = report.id or next(iter(report.images or ()), "")
    if not image_id:
        raise RuntimeCallError(ErrorKind.PULL, "pull image", "the pull ended without an image and without an error")
    return image_id


def without_userinfo(text: str) -> str:
    """URLs without user and password: those of a proxy may be in an error."""
    return _USERINFO.sub("//", text)
