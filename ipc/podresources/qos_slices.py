"""Slices of systemd in which the pods of each QoS class are (pkg/kubelet/cm/pod_container_manager_linux.go). Pure."""

from __future__ import annotations

from typing import Final

from ipc.api.v1.pod import Pod
from ipc.podresources.cgroup_config import slice_name
from ipc.podresources.qos import compute_pod_qos

ROOT: Final = "rootlet"
BURSTABLE: Final = "burstable"
BEST_EFFORT: Final = "besteffort"
_CLASSES: Final = {"Guaranteed": (), "Burstable": (BURSTABLE,), "BestEffort": (BEST_EFFORT,)}


def slice_parts(instance: str) -> tuple[str, ...]:
    """Slice of all pods of an instance; guaranteed ones are directly in it."""
    return ROOT, instance


def pod_parent(instance: str, pod: Pod) -> str:
    """Name of the slice in which the pod's own is to be made."""
    return slice_name((*slice_parts(instance), *_CLASSES[compute_pod_qos(pod)]))
