"""Table of the event reasons: each row is a reason, its type and its upstream source. Every emitter imports its row.

Rows are named after the kubelet's constants. Two of them may share a reason, as upstream (Failed, BackOff). Pure.
"""

from __future__ import annotations

import enum
from typing import Final, NamedTuple

from ipc.link.messages.sync_error import SyncError


class EventType(enum.StrEnum):
    """v1 Event types (k8s.io/api/core/v1, EventTypeNormal and EventTypeWarning)."""

    NORMAL = "Normal"
    WARNING = "Warning"


class EventReason(NamedTuple):
    """One row of the table; as text it is the reason."""

    reason: str
    type: EventType
    source: str
    """File and constant or function upstream; empty for a reason of our own."""

    def __str__(self) -> str:
        return self.reason


_EVENTS: Final = "pkg/kubelet/events/event.go"

# Containers
CREATED_CONTAINER: Final = EventReason("Created", EventType.NORMAL, f"{_EVENTS}, CreatedContainer")
STARTED_CONTAINER: Final = EventReason("Started", EventType.NORMAL, f"{_EVENTS}, StartedContainer")
FAILED_CONTAINER: Final = EventReason(
    "Failed", EventType.WARNING, f"{_EVENTS}, FailedToCreateContainer and FailedToStartContainer"
)
KILLING_CONTAINER: Final = EventReason("Killing", EventType.NORMAL, f"{_EVENTS}, KillingContainer")
BACK_OFF_START_CONTAINER: Final = EventReason("BackOff", EventType.WARNING, f"{_EVENTS}, BackOffStartContainer")
CONTAINER_UNHEALTHY: Final = EventReason("Unhealthy", EventType.WARNING, f"{_EVENTS}, ContainerUnhealthy")
CONTAINER_PROBE_WARNING: Final = EventReason("ProbeWarning", EventType.WARNING, f"{_EVENTS}, ContainerProbeWarning")
FAILED_POST_START_HOOK: Final = EventReason("FailedPostStartHook", EventType.WARNING, f"{_EVENTS}, FailedPostStartHook")
FAILED_PRE_STOP_HOOK: Final = EventReason("FailedPreStopHook", EventType.WARNING, f"{_EVENTS}, FailedPreStopHook")
LIFECYCLE_HTTP_FALLBACK: Final = EventReason(
    "LifecycleHTTPFallback", EventType.WARNING, "pkg/kubelet/lifecycle/handlers.go, runHTTPHandler"
)
CONTAINER_RESTART_REQUESTED: Final = EventReason("RestartRequested", EventType.NORMAL, "")
"""Somebody wants a container to begin anew (`rootlet restart container`)."""
FAILED_KILL_CONTAINER: Final = EventReason("FailedKillContainer", EventType.WARNING, "")
"""A container that has to go does not. Upstream only says so of whole pods."""

# Images
PULLING_IMAGE: Final = EventReason("Pulling", EventType.NORMAL, f"{_EVENTS}, PullingImage")
PULLED_IMAGE: Final = EventReason("Pulled", EventType.NORMAL, f"{_EVENTS}, PulledImage")
FAILED_TO_PULL_IMAGE: Final = EventReason("Failed", EventType.WARNING, f"{_EVENTS}, FailedToPullImage")
FAILED_TO_INSPECT_IMAGE: Final = EventReason("InspectFailed", EventType.WARNING, f"{_EVENTS}, FailedToInspectImage")
ERR_IMAGE_NEVER_PULL_POLICY: Final = EventReason(
    SyncError.IMAGE_NEVER_PULL.value, EventType.WARNING, f"{_EVENTS}, ErrImageNeverPullPolicy"
)
REPLACEMENT_PUT_OFF: Final = EventReason("ReplacementPutOff", EventType.WARNING, "")
"""A container that an edited manifest replaces goes on, for an image of its successor is not there."""
BACK_OFF_PULL_IMAGE: Final = EventReason("BackOff", EventType.NORMAL, f"{_EVENTS}, BackOffPullImage")
FAILED_TO_RETRIEVE_IMAGE_PULL_SECRET: Final = EventReason(
    "FailedToRetrieveImagePullSecret", EventType.WARNING, "pkg/kubelet/kubelet_pods.go, getPullSecretsForPod"
)

