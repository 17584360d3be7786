"""Which seccomp profile a container runs under. Pure.

Mirrors getSeccompProfile and fieldSeccompProfile (pkg/kubelet/kuberuntime/helpers.go).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from ipc.api.v1.security import SeccompProfile, SecurityContext

UNCONFINED: Final = "unconfined"
"""Podman's word for no profile."""
RUNTIME_DEFAULT: Final = ""
"""Without a word Podman takes its own."""


class SeccompSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the node says about it."""

    default: bool = True
    """A container that does not choose gets the runtime's profile, and none otherwise."""
    profiles_dir: str = ""
    """Where Localhost profiles lie."""


def seccomp_profile_path(context: SecurityContext, settings: SeccompSettings) -> str:
    """Field ``seccomp_profile_path`` of a SpecGenerator. The context is the effective one.

    A privileged container has none, whatever it says, as containerd has it. A profile that is not there fails the
    create.
    """
    if context.privileged:
        return UNCONFINED
    profile = context.seccomp_profile or SeccompProfile(type="RuntimeDefault" if settings.default else "Unconfined")
    match profile.type:
        case "Unconfined":
            return UNCONFINED
        case "RuntimeDefault":
            return RUNTIME_DEFAULT
        case "Localhost":
            return str(Path(settings.profiles_dir, profile.localhost_profile or ""))
