"""The user that a container runs as: its security context, verified against its image and the host's ids.

Mirrors the beginning of generateContainerConfig (pkg/kubelet/kuberuntime/kuberuntime_container.go).
"""

from __future__ import annotations

from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podresources.user_namespaces import has_own_ids
from workers.kubecontainer.config_error import ConfigError
from workers.kubecontainer.image_reference import parse_image_reference
from workers.kubecontainer.image_service import ImageInfo
from workers.specgen.container_user import (
    ImageUser,
    container_user,
    names_ids,
    needs_image_user,
    parse_image_user,
    verify_ids,
    verify_run_as_non_root,
)
from workers.specgen.security_context import verify_rights
from workers.sync.run import SyncRun


async def find_user(run: SyncRun, pod: Pod, container: Container, image: ImageInfo | None) -> str:
    """Field ``user`` of a SpecGenerator, as `container_user` says. ``image`` is the container's, None when Podman was
    not asked for it yet: it is only where the pod's settings are about that. Raises ConfigError, RuntimeCallError,
    SyncEnded."""
    verify_rights(pod, container)
    user = await _image_user(run, container, image) if needs_image_user(pod, container) else ImageUser(uid=0)
    verify_run_as_non_root(pod, container, user)
    # A pod with ids of its own has all that it names, or no sandbox.
    if names_ids(pod, container) and not has_own_ids(pod):
        verify_ids(pod, container, await run.read(run.runtime.id_ranges))
    return container_user(pod, container, user)


async def _image_user(run: SyncRun, container: Container, image: ImageInfo | None) -> ImageUser:
    """Raises ConfigError, RuntimeCallError, SyncEnded."""
    reference = str(parse_image_reference(container.image))
    info = image or await run.read(run.runtime.inspect_image, reference)
    if info is None:
        raise ConfigError(f'image "{container.image}" not found')  # removed since it was seen
    return parse_image_user(info.user)