# Pods
SANDBOX_CHANGED: Final = EventReason("SandboxChanged", EventType.NORMAL, f"{_EVENTS}, SandboxChanged")
FAILED_CREATE_POD_SANDBOX: Final = EventReason(
    "FailedCreatePodSandBox", EventType.WARNING, f"{_EVENTS}, FailedCreatePodSandBox"
)
FAILED_TO_CREATE_POD_CONTAINER: Final = EventReason(
    "FailedCreatePodContainer", EventType.WARNING, f"{_EVENTS}, FailedToCreatePodContainer"
)
NETWORK_NOT_READY: Final = EventReason(
    SyncError.NETWORK_NOT_READY.value, EventType.WARNING, f"{_EVENTS}, NetworkNotReady"
)
POD_PAUSED: Final = EventReason("Paused", EventType.NORMAL, "")
POD_RESUMED: Final = EventReason("Resumed", EventType.NORMAL, "")
FAILED_TO_KILL_POD: Final = EventReason("FailedKillPod", EventType.WARNING, f"{_EVENTS}, FailedToKillPod")
FAILED_SYNC: Final = EventReason("FailedSync", EventType.WARNING, f"{_EVENTS}, FailedSync")
"""Nothing is done for a pod whose state cannot be observed."""
MISSING_CLUSTER_DNS: Final = EventReason(
    "MissingClusterDNS", EventType.WARNING, "pkg/kubelet/network/dns/dns.go, GetPodDNS"
)
DNS_CONFIG_FORMING: Final = EventReason(
    "DNSConfigForming", EventType.WARNING, "pkg/kubelet/network/dns/dns.go, formDNSSearchFitsLimits"
)
FAILED_MOUNT_VOLUME: Final = EventReason(
    SyncError.FAILED_MOUNT.value, EventType.WARNING, f"{_EVENTS}, FailedMountVolume"
)
VOLUME_PERMISSION_CHANGE_IN_PROGRESS: Final = EventReason(
    "VolumePermissionChangeInProgress", EventType.WARNING, f"{_EVENTS}, VolumePermissionChangeInProgress"
)
DEADLINE_EXCEEDED: Final = EventReason(
    "DeadlineExceeded", EventType.NORMAL, "pkg/kubelet/active_deadline.go, activeDeadlineHandler"
)
FAILED_BINDING: Final = EventReason(
    "FailedBinding", EventType.NORMAL, "pkg/controller/volume/events/event.go, FailedBinding"
)
VOLUME_TAKEN: Final = EventReason(
    "FailedBinding", EventType.WARNING, "pkg/controller/volume/events/event.go, FailedBinding"
)
VOLUME_MISMATCH: Final = EventReason(
    "VolumeMismatch", EventType.WARNING, "pkg/controller/volume/events/event.go, VolumeMismatch"
)
PROVISIONING_FAILED: Final = EventReason(
    "ProvisioningFailed", EventType.WARNING, "pkg/controller/volume/events/event.go, ProvisioningFailed"
)
VOLUME_FAILED_DELETE: Final = EventReason(
    "VolumeFailedDelete", EventType.WARNING, "pkg/controller/volume/events/event.go, VolumeFailedDelete"
)
BANDWIDTH_NOT_LIMITED: Final = EventReason("BandwidthNotLimited", EventType.WARNING, "")
EVICTED: Final = EventReason("Evicted", EventType.WARNING, "pkg/kubelet/eviction/helpers.go, Reason")
RESIZE_STARTED: Final = EventReason("ResizeStarted", EventType.NORMAL, f"{_EVENTS}, ResizeStarted")
RESIZE_COMPLETED: Final = EventReason("ResizeCompleted", EventType.NORMAL, f"{_EVENTS}, ResizeCompleted")
RESIZE_DEFERRED: Final = EventReason("ResizeDeferred", EventType.WARNING, f"{_EVENTS}, ResizeDeferred")
RESIZE_INFEASIBLE: Final = EventReason("ResizeInfeasible", EventType.WARNING, f"{_EVENTS}, ResizeInfeasible")
RESIZE_ERROR: Final = EventReason("ResizeError", EventType.WARNING, f"{_EVENTS}, ResizeError")
RESIZE_BY_RESTART: Final = EventReason("ResizeByRestart", EventType.WARNING, "")
"""A container whose resources change is made anew, though its resizePolicy does not ask for that."""
PREEMPTING: Final = EventReason("Preempting", EventType.WARNING, f"{_EVENTS}, PreemptContainer")
EXCEEDED_GRACE_PERIOD: Final = EventReason("ExceededGracePeriod", EventType.WARNING, f"{_EVENTS}, ExceededGracePeriod")
FAILED_UNMOUNT_VOLUME: Final = EventReason(SyncError.FAILED_UNMOUNT.value, EventType.WARNING, "")
"""Upstream only logs it."""
FAILED_STORAGE_MEASURE: Final = EventReason("FailedStorageMeasure", EventType.WARNING, "")
"""Upstream only logs it."""
OBJECTS_TOO_LARGE: Final = EventReason("ObjectsTooLarge", EventType.WARNING, "")
"""The pod is synced without some of the ConfigMaps and Secrets that it refers to."""
SYNC_CRASH_LOOP_BACK_OFF: Final = EventReason("SyncCrashLoopBackOff", EventType.WARNING, "")
"""The pod kills its worker again and again."""
UNSUPPORTED_FIELD: Final = EventReason("UnsupportedField", EventType.WARNING, "")
"""The pod runs, without something that its manifest asks for; or a pod of a cluster does not run because of it."""

