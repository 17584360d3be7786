"""Annotations by which `podman kube play` is directed (podman-kube-play(1), libpod/define/annotations.go). Pure.

Those of a claim are options of its volume in Podman. Those of a pod have fields of Kubernetes in their place.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final

import msgspec

from ipc.k8s.api.annotations import is_api_pod
from ipc.k8s.api.errors import FieldError
from ipc.k8s.api.v1.pod import Pod

_OF_CLAIM: Final = "volume.podman.io/"
_PLAIN: Final = {f"{_OF_CLAIM}device": "device", f"{_OF_CLAIM}type": "type"}
_OWNERS: Final = {f"{_OF_CLAIM}uid": "uid", f"{_OF_CLAIM}gid": "gid"}
_MOUNT_OPTIONS: Final = f"{_OF_CLAIM}mount-options"
_DRIVER: Final = f"{_OF_CLAIM}driver"
_LOCAL: Final = "local"
_HONOURED: Final = frozenset({*_PLAIN, *_OWNERS, _MOUNT_OPTIONS})
_MAX_ID_DIGITS: Final = 10

USERNS: Final = "io.podman.annotations.userns"
"""The user namespace of a pod."""
_KEEP_ID: Final = re.compile(r"keep-id(?::(?P<options>.*))?")
_ID: Final = re.compile(r"(?P<name>uid|gid)=(?P<id>[0-9]{1,10})")
_OF_POD: Final = ("io.podman.annotations.", "io.containers.", "bind-mount-options")
_INSTEAD: Final = {
    USERNS: "keep-id, with uid and gid, is acted on; hostUsers: false gives the pod a user namespace of its own",
    "io.podman.annotations.pids-limit": "podPidsLimit in the configuration",
    "io.podman.annotations.ulimit": "default_ulimits in containers.conf",
    "io.podman.annotations.volumes-from": "a volume that both containers mount",
    "io.podman.annotations.kube.image.volumes.mount": "a volume of the kind image",
    "io.podman.annotations.kube.health.check": "livenessProbe",
    "io.podman.annotations.init": "shareProcessNamespace: true gives the pod an init",
    "io.podman.annotations.privileged": "securityContext.privileged",
    "io.podman.annotations.seccomp": "securityContext.seccompProfile",
    "io.podman.annotations.apparmor": "securityContext.appArmorProfile",
    "io.containers.autoupdate": "another image tag in the manifest",
    "bind-mount-options": "mountPropagation and readOnly of the mount",
}
"""Nearest way to the same end, by the annotation's name without a container's."""
_MAX_USERNS_CHARS: Final = 64
MAX_TOLD: Final = 20
"""Most annotations of a pod that are warned of."""


def of_its_volume(annotations: Mapping[str, str]) -> dict[str, str]:
    """The annotations of a claim from which its volume is made."""
    return {name: value for name, value in annotations.items() if name in _HONOURED}


def volume_options(annotations: Mapping[str, str]) -> dict[str, str]:
    """Options of the volume in Podman that a claim is given (POST volumes/create, ``Options``)."""
    options = {option: annotations[name] for name, option in _PLAIN.items() if annotations.get(name)}
    mount = [annotations[_MOUNT_OPTIONS]] if annotations.get(_MOUNT_OPTIONS) else []
    mount += [f"{option}={annotations[name]}" for name, option in _OWNERS.items() if name in annotations]
    return options | ({"o": ",".join(mount)} if mount else {})


def claim_annotation_errors(annotations: Mapping[str, str], path: str) -> Iterator[FieldError]:
    """Annotations of a claim that would make another volume than the one that it is given here."""
    for name in sorted(annotations):
        where, value = f"{path}[{name}]", annotations[name]
        if name in _OWNERS and not (value.isascii() and value.isdigit() and len(value) <= _MAX_ID_DIGITS):
            yield FieldError(where, "must be a number: a user or group in Podman's user namespace")
        elif name == _DRIVER and value != _LOCAL:
            yield FieldError(where, "not supported: make the volume by `podman volume create`, under the claim's name")
        elif name.startswith(_OF_CLAIM) and name not in _HONOURED | {_DRIVER}:
            yield FieldError(where, "not supported: nothing fills a volume here; do so by an init container")


class KeptId(msgspec.Struct, frozen=True):
    """The user and the group that the agent's user is in the containers of a pod; None: their own on the host."""

    uid: int | None = None
    gid: int | None = None

    def __str__(self) -> str:
        """As Podman takes them."""
        named = (("uid", self.uid), ("gid", self.gid))
        return ",".join(f"{name}={id}" for name, id in named if id is not None)


def kept_id(pod: Pod) -> KeptId | None:
    """As whom the agent's user is kept. None for most pods: without the annotation, with ``hostUsers: false``, which is
    another namespace, and for those of a cluster, which has no such annotation."""
    value = pod.metadata.annotations.get(USERNS)
    if value is None or pod.spec.host_users is False or is_api_pod(pod):
        return None
    return _keep_id(value)


def _keep_id(value: str) -> KeptId | None:
    """``keep-id`` or ``keep-id:uid=N,gid=N``; None for another mode."""
    found = _KEEP_ID.fullmatch(value[:_MAX_USERNS_CHARS])
    if found is None:
        return None
    named = [_ID.fullmatch(option) for option in found["options"].split(",")] if found["options"] else []
    options = {one["name"]: int(one["id"]) for one in named if one is not None}
    return KeptId(**options) if len(options) == len(named) else None


def pod_annotation_warnings(annotations: Mapping[str, str], honoured: Collection[str] = ()) -> tuple[str, ...]:
    """A line for each annotation of a pod that Podman would act on, and nobody here does; ``honoured`` are acted on."""
    found = sorted(name for name in annotations if name.startswith(_OF_POD) and name not in honoured)
    return tuple(f"metadata.annotations[{name}]: {_why(name)}" for name in found[:MAX_TOLD])


def _why(name: str) -> str:
    instead = _INSTEAD.get(re.split("[/:]", name, maxsplit=1)[0], "")
    return "acted on by podman kube play alone" + (f"; here: {instead}" if instead else "")
