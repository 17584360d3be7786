"""Decodes what the libpod API answers about images, and about pulls of them (as `workers.libpod.decode` does). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ipc.host.libpod import endpoints, image_answers
from ipc.host.libpod.go_json import decode_list, decode_value
from ipc.host.text.json_types import UNDECODABLE
from ipc.host.text.userinfo import without_userinfo
from workers.kubecontainer.image_service import ImageInfo, ImageUser, ListedImage
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError
from workers.libpod.failures import MAX_MESSAGE_CHARS, kind_by_cause
from workers.nodestatus.images import StoredImage

_DIGEST: Final = "sha256:"
_LOCAL: Final = "localhost/"
"""Begin of the names that Podman gives images without a registry."""
_FOR_RUNTIME: Final = "run.oci."
"""Begin of annotations by which crun is directed (crun(1)): to another seccomp filter, to keep the user's groups."""
MAX_PROGRESS_CHARS: Final = 256
"""Longest text kept of a pull's progress, in characters."""


def decode_image(body: bytes) -> ImageInfo:
    """GET images/{name}/json. Like every decode function here it raises msgspec.DecodeError."""
    answer = decode_value(endpoints.INSPECT_IMAGE.answer, body)
    config = answer.config or image_answers.ImageConfig()
    return ImageInfo(
        id=answer.id,
        digests=answer.repo_digests or (),
        user=answer.user or config.user,
        stop_signal=config.stop_signal,
        size_bytes=answer.size,
        digest=answer.digest,
        labels=answer.labels or {},
        directs_runtime=any(name.startswith(_FOR_RUNTIME) for name in answer.annotations or ()),
    )


def decode_images(body: bytes) -> tuple[ListedImage, ...]:
    """GET images/json."""
    return tuple(
        ListedImage(
            id=answer.id.removeprefix(_DIGEST),
            names=answer.names or answer.repo_tags or (),
            digests=answer.repo_digests or (),
            size_bytes=answer.size,
            is_read_only=answer.read_only,
        )
        for answer in decode_list(endpoints.LIST_IMAGES.answer, body)
    )


def decode_stored_images(body: bytes) -> tuple[StoredImage, ...]:
    """GET images/json, for the status of the node."""
    return tuple(
        StoredImage(
            id=answer.id,
            size=answer.size,
            repo_tags=tuple(name for name in answer.repo_tags or () if not _is_canonical(name)),
            repo_digests=_pulled_digests(answer.repo_tags or (), answer.repo_digests or ()),
        )
        for answer in decode_list(endpoints.LIST_IMAGES.answer, body)
    )


def _pulled_digests(names: Sequence[str], digests: Sequence[str]) -> tuple[str, ...]:
    """Digests by which registries may know an image, as containerd's CRI tells them (ParseImageReferences).

    Podman joins the repository of each name with each digest of the image. So it tells digests of a local name, which
    is in no registry, and of a repository that has the image by another digest.
    """
    canonical = tuple(filter(_is_canonical, names))
    tagged = {name.rpartition(":")[0] for name in names if not _is_canonical(name) and not name.startswith(_LOCAL)}
    joined = (digest for digest in digests if digest.partition("@")[0] in tagged)
    return tuple(dict.fromkeys((*canonical, *joined)))


def _is_canonical(name: str) -> bool:
    """Whether an image has that name since a pull by digest; Podman counts it among the tags, too."""
    return "@" in name


def decode_image_users(body: bytes) -> tuple[tuple[ImageUser, Mapping[str, str]], ...]:
    """GET containers/json?external=true: each container as a user of its image, with its labels."""
    return tuple(
        (
            ImageUser(
                id=answer.id,
                name=next(iter(answer.names or ()), answer.id),
                images=(answer.image_id.removeprefix(_DIGEST),),
            ),
            answer.labels or {},
        )
        for answer in decode_list(endpoints.LIST_IMAGE_USERS.answer, body)
    )


def decode_mounted_images(body: bytes) -> tuple[str, ...]:
    """GET containers/{id}/json: images that are mounted into it, as whoever made it has named them."""
    mounts = decode_value(endpoints.INSPECT_MOUNTS.answer, body).mounts or ()
    return tuple(mount.source for mount in mounts if mount.type == "image")


def check_images_removed(call: str, body: bytes) -> None:
    """DELETE images/remove, which answers 200 in any case. Raises RuntimeCallError for its errors but those of images
    that are gone."""
    for error in decode_value(endpoints.REMOVE_IMAGES.answer, body).errors or ():
        kind = kind_by_cause(error) or ErrorKind.INTERNAL
        if kind is not ErrorKind.IMAGE_UNKNOWN:
            raise RuntimeCallError(kind, call, error[:MAX_MESSAGE_CHARS])


def decode_progress(line: bytes) -> str:
    """One line of POST images/pull before its last: what is being done; empty when it does not say."""
    try:
        words = decode_value(endpoints.PULL_IMAGE.answer, line).stream
    except UNDECODABLE:
        return ""  # The last line tells; this one is only for people.
    return without_userinfo(" ".join(words.split()))[:MAX_PROGRESS_CHARS]


def decode_pull(line: bytes) -> str:
    """The last line of POST images/pull, which answers 200 in any case: the image id. Raises PULL for its error."""
    report = decode_value(endpoints.PULL_IMAGE.answer, line) if line else image_answers.PullLine()
    if report.error:
        raise RuntimeCallError(ErrorKind.PULL, "pull image", report.error[:MAX_MESSAGE_CHARS])
    image_id = report.id or next(iter(report.images or ()), "")
    if not image_id:
        raise RuntimeCallError(ErrorKind.PULL, "pull image", "the pull ended without an image and without an error")
    return image_id
