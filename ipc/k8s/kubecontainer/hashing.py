"""Identity of a container or a sandbox: hashes over the fields that cannot change while it runs.

Upstream hashes a container's name and image only (pkg/kubelet/container/helpers.go, HashContainer), because its API
server forbids the other changes. Here an edited manifest is an update, so the hash covers every field that needs a new
container. Both lists name what is covered, never what is not: a field that v1 gains later changes no hash.
"""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from ipc.host.text.json_types import JsonObject
from ipc.k8s.api.pod_containers import ContainerKind, find_container
from ipc.k8s.api.podman_annotations import kept_id
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import Pod, PodSpec
from ipc.k8s.kubecontainer.pod_status import RuntimeContainerStatus, SandboxStatus
from ipc.k8s.kubecontainer.restart_policy import is_restartable_init
from ipc.k8s.podresources.allocation import RESIZABLE
from ipc.k8s.podresources.user_namespaces import has_own_ids, ids_of_pod

HASH_CHARS: Final = 16
"""Length of a hash, in hexadecimal digits (64 bits)."""

CONTAINER_FIELDS: Final = frozenset(
    {
        "name",
        "image",
        "command",
        "args",
        "workingDir",
        "envFrom",
        "env",
        "resources",
        "volumeMounts",
        "volumeDevices",
        "securityContext",
        "terminationMessagePath",
        "stdin",
        "stdinOnce",
        "tty",
    }
)
"""JSON names of the container fields that need a new container. Ports belong to the sandbox; policies, probes and
hooks are read from the manifest whenever they are needed. Of its resources those are covered that cannot change while
it runs; a container says itself with which of the others it was made."""

VOLUME_FIELDS: Final = frozenset({"path", "type", "medium", "reference", "claimName", "readOnly"})
"""JSON names of the fields of volume sources (hostPath, emptyDir, image, persistentVolumeClaim) that need new
containers. The other sources' files are changed while their containers run; so is the limit of an emptyDir."""

SANDBOX_FIELDS: Final = frozenset(
    {
        "hostname",
        "subdomain",
        "setHostnameAsFQDN",
        "hostnameOverride",
        "hostNetwork",
        "hostPID",
        "hostIPC",
        "shareProcessNamespace",
        "dnsPolicy",
        "dnsConfig",
        "runtimeClassName",
    }
)
"""JSON names of the pod spec fields that the sandbox is made of. Covered besides are published ports, those of regular
containers; and how many ids a pod has that has its own. Nothing else of a container is, so none
of any kind re-creates the sandbox. Host aliases are not: the hosts file is written anew while containers run."""
_SAME_AS_ABSENT: Final = {"dnsPolicy": "ClusterFirst", "shareProcessNamespace": False, "setHostnameAsFQDN": False}
"""Values that ask for what no value asks for."""
POD_SECURITY_FIELDS: Final = frozenset(
    {
        "runAsUser",
        "runAsGroup",
        "runAsNonRoot",
        "supplementalGroups",
        "supplementalGroupsPolicy",
        "fsGroup",
        "seccompProfile",
        "appArmorProfile",
        "seLinuxOptions",
    }
)
"""JSON names of the fields of a pod's security context that its containers are made with, as far as they do not have
their own."""

SANDBOX_SECURITY_FIELDS: Final = frozenset({"sysctls"})
"""JSON names of the fields of a pod's security context that its sandbox is made with."""


def container_hash(container: Container, kind: ContainerKind) -> str:
    """Equal for two definitions exactly when one container can serve both: not as an init container, which has to
    come to its end, and as one that runs beside the others."""
    return _hash(_without_resizable(_covered(container)) | _role(container, kind))


def hash_in(spec: PodSpec, container: Container) -> str:
    """Hash over a container and what it has from its pod, its volumes among it; equal to `container_hash` where that is
    nothing."""
    return _hash_in(spec, container, _without_resizable(_covered(container)))


def _hash_in(spec: PodSpec, container: Container, own: JsonObject) -> str:
    found = find_container(spec, container.name)
    kind = found.kind if found is not None else ContainerKind.REGULAR
    shared, volumes = _pod_security(spec, POD_SECURITY_FIELDS), _mounted(spec, container)
    context = {"securityContext": shared | own.get("securityContext", {})} if shared else {}
    return _hash(own | context | ({"volumes": volumes} if volumes else {}) | _role(container, kind))


