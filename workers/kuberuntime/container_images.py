"""The images that a container needs before it can be made: its own, and those that it sees as volumes.

Mirrors the beginning of startContainer (pkg/kubelet/kuberuntime/kuberuntime_container.go). Whether one has to be
pulled is `workers.images.manager`' to say.
"""

from __future__ import annotations

from typing import Final

from ipc.api.v1.container import Container, PullPolicy
from ipc.api.v1.pod import Pod
from ipc.messages import event_reasons
from ipc.messages.event_reasons import EventReason
from workers.images.credentials import KeyedLogin, PullSecretError, logins_for, read_pull_secret
from workers.images.manager import FindLogins, ImageError
from workers.kubecontainer.image_reference import parse_image_reference
from workers.sync.context import SyncRun

MAY_NOT_SUCCEED: Final = "attempting to pull the image may not succeed."


async def ensure_images(run: SyncRun, pod: Pod, container: Container) -> None:
    """All of them; of its volumes' those that the container sees (getImageVolumes). Raises ImageError, which has been
    told, and SyncEnded."""
    await ensure_image(run, pod, container, held=_image_of_predecessor(run, container))
    seen = {mount.name for mount in container.volume_mounts}
    for image in (volume.image for volume in pod.spec.volumes if volume.name in seen):
        if image is not None:
            await _ensure(run, pod, container, image.reference, image.pull_policy or "IfNotPresent")


async def ensure_image(run: SyncRun, pod: Pod, container: Container, held: str = "") -> None:
    """The container's own. ``held``: the image of a container that is there. Raises as `ensure_images`."""
    await _ensure(run, pod, container, container.image, container.image_pull_policy or "IfNotPresent", held)


def _image_of_predecessor(run: SyncRun, container: Container) -> str:
    """Empty when there is no predecessor."""
    newest = run.view.newest(container.name)
    return newest.image if newest is not None else ""


async def _ensure(run: SyncRun, pod: Pod, container: Container, image: str, policy: PullPolicy, held: str = "") -> None:
    """Raises as `ensure_images`."""

    async def tell(reason: EventReason, message: str) -> None:
        await run.event(reason, message, container.name)

    run.step(f"image of {container.name}")
    if await run.context.images.reuse_image(image, policy, held, tell):
        return
    ensure = run.context.images.ensure_image
    find_logins = await _login_finder(run, pod)
    try:
        found = await run.unless_cancelled(ensure, run.pull_backoff, image, policy, tell, find_logins)
    except ImageError as error:
        await run.event(event_reasons.FAILED_CONTAINER, f"Error: {error.reason}", container.name)
        raise
    run.images[str(parse_image_reference(image))] = found


async def _login_finder(run: SyncRun, pod: Pod) -> FindLogins:
    """Of the pod's imagePullSecrets; read once in a sync."""
    if run.pull_logins is None:
        run.pull_logins = await _read_pull_secrets(run, pod)
    logins = run.pull_logins
    return lambda image: logins_for(image, logins)


async def _read_pull_secrets(run: SyncRun, pod: Pod) -> tuple[KeyedLogin, ...]:
    """One that is missing or no good is told of, and the pull goes on without it (getPullSecretsForPod,
    pkg/kubelet/kubelet_pods.go)."""
    names = [secret.name for secret in pod.spec.image_pull_secrets if secret.name]
    secrets = [run.request.objects.secrets[name] for name in names if name in run.request.objects.secrets]
    unusable = [name for name in names if name not in run.request.objects.secrets]
    logins: list[KeyedLogin] = []
    for secret in secrets:
        try:
            logins += read_pull_secret(secret)
        except PullSecretError:
            unusable.append(secret.metadata.name)
    if unusable:
        message = f"Unable to retrieve some image pull secrets ({', '.join(unusable)}); {MAY_NOT_SUCCEED}"
        await run.event(event_reasons.FAILED_TO_RETRIEVE_IMAGE_PULL_SECRET, message)
    return tuple(logins)
