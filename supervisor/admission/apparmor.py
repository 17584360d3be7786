"""Whether a pod asks for an AppArmor profile, which no rootless container can have. Pure.

Mirrors Validate and isRequired (pkg/security/apparmor): any profile but Unconfined, wherever it is named, needs a host
that enforces it. Podman takes no profile from a user that is not root, also where the kernel has AppArmor and the
profile is loaded: *apparmor profile "x" specified, but Apparmor is not enabled on this system* (measured; its source:
containers/common, pkg/apparmor, IsEnabled).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ipc.api.pod_containers import every_container
from ipc.api.v1.pod import Pod

APPARMOR: Final = "AppArmor"
"""The reason of such a rejection."""
ANNOTATION_PREFIX: Final = "container.apparmor.security.beta.kubernetes.io/"
"""How a profile was named before there was a field; followed by the container's name."""


def apparmor_problem(pod: Pod) -> str | None:
    """Reason why the pod may not run; None when it may."""
    if all(profile.lower() == "unconfined" for profile in _profiles(pod)):
        return None
    return "Cannot enforce AppArmor: AppArmor is not supported on rootless containers"


def _profiles(pod: Pod) -> Iterator[str]:
    contexts = (pod.spec.security_context, *(found.container.security_context for found in every_container(pod.spec)))
    for context in contexts:
        if context is not None and context.app_armor_profile is not None:
            yield context.app_armor_profile.type
    for key, value in pod.metadata.annotations.items():
        if key.startswith(ANNOTATION_PREFIX):
            yield value
