"""subPath and subPathExpr: which part of a volume is mounted. Pure.

Mirrors makeMounts (pkg/kubelet/kubelet_pods.go) and ExpandContainerVolumeMounts (pkg/kubelet/container/helpers.go).
What keeps such a path in its volume is not here but where it is opened (`workers.userns.steps.mounts`).
"""

from __future__ import annotations

from collections.abc import Mapping

from ipc.api.v1.container import VolumeMount
from workers.env.expansion import expand_sub_path_expr
from workers.kubecontainer.config_error import ConfigError


def sub_path_of(mount: VolumeMount, environment: Mapping[str, str]) -> str:
    """Relative and without ``..``; empty for the whole volume. Raises ConfigError."""
    path = mount.sub_path
    if mount.sub_path_expr:
        path = expand_sub_path_expr(mount.sub_path_expr, environment)
    if path.startswith("/"):
        raise ConfigError(f"error SubPath `{path}` must not be an absolute path")
    if ".." in path.split("/"):
        raise ConfigError(f"unable to provision SubPath `{path}`: must not contain '..'")
    if "\0" in path:
        raise ConfigError("unable to provision SubPath: must not contain a null character")
    return path
