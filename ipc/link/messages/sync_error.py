"""Why a sync, or one action of it, has failed: the values are the reasons that status, events and logs show."""

from __future__ import annotations

import enum


class SyncError(enum.StrEnum):
    """Reasons with an upstream source are its words: pkg/kubelet/images/types.go for images,
    pkg/kubelet/container/sync_result.go for containers and sandboxes. The others are our own."""

    NONE = ""
    """Success."""

    # images
    INVALID_IMAGE_NAME = "InvalidImageName"
    IMAGE_INSPECT = "ImageInspectError"
    IMAGE_NEVER_PULL = "ErrImageNeverPull"
    IMAGE_PULL = "ErrImagePull"
    IMAGE_PULL_BACK_OFF = "ImagePullBackOff"
    REGISTRY_UNAVAILABLE = "RegistryUnavailable"
    """No connection to the registry (staging/src/k8s.io/cri-api/pkg/errors/errors.go)."""
    SIGNATURE_VALIDATION_FAILED = "SignatureValidationFailed"
    """The user's policy does not accept the image (likewise)."""
    IMAGE_VOLUME_MOUNT_FAILED = "ImageVolumeMountFailed"
    """An image, or a part of it, could not be mounted as a volume (likewise)."""

    # containers
    CRASH_LOOP_BACK_OFF = "CrashLoopBackOff"
    CREATE_CONTAINER_CONFIG = "CreateContainerConfigError"
    CREATE_CONTAINER = "CreateContainerError"
    RUN_CONTAINER = "RunContainerError"
    POST_START_HOOK = "PostStartHookError"
    KILL_CONTAINER = "KillContainerError"
    LEFTOVER_PROCESSES = "EndStraysError"
    """Processes of containers that have ended could not be ended."""
    REMOVE = "RemoveError"
    """A container, a sandbox or a directory could not be removed."""

    # pods
    NETWORK_NOT_READY = "NetworkNotReady"
    """The host lacks what a network for the pod is made with (pkg/kubelet/events/event.go)."""
    CREATE_POD_SANDBOX = "CreatePodSandboxError"
    KILL_POD_SANDBOX = "KillPodSandboxError"
    POD_CGROUP = "PodCgroupError"
    """The pod's slice could not be made or stopped."""
    RESIZE_POD = "ResizePodInPlaceError"
    FREEZE_POD = "FreezePodError"
    """The pod's processes could not be paused or resumed."""
    ETC_FILE = "EtcFileError"
    """The files that all containers see in /etc could not be written."""
    FAILED_MOUNT = "FailedMount"
    FAILED_UNMOUNT = "FailedUnMount"

    # the sync as a whole
    TIMEOUT = "Timeout"
    """Podman did not answer in time: whether it has acted is unknown."""
    UNAVAILABLE = "Unavailable"
    """No Podman service answers."""
    STALE_VIEW = "StaleView"
    """No observation of the pod is as new as the sync needs."""
    TOO_LARGE = "TooLarge"
    """The request exceeds a frame of the link and was not sent."""
    UNENCODABLE = "Unencodable"
    """The request holds what has no encoding and was not sent."""
    INTERNAL = "Internal"
    """An unexpected exception."""
