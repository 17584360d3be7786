"""Reasons of failed syncs and starts as values of labels. `ipc.link.messages.sync_error` has their meaning; it stands
above shared memory, so they are spelled here once more, and a test holds the two against each other."""

from __future__ import annotations

from typing import Final

OTHER: Final = "other"
START_ERRORS: Final = (
    *("InvalidImageName", "ImageInspectError", "ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff"),
    *("RegistryUnavailable", "SignatureValidationFailed", "ImageVolumeMountFailed"),
    *("CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PostStartHookError", OTHER),
)
"""Values of ``code`` of kubelet_started_containers_errors_total."""
CANCELLED: Final = "Cancelled"
INTERNAL: Final = "Internal"
SYNC_ERRORS: Final = (
    *("", *START_ERRORS[:-1], "CrashLoopBackOff", "KillContainerError", "EndStraysError", "RemoveError"),
    *(
        "NetworkNotReady",
        "CreatePodSandboxError",
        "KillPodSandboxError",
        "EtcFileError",
        "FailedMount",
        "FailedUnMount",
    ),
    *("PodCgroupError", "ResizePodInPlaceError", "FreezePodError"),
    *("Timeout", "Unavailable", "StaleView", "TooLarge", "Unencodable", INTERNAL, CANCELLED),
)
"""Every `SyncError`, and `CANCELLED`."""
