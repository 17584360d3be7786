"""Image names as container engines write them.

Source: distribution/reference (grammar in reference.go, normalisation in normalize.go) as Kubernetes uses it in
pkg/util/parsers ParseImageName.
"""

import re
from typing import Final

import msgspec

DEFAULT_DOMAIN: Final = "docker.io"
DEFAULT_TAG: Final = "latest"
MAX_PATH_CHARS: Final = 255
"""Longest path of a repository, in characters."""
MAX_IMAGE_CHARS: Final = 1024
"""Longest image name looked at, in characters; also what keeps the pattern cheap."""

_LABEL = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PATH_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_REFERENCE: Final = re.compile(
    rf"(?P<domain>{_DOMAIN})/(?P<path>{_PATH_PART}(?:/{_PATH_PART})*)(?::(?P<tag>{_TAG}))?(?:@(?P<digest>{_DIGEST}))?"
)
_IMAGE_ID: Final = re.compile(r"[a-f0-9]{64}")


class ImageName(msgspec.Struct, frozen=True):
    """The parts of an image name, the repository with its registry. An empty part was not written."""

    repository: str
    tag: str
    digest: str


def parse_image_name(image: str) -> ImageName | None:
    """The parts of an image name, normalised as engines do (`busybox` is `docker.io/library/busybox:latest`).

    With neither tag nor digest the tag is DEFAULT_TAG. None when it is no image name.
    """
    if len(image) > MAX_IMAGE_CHARS or _IMAGE_ID.fullmatch(image):
        return None
    match = _REFERENCE.fullmatch(_with_domain(image))
    if match is None or len(match["path"]) > MAX_PATH_CHARS:
        return None
    tag, digest = match["tag"] or "", match["digest"] or ""
    return ImageName(f"{match['domain']}/{match['path']}", tag or ("" if digest else DEFAULT_TAG), digest)


def _with_domain(image: str) -> str:
    first, slash, rest = image.partition("/")
    if not slash:
        return f"{DEFAULT_DOMAIN}/library/{image}"
    if first == "index.docker.io":
        return f"{DEFAULT_DOMAIN}/{rest}" if "/" in rest else f"{DEFAULT_DOMAIN}/library/{rest}"
    is_domain = first == "localhost" or "." in first or ":" in first or first != first.lower()
    if not is_domain:
        return f"{DEFAULT_DOMAIN}/{image}"
    return f"{first}/library/{rest}" if first == DEFAULT_DOMAIN and "/" not in rest else image
