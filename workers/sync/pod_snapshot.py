"""A pod as one sync acts on it."""

from __future__ import annotations

import msgspec

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from ipc.k8s.podobjects.config_objects import ConfigObjects
from ipc.k8s.podresources.devices import NOTHING, Allocated, Devices


class PodSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A pod's manifest, the objects that it refers to, and the observation that the sync acts on."""

    pod: Pod
    objects: ConfigObjects = ConfigObjects()
    status: RuntimePodStatus
    devices: Allocated = NOTHING
    known_devices: Devices = msgspec.field(default_factory=dict)
    active_since: str = ""
    """When the pod began to be active, as RFC 3339."""
