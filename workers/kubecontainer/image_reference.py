"""Image references as Kubernetes reads them. Pure.

The grammar is that of the distribution project (reference/regexp.go). Short names become Docker Hub's, as the kubelet's
container runtimes read them: Podman's own short-name resolution needs a terminal.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import msgspec

MAX_NAME_CHARS: Final = 255
"""Longest domain with path, in characters."""

_DEFAULT_DOMAIN: Final = "docker.io"
_LEGACY_DOMAIN: Final = "index.docker.io"
_OFFICIAL_PREFIX: Final = "library/"
_DEFAULT_TAG: Final = "latest"
_LOCAL_DOMAIN: Final = "localhost"

_LABEL: Final = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN: Final = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_COMPONENT: Final = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_NAME: Final = re.compile(rf"(?:(?P<domain>{_DOMAIN})/)?(?P<path>{_COMPONENT}(?:/{_COMPONENT})*)")
_TAG: Final = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127}")
_DIGEST: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}")
_IMAGE_ID: Final = re.compile(r"[a-f0-9]{64}")


class ImageReference(msgspec.Struct, frozen=True, kw_only=True):
    """A complete reference: with a domain, and with a tag or a digest or both."""

    domain: str
    path: str
    tag: str = ""
    digest: str = ""

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        digest = f"@{self.digest}" if self.digest else ""
        return f"{self.domain}/{self.path}{tag}{digest}"

    def is_local(self) -> bool:
        """Built or imported on this host: ``localhost`` without a port is Podman's name for no registry at all."""
        return self.domain == _LOCAL_DOMAIN


@lru_cache(maxsize=256)
def parse_image_reference(text: str) -> ImageReference:
    """applyDefaultImageTag (pkg/kubelet/images/image_manager.go) and the normalization of the distribution project.

    Raises ValueError with words for people.
    """
    if _IMAGE_ID.fullmatch(text):
        raise ValueError("it is an image id, not a name")
    rest, at, digest = text.partition("@")
    if at and not _DIGEST.fullmatch(digest):
        raise ValueError("invalid digest")
    head, slash, last = rest.rpartition("/")
    last, colon, tag = last.partition(":")
    if colon and not _TAG.fullmatch(tag):
        raise ValueError("invalid tag")
    domain, path = _split_domain(head + slash + last)
    if not path or _NAME.fullmatch(f"{domain}/{path}") is None:
        upper = path != path.lower() and "the repository name must be lowercase"
        raise ValueError(upper or "invalid reference format")
    if len(f"{domain}/{path}") > MAX_NAME_CHARS:
        raise ValueError(f"the name is longer than {MAX_NAME_CHARS} characters")
    default_tag = "" if digest else _DEFAULT_TAG
    return ImageReference(domain=domain, path=path, tag=tag or default_tag, digest=digest)


def image_reference_problem(text: str, error: ValueError) -> str:
    """Words for an image whose reference could not be parsed (applyDefaultImageTag, and who calls it)."""
    return f'Failed to apply default image tag "{text}": couldn\'t parse image name "{text}": {error}'


def image_digest_reference(image: str, digest: str) -> str:
    """The imageID of a status: ``name@sha256:...`` (convertContainerStatuses, pkg/kubelet/kubelet_pods.go).

    Empty when the image has no name or no digest.
    """
    try:
        named = parse_image_reference(image)
    except ValueError:
        return ""
    return f"{named.domain}/{named.path}@{digest}" if digest else ""


def _split_domain(name: str) -> tuple[str, str]:
    """The first component is a domain if it looks like one; everything else is on Docker Hub."""
    first, slash, rest = name.partition("/")
    is_domain = bool(slash) and ("." in first or ":" in first or first == _LOCAL_DOMAIN or first != first.lower())
    domain, path = (first, rest) if is_domain else (_DEFAULT_DOMAIN, name)
    if domain in (_DEFAULT_DOMAIN, _LEGACY_DOMAIN):
        return _DEFAULT_DOMAIN, path if "/" in path else _OFFICIAL_PREFIX + path
    return domain, path
