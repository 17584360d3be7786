"""Programs that make the network of a pod, slirp4netns and pasta: by the configuration and by Podman. Pure."""

from __future__ import annotations

from itertools import takewhile
from typing import Final

SLIRP4NETNS: Final = "slirp4netns"
PASTA: Final = "pasta"
PASTA_SINCE: Final = 5
"""Major version of Podman from which on pods get pasta when nothing else is said."""
SLIRP4NETNS_BEFORE: Final = 6
"""Major version of Podman that knows slirp4netns no more: a pod that asks for it is refused."""

HELPER_DIRS: Final = (
    "/usr/local/libexec/podman",
    "/usr/local/lib/podman",
    "/usr/libexec/podman",
    "/usr/lib/podman",
)
"""Podman's own places for such programs (containers/common, pkg/config/config_linux.go, DefaultHelperBinariesDir)."""


def version_numbers(version: str) -> tuple[int, ...]:
    """Numbers with which a version of Podman begins, such as 5.8.0-rc1; none where there are none."""
    parts = version.partition("-")[0].split(".")
    return tuple(int(part) for part in takewhile(lambda part: part.isascii() and part.isdecimal(), parts))


def major_version(version: str) -> int:
    """Major number of a version of Podman, 0 where there is none."""
    return next(iter(version_numbers(version)), 0)


def wanted_program(mode: str, version: str, default: str = "") -> str:
    """The program that a pod's network takes in that mode of the configuration. A bridge needs Podman's default."""
    if mode in (SLIRP4NETNS, PASTA):
        return mode
    return default or (PASTA if major_version(version) >= PASTA_SINCE else SLIRP4NETNS)


def program_problem(wanted: str, version: str) -> str:
    """Why Podman of that version makes no network by that program, wherever it is; empty when it does."""
    if wanted == SLIRP4NETNS and major_version(version) >= SLIRP4NETNS_BEFORE:
        return f"Podman {version} has no {SLIRP4NETNS} any more: set podNetwork.mode to {PASTA}, or leave it out"
    return ""
