"""Versions of the host: kernel, operating system, architecture."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from typing import Final

from ipc.nodestatus.version import HostVersions

_ARCHITECTURES: Final[Mapping[str, str]] = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}
"""Go's names of the machine's."""


def read_versions() -> HostVersions:
    """Versions of this host. Reads files: not for the loop."""
    host = os.uname()
    try:
        image = platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        image = ""
    return HostVersions(
        kernel=host.release,
        os_image=image,
        operating_system=host.sysname.lower(),
        architecture=_ARCHITECTURES.get(host.machine, host.machine),
    )
