"""Errors of a container that cannot be made as its manifest says until something outside of it changes."""

from __future__ import annotations

from ipc.link.messages.sync_error import SyncError


class ConfigError(Exception):
    """The container waits with that reason; the text is for people. Only a path in it, of a subPathExpr, may be made
    of a Secret (`ipc.k8s.podobjects.redaction`)."""

    reason = SyncError.CREATE_CONTAINER_CONFIG

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ImageVolumeError(ConfigError):
    """An image, or a part of it, cannot be mounted."""

    reason = SyncError.IMAGE_VOLUME_MOUNT_FAILED
