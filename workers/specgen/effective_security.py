"""The security context that counts for one container: its own settings before its pod's. Pure.

Mirrors DetermineEffectiveSecurityContext (pkg/securitycontext/util.go) and, for profiles, getSeccompProfile
(pkg/kubelet/kuberuntime/helpers.go).
"""

from __future__ import annotations

from typing import Final

import msgspec

from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.security import PodSecurityContext, SecurityContext

_OF_BOTH: Final = ("run_as_user", "run_as_group", "run_as_non_root", "selinux_options", "seccomp_profile")
"""Fields of a pod's context that apply to all of its containers. The other fields of a container's context are its own
alone."""


def effective_security_context(pod: Pod, container: Container) -> SecurityContext:
    """Each field of the container's context, or else of the pod's."""
    own, shared = container.security_context or SecurityContext(), pod.spec.security_context
    if shared is None:
        return own
    inherited = {name: getattr(shared, name) for name in _OF_BOTH if getattr(own, name) is None}
    return msgspec.structs.replace(own, **inherited)


def pod_security_context(pod: Pod) -> PodSecurityContext:
    """An empty one for a pod without."""
    return pod.spec.security_context or PodSecurityContext()
