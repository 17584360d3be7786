"""Names of the cgroups of the node's pods, as slices of systemd, and values of those above the pods' own. Pure.

Mirrors pkg/kubelet/cm: CgroupName and its systemd form (cgroup_manager_linux.go), the names of pods' cgroups
(pod_container_manager_linux.go), setCPUCgroupConfig (qos_container_manager_linux.go) and getCgroupConfig
(node_container_manager_linux.go). Different on purpose: the slice of all pods bears the name of the instance, since one
user may run several agents; and a UID that systemd cannot have in a name is replaced by its digest.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Final

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podresources.cgroup_config import MIN_SHARES, CgroupConfig, milli_cpu_to_shares
from ipc.k8s.podresources.node_resources import DEFAULT_ROOT, PodCgroups
from ipc.k8s.podresources.pod_requests import CPU, MEMORY, amount, pod_requests
from ipc.k8s.podresources.qos import compute_pod_qos

CgroupName = tuple[str, ...]
"""Names of a cgroup and those above it, the outermost first (CgroupName)."""

BURSTABLE: Final = "burstable"
BEST_EFFORT: Final = "besteffort"
POD_PREFIX: Final = "pod"
PID: Final = "pid"
_SUFFIX: Final = ".slice"
_QOS: Final[Mapping[str, CgroupName]] = {"Burstable": (BURSTABLE,), "BestEffort": (BEST_EFFORT,), "Guaranteed": ()}
"""Names between the slice of all pods and a pod's: guaranteed ones lie directly below it."""
_FIT_UID: Final = re.compile(r"[A-Za-z0-9-]{1,128}")
"""UIDs that come back whole from the name of a slice, which with the rest stays below systemd's 255 bytes."""


# --- names -------------------------------------------------------------------------------------------------------


def systemd_basename(name: CgroupName) -> str:
    """Name of the slice (CgroupName.ToSystemd without the directories): a dash is systemd's sign for a level."""
    return "/".join(name).replace("-", "_").replace("/", "-") + _SUFFIX if name else "/"


def systemd_path(name: CgroupName) -> str:
    """Where systemd has that slice, below its own cgroup (ExpandSlice)."""
    return "/" + "/".join(systemd_basename(name[:end]) for end in range(1, len(name) + 1))


def parse_slice(basename: str) -> CgroupName:
    """The name of which that is the slice (ParseSystemdToCgroupName)."""
    return tuple(basename.removesuffix(_SUFFIX).replace("-", "/").replace("_", "-").split("/"))


def pod_uid(name: CgroupName, root: CgroupName) -> str:
    """UID of the pod, or what stands for it, whose cgroup has that name; empty for another cgroup (IsPodCgroup)."""
    is_below = name[: len(root)] == root and len(name) - len(root) in (1, 2)
    last = name[-1] if is_below else ""
    parts = last.split(POD_PREFIX)
    return parts[1] if last.startswith(POD_PREFIX) and len(parts) == 2 else ""


def uid_in_name(uid: str) -> str:
    """The UID as the name of a slice has it."""
    is_fit = _FIT_UID.fullmatch(uid) is not None and POD_PREFIX not in uid
    return uid if is_fit else hashlib.sha256(uid.encode(errors="surrogatepass")).hexdigest()


def root_name(cgroups: PodCgroups) -> CgroupName:
    """Name of the cgroup of all pods."""
    return (cgroups.root,)


def root_of_instance(instance: str) -> str:
    """Value of `PodCgroups.root` for an agent of that name."""
    return instance if instance == DEFAULT_ROOT else f"{DEFAULT_ROOT}-{instance}"


def pod_slice(cgroups: PodCgroups, pod: Pod) -> str:
    """The slice of a pod."""
    return _pod_slice(cgroups, pod.metadata.uid, compute_pod_qos(pod))


def pod_slice_uid(basename: str, cgroups: PodCgroups) -> str:
    """UID, as names have it, of the pod whose slice that is; empty for another slice."""
    return pod_uid(parse_slice(basename), root_name(cgroups))


def _pod_slice(cgroups: PodCgroups, uid: str, qos: str) -> str:
    return systemd_basename((*root_name(cgroups), *_QOS[qos], POD_PREFIX + uid_in_name(uid)))


def slice_directory(cgroups: PodCgroups, basename: str) -> str:
    """Directory of the slice in the cgroup file system."""
    return str(PurePosixPath(cgroups.directory, systemd_path(parse_slice(basename)).lstrip("/")))


def pods_directory(cgroups: PodCgroups) -> str:
    """Directory of the slice of all pods."""
    return slice_directory(cgroups, systemd_basename(root_name(cgroups)))


# --- values ------------------------------------------------------------------------------------------------------


def root_config(resources: Mapping[str, str]) -> CgroupConfig:
    """Values of the slice of all pods from what they may have together (getCgroupConfig)."""
    return CgroupConfig(
        memory=amount(resources, MEMORY) if MEMORY in resources else None,
        cpu_shares=milli_cpu_to_shares(amount(resources, CPU)) if CPU in resources else None,
        pids_limit=amount(resources, PID) if PID in resources else None,
    )


def burstable_cpu_shares(pods: Iterable[Pod]) -> int:
    """Shares of CPU for which burstable pods ask together (setCPUCgroupConfig)."""
    return milli_cpu_to_shares(sum(map(burstable_milli_cpu, pods)))


def burstable_milli_cpu(pod: Pod) -> int:
    """Thousandths of a CPU by which the pod adds to the weight of burstable pods."""
    return pod_requests(pod).get(CPU, 0) if compute_pod_qos(pod) == "Burstable" else 0


def shared_slices(cgroups: PodCgroups, resources: Mapping[str, str], burstable: int) -> dict[str, CgroupConfig]:
    """Values of the slices above the pods' own, the outermost first. ``resources``: all that pods may have together.
    ``burstable``: thousandths of a CPU for which burstable pods ask together."""
    root = root_name(cgroups)
    return {
        systemd_basename(root): root_config(resources if cgroups.enforced else {}),
        systemd_basename((*root, BURSTABLE)): CgroupConfig(cpu_shares=milli_cpu_to_shares(burstable)),
        systemd_basename((*root, BEST_EFFORT)): CgroupConfig(cpu_shares=MIN_SHARES),
    }
