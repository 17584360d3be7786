"""Versions of kernel, operating system, runtime and agent (setters.go, VersionInfo)."""

from __future__ import annotations

from typing import Final

import msgspec

from ipc.k8s.nodestatus.node import NodeStatus

UNKNOWN: Final = "Unknown"


class HostVersions(msgspec.Struct, frozen=True, kw_only=True):
    """Versions that the host tells of itself."""

    kernel: str = ""
    os_image: str = ""
    operating_system: str = ""
    architecture: str = ""


def set_versions(
    status: NodeStatus, host: HostVersions, *, runtime: str, runtime_version: str, kubelet_version: str
) -> NodeStatus:
    """The status with these versions. ``runtime_version`` is empty while the runtime does not tell."""
    info = msgspec.structs.replace(
        status.node_info,
        kernel_version=host.kernel,
        os_image=host.os_image,
        operating_system=host.operating_system,
        architecture=host.architecture,
        container_runtime_version=f"{runtime}://{runtime_version or UNKNOWN}",
        kubelet_version=kubelet_version,
        # The agent itself is in none, but nothing that it runs has more than this user's rights.
        running_in_user_namespace=True,
    )
    return msgspec.structs.replace(status, node_info=info)