# The node
STARTING: Final = EventReason("Starting", EventType.NORMAL, f"{_EVENTS}, StartingKubelet")
NODE_REBOOTED: Final = EventReason("Rebooted", EventType.WARNING, f"{_EVENTS}, NodeRebooted")
CONTAINER_GC_FAILED: Final = EventReason("ContainerGCFailed", EventType.WARNING, f"{_EVENTS}, ContainerGCFailed")
IMAGE_GC_FAILED: Final = EventReason("ImageGCFailed", EventType.WARNING, f"{_EVENTS}, ImageGCFailed")
FREE_DISK_SPACE_FAILED: Final = EventReason("FreeDiskSpaceFailed", EventType.WARNING, f"{_EVENTS}, FreeDiskSpaceFailed")
INVALID_DISK_CAPACITY: Final = EventReason("InvalidDiskCapacity", EventType.WARNING, f"{_EVENTS}, InvalidDiskCapacity")
FAILED_VALIDATION: Final = EventReason("FailedValidation", EventType.WARNING, f"{_EVENTS}, FailedValidation")
UNKNOWN_CONTAINER: Final = EventReason("UnknownContainer", EventType.WARNING, "")
"""A container has labels of this agent's that it has not written."""
CONTAINER_RUNTIME_DOWN: Final = EventReason("ContainerRuntimeDown", EventType.WARNING, "")
CONTAINER_RUNTIME_UP: Final = EventReason("ContainerRuntimeUp", EventType.NORMAL, "")
CONTAINER_RUNTIME_REPLACED: Final = EventReason("ContainerRuntimeReplaced", EventType.WARNING, "")
"""The Podman service that is the agent's child answers nothing and is started again."""
EVICTION_THRESHOLD_MET: Final = EventReason(
    "EvictionThresholdMet", EventType.WARNING, "pkg/kubelet/eviction/eviction_manager.go, synchronize"
)
NODE_ADDRESSES: Final = EventReason("NodeAddresses", EventType.NORMAL, "")
"""The host has other addresses than before."""
NODE_WITHOUT_ADDRESS: Final = EventReason("NodeAddresses", EventType.WARNING, "")
DEVICE_NOT_HEALTHY: Final = EventReason("DeviceNotHealthy", EventType.WARNING, "")
"""A device of the configuration is gone, or cannot be opened any more."""
APPLIED_SECRETS_LOST: Final = EventReason("AppliedSecretsLost", EventType.WARNING, "")
"""Secrets of `rootlet apply` are gone with the memory that they were kept in. Upstream's are in etcd."""
STATE_LOST: Final = EventReason("StateFilesLost", EventType.WARNING, "")
"""Files of the agent's own went away while it ran."""
PREFLIGHT: Final = EventReason("Preflight", EventType.WARNING, "")
"""A finding of `rootlet doctor` at the agent's start."""


def node_status(reason: str) -> EventReason:
    """Row of a change of one of the node's conditions (`ipc.k8s.nodestatus.node.NodeEvent`)."""
    return EventReason(reason, EventType.NORMAL, "pkg/kubelet/kubelet_node_status.go, recordNodeStatusEvent")


def rejected(reason: str) -> EventReason:
    """Row of a pod that was not admitted: the reason of its status is that of its event."""
    return EventReason(reason, EventType.WARNING, "pkg/kubelet/kubelet.go, rejectPod")