def is_made_from(made: RuntimeContainerStatus, spec: PodSpec, container: Container) -> bool:
    """Whether a container serves for that definition, cpu and memory apart. One that does not say what it had of them
    is of an agent that could not resize: its hash covers them."""
    if made.resources is not None:
        return made.hash == hash_in(spec, container)
    return made.hash == _hash_in(spec, container, _covered(container))


def is_sandbox_made_from(made: SandboxStatus, pod: Pod) -> bool:
    """Whether a sandbox serves for the pod, with the same exception."""
    return made.hash == (sandbox_hash(pod) if made.resources is not None else _hash(_sandbox_covered(pod)))


def _covered(container: Container) -> JsonObject:
    return {key: value for key, value in _json(container).items() if key in CONTAINER_FIELDS}


def _without_resizable(covered: JsonObject) -> JsonObject:
    resources = covered.get("resources")
    if not resources:
        return covered
    fixed = {
        part: {name: amount for name, amount in amounts.items() if name not in RESIZABLE}
        if isinstance(amounts, dict)
        else amounts
        for part, amounts in resources.items()
    }
    return covered | {"resources": fixed}


def _pod_security(spec: PodSpec, fields: frozenset[str]) -> JsonObject:
    context = _json(spec.security_context) if spec.security_context is not None else {}
    return {key: value for key, value in context.items() if key in fields}


def _mounted(spec: PodSpec, container: Container) -> JsonObject:
    """Parts of the mounted volumes' definitions that are settled when a container is made, by name."""
    names = {mount.name for mount in container.volume_mounts}
    return {volume.name: _settled(_json(volume)) for volume in spec.volumes if volume.name in names}


def _settled(volume: JsonObject) -> list[JsonObject]:
    """The kind of its source, and where that leads."""
    return [
        {"source": source} | {key: value for key, value in fields.items() if key in VOLUME_FIELDS}
        for source, fields in volume.items()
        if isinstance(fields, dict)
    ]


def _role(container: Container, kind: ContainerKind) -> dict[str, str]:
    if kind is ContainerKind.REGULAR:
        return {}
    return {"kind": kind, "restartPolicy": "Always" if is_restartable_init(container) else ""}


def sandbox_hash(pod: Pod) -> str:
    """Equal for two pods exactly when one sandbox can serve both, whatever they may take together."""
    return _hash(_sandbox_covered(pod) | {"limits": {}})


def _sandbox_covered(pod: Pod) -> JsonObject:
    """With the pod's own limits, which the hashes of agents that could not resize have covered."""
    parts = msgspec.structs.replace(pod.spec, containers=(), init_containers=(), ephemeral_containers=(), volumes=())
    spec = _json(parts)  # without what is most of it and not covered
    covered = {key: value for key, value in spec.items() if key in SANDBOX_FIELDS and _SAME_AS_ABSENT.get(key) != value}
    covered["securityContext"] = _pod_security(pod.spec, SANDBOX_SECURITY_FIELDS)
    if (kept := kept_id(pod)) is not None:
        covered["ids"] = f"keep-id:{kept}"
    elif has_own_ids(pod):
        covered["ids"] = ids_of_pod(pod.spec)
    covered["limits"] = _json(pod.spec.resources).get("limits", {}) if pod.spec.resources is not None else {}
    covered["ports"] = [] if pod.spec.host_network else _published(pod.spec)
    return covered


def _published(spec: PodSpec) -> list[JsonObject]:
    """The ports that the host gives. A port's name is for people and Services."""
    ports = [_json(port) for container in spec.containers for port in container.ports if port.host_port]
    return [{key: value for key, value in port.items() if key != "name"} for port in ports]


def _json(struct: msgspec.Struct) -> JsonObject:
    data: JsonObject = msgspec.to_builtins(struct)
    return data


def _hash(data: JsonObject) -> str:
    canonical = msgspec.json.encode(_without_empty(data), order="sorted")
    return hashlib.sha256(canonical).hexdigest()[:HASH_CHARS]


def _without_empty(data: object) -> object:
    """An empty object or list says the same as none at all; zeros and falses stay, for they can differ from absence."""
    if isinstance(data, dict):
        kept = {key: _without_empty(value) for key, value in data.items()}
        return {key: value for key, value in kept.items() if value not in ({}, [])}
    if isinstance(data, (list, tuple)):
        return [_without_empty(value) for value in data]
    return data
