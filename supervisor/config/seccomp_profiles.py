"""Seccomp profiles of our own service's containers: Podman's default one, and a lean copy of it for sandboxes.

An OCI runtime compiles a profile for each container that it makes, 15 ms of CPU for Podman's default one: a filter for
each architecture that the processor can run. A sandbox runs one program, which is of the host's own architecture, so
its profile is the default one without the others. What that allows the default one allows, too.

The lean copy is the default of the service, which is how an infra container gets it: each container names its own. (A
pod's ``security_opt`` is no way: with one, Podman 4.3 panics where the body of a member is wrong.)
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ipc.host.regular_files import read_regular_file
from ipc.host.text.json_types import UNDECODABLE

DEFAULT_PROFILES: Final = ("/etc/containers/seccomp.json", "/usr/share/containers/seccomp.json")
"""Where Podman looks for its default profile when containers.conf names none (libpod, DefaultSeccompPath)."""
SANDBOX_PROFILE: Final = "sandbox-seccomp.json"
"""In the state directory: the profile of sandboxes."""
MAX_PROFILE_BYTES: Final = 1 << 20


def default_profile(conf: Mapping[str, Any]) -> str:
    """Path of Podman's default profile with that containers.conf; empty when it is in no file."""
    stated = conf.get("containers", {}).get("seccomp_profile")
    paths = DEFAULT_PROFILES if not stated else (stated,)
    return next((path for path in paths if isinstance(path, str) and os.path.isabs(path) and os.path.isfile(path)), "")


def for_sandboxes(profile: bytes) -> bytes:
    """A profile without other architectures than the host's own; empty where it has no table of them, or is none."""
    try:
        decoded = msgspec.json.decode(profile)
        architectures = [{**row, "subArchitectures": []} for row in decoded["archMap"]]
    except (*UNDECODABLE, LookupError, TypeError):
        return b""
    return msgspec.json.encode({**decoded, "archMap": architectures}) if architectures else b""


def read_profile(path: str) -> bytes:
    """Content of a profile; empty when it cannot be read, or is larger than any is."""
    try:
        content = read_regular_file(path, MAX_PROFILE_BYTES + 1) if path else b""
    except OSError:
        return b""
    return content if len(content) <= MAX_PROFILE_BYTES else b""
