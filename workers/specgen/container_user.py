"""User and groups of a container, verified against its image, as fields of libpod's SpecGenerator. Pure.

Mirrors verifyRunAsNonRoot (pkg/kubelet/kuberuntime/security_context_others.go), getImageUser
(pkg/kubelet/kuberuntime/kuberuntime_image.go) and containerd's generateUserString.

Different on purpose: when the manifest names neither user nor group, the image's group counts (``USER 1000:1000``),
which upstream drops.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from ipc.host.text.gofmt import quoted
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.security import SecurityContext
from workers.kubecontainer.config_error import ConfigError
from workers.kubecontainer.event_messages import format_pod
from workers.specgen.effective_security import effective_security_context, pod_security_context
from workers.specgen.security_context import supplemental_groups
from workers.userns.id_ranges import IdRange, IdRanges, has_id, shown

MAX_ID: Final = 2**31 - 1
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}")


class ImageUser(msgspec.Struct, frozen=True, kw_only=True):
    """User that an image's USER names: by number, by name, or root by default."""

    uid: int | None = None
    name: str = ""
    group: str = ""

    def __str__(self) -> str:
        return self.name if self.uid is None else str(self.uid)

    @property
    def is_root(self) -> bool:
        return self.uid == 0 or self.name == "root"


def parse_image_user(user: str) -> ImageUser:
    """``""``, ``user`` or ``user:group``, each part a number or a name."""
    name, _, group = user.partition(":")
    if not name:
        return ImageUser(uid=0, group=group)
    if _NUMBER.fullmatch(name):
        return ImageUser(uid=int(name), group=group)
    return ImageUser(name=name, group=group)


def needs_image_user(pod: Pod, container: Container) -> bool:
    """Whether `container_user` and `verify_run_as_non_root` have to know the image's."""
    context = effective_security_context(pod, container)
    asked = context.run_as_non_root or context.run_as_group is not None or _is_strict(pod)
    return bool(asked) and context.run_as_user is None


def verify_run_as_non_root(pod: Pod, container: Container, image: ImageUser) -> None:
    """Raises ConfigError with upstream's message."""
    context = effective_security_context(pod, container)
    if not context.run_as_non_root:
        return
    whose = f"(pod: {quoted(format_pod(pod))}, container: {container.name})"
    if context.run_as_user is not None:
        if context.run_as_user == 0:
            raise ConfigError(f"container's runAsUser breaks non-root policy {whose}")
    elif image.uid is None:
        what = f"image has non-numeric user ({image.name}), cannot verify user is non-root"
        raise ConfigError(f"container has runAsNonRoot and {what} {whose}")
    elif image.uid == 0:
        raise ConfigError(f"container has runAsNonRoot and image will run as root {whose}")
    elif not 0 <= image.uid <= MAX_ID:
        why = f"(Must be 1-({MAX_ID})): must be between 0 and {MAX_ID}, inclusive"
        raise ConfigError(f"container has runAsNonRoot and image has an invalid user id ({image.uid}). {why} {whose}")


def container_user(pod: Pod, container: Container, image: ImageUser) -> str:
    """``uid``, ``uid:gid`` or ``name:gid`` for field ``user`` of a SpecGenerator; empty leaves it to the image.

    Podman adds the groups that the image's /etc/group has the user in exactly when no group is named here. So Strict
    needs a group, and Merge has none of them beside one. Raises ConfigError.
    """
    context = effective_security_context(pod, container)
    if context.run_as_group is not None:
        return f"{_user(context, image)}:{context.run_as_group}"
    if not _is_strict(pod):
        return "" if context.run_as_user is None else str(context.run_as_user)
    if context.run_as_user is None and image.group:
        return ""
    if context.run_as_user == 0 or (context.run_as_user is None and image.is_root):
        return "0:0"
    raise ConfigError(
        f"supplementalGroupsPolicy is Strict and runAsGroup is not set: Podman would give user {_user(context, image)} "
        "all groups that the image has for it"
    )


def verify_ids(pod: Pod, container: Container, ranges: IdRanges) -> None:
    """A rootless container has the ids of its user namespace and no others. Raises ConfigError."""
    for field, id, kind, there in _ids(pod, container, ranges):
        if not has_id(there, id):
            file = "/etc/subuid" if kind == "user" else "/etc/subgid"
            raise ConfigError(
                f"{field} {id}: there is no such {kind} in a rootless container, whose {kind} ids are {shown(there)}; "
                f"more come from {file}, `podman system migrate` and a restart of the agent"
            )


def names_ids(pod: Pod, container: Container) -> bool:
    """Whether `verify_ids` has an id to check. Id 0 is always mapped."""
    return any(id for _, id, _, _ in _ids(pod, container, IdRanges(users=(), groups=())))


def _ids(pod: Pod, container: Container, ranges: IdRanges) -> Iterator[tuple[str, int, str, tuple[IdRange, ...]]]:
    context = effective_security_context(pod, container)
    if context.run_as_user is not None:
        yield "runAsUser", context.run_as_user, "user", ranges.users
    if context.run_as_group is not None:
        yield "runAsGroup", context.run_as_group, "group", ranges.groups
    own = pod_security_context(pod).fs_group
    for group in supplemental_groups(pod):
        yield "fsGroup" if group == own else "supplementalGroups", group, "group", ranges.groups


def _user(context: SecurityContext, image: ImageUser) -> str:
    return str(image) if context.run_as_user is None else str(context.run_as_user)


def _is_strict(pod: Pod) -> bool:
    return pod_security_context(pod).supplemental_groups_policy == "Strict"
