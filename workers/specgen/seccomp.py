"""Seccomp profile of a container. Pure.

Mirrors getSeccompProfile and fieldSeccompProfile (pkg/kubelet/kuberuntime/helpers.go).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from ipc.k8s.api.v1.security import SeccompProfile, SecurityContext

UNCONFINED: Final = "unconfined"
"""Podman's value for no profile."""


class SeccompSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The node's settings of seccomp."""

    default: bool = True
    """A container without a profile gets the runtime's (seccompDefault); otherwise none."""
    profiles_dir: str = ""
    """Where Localhost profiles lie."""
    runtime_default: str = ""
    """Podman's default profile; empty leaves it to Podman to find it."""


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
            return settings.runtime_default
        case "Localhost":
            return str(Path(settings.profiles_dir, profile.localhost_profile or ""))
