"""image: the content of an OCI image, read-only.

Mirrors getImageVolumes (pkg/kubelet/kuberuntime/kuberuntime_manager.go): the image is pulled by its own policy before a
container that sees it is made (`workers.kuberuntime.container_images`), so a missing one is that container's reason to
wait, and here there is nothing to make ready.
"""

from __future__ import annotations

from ipc.k8s.api.v1.volume import Volume
from workers.kubecontainer.image_reference import image_reference_problem, parse_image_reference
from workers.kubecontainer.mounted_volume import MountedVolume, VolumeError
from workers.sync.pod_snapshot import PodSnapshot
from workers.sync.run import SyncRun
from workers.volumemanager.plugins.volume_host import VolumeHost


async def set_up_image(run: SyncRun, host: VolumeHost, of: PodSnapshot, volume: Volume) -> MountedVolume:
    """Raises VolumeError."""
    assert volume.image is not None, "an image volume"
    try:
        reference = parse_image_reference(volume.image.reference)
    except ValueError as error:
        raise VolumeError(volume.name, image_reference_problem(volume.image.reference, error)) from error
    return MountedVolume(name=volume.name, image=str(reference), read_only=True)
