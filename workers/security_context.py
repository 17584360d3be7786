"""As whom and with what rights a container runs, in libpod's words. Pure.

Mirrors determineEffectiveSecurityContext (pkg/kubelet/kuberuntime/security_context.go).
"""

from __future__ import annotations

from typing import Any

from ipc.api import Container, Pod


def sandbox_security(pod: Pod) -> dict[str, Any]:
    """Fields of a PodSpecGenerator."""
    return {}


def container_security(pod: Pod, container: Container) -> dict[str, Any]:
    """Fields of a SpecGenerator."""
    return {}
