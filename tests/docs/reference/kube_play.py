"""Support of `podman kube play` for the fields of a pod, by Podman's own list for 5.8 (docs/kubernetes_support.md)."""

from __future__ import annotations

from typing import Final

_SPEC: Final = "spec"
_CONTAINER: Final = "spec.containers[*]"
_POD: Final = (
    "containers initContainers restartPolicy terminationGracePeriodSeconds hostname hostAliases dnsConfig "
    "hostNetwork hostPID hostIPC shareProcessNamespace"
)
_VOLUMES: Final = "name hostPath persistentVolumeClaim configMap secret emptyDir image"
"""Podman's list names every volume source; its code (pkg/specgen/generate/kube/volume.go) refuses the others."""
_SECURITY: Final = "runAsUser runAsGroup seLinuxOptions"
_CONTAINERS: Final = (
    "name image imagePullPolicy command args workingDir ports env[*].name env[*].value "
    "env[*].valueFrom.configMapKeyRef env[*].valueFrom.fieldRef env[*].valueFrom.resourceFieldRef "
    "env[*].valueFrom.secretKeyRef envFrom[*].configMapRef envFrom[*].secretRef volumeMounts[*].mountPath "
    "volumeMounts[*].name volumeMounts[*].readOnly volumeMounts[*].subPath resources.limits resources.requests "
    "lifecycle.stopSignal livenessProbe"
)
_CONTAINER_SECURITY: Final = (
    f"{_SECURITY} readOnlyRootFilesystem procMount privileged allowPrivilegeEscalation capabilities"
)


def _below(parent: str, names: str) -> frozenset[str]:
    return frozenset(f"{parent}.{name}" for name in names.split())


ACTED_ON: Final = (
    frozenset({"apiVersion", "kind", "metadata.name", "metadata.labels", "metadata.annotations"})
    | _below(_SPEC, _POD)
    | _below(f"{_SPEC}.volumes[*]", _VOLUMES)
    | _below(f"{_SPEC}.securityContext", f"{_SECURITY} supplementalGroups sysctls")
    | _below(_CONTAINER, _CONTAINERS)
    | _below(f"{_CONTAINER}.securityContext", _CONTAINER_SECURITY)
)
"""Each with everything below it, where nothing of that is listed by itself."""
_LISTED_BY_PART: Final = frozenset({"spec.containers", "spec.initContainers"})
"""Fields of `ACTED_ON` that say nothing of the fields below them: these are listed by themselves."""

ANNOTATION: Final = "metadata.annotations["


def kube_play(path: str) -> str:
    """``yes``, ``partly`` (something below the field is acted on) or ``no``: ignored without a word."""
    known = ACTED_ON - _LISTED_BY_PART
    if path.startswith(ANNOTATION):
        return "no"  # Podman passes annotations on, and acts on none of the table's.
    if path in ACTED_ON or any(_is_below(path, parent) for parent in known):
        return "yes"
    return "partly" if any(_is_below(field, path) for field in known) else "no"


def _is_below(path: str, parent: str) -> bool:
    return path.startswith((f"{parent}.", f"{parent}["))
