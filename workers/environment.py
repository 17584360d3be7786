"""The environment of a container. Pure.

Mirrors makeEnvironmentVariables (pkg/kubelet/kubelet_pods.go).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ipc.api import Container, Pod
from ipc.config_objects import ConfigObjects
from ipc.node_resources import NodeResources
from workers.volumes.mounted import MountedVolume


class EnvironmentSources(msgspec.Struct, frozen=True, kw_only=True):
    """Where values come from."""

    pod: Pod
    objects: ConfigObjects = ConfigObjects()
    node_name: str = ""
    host_ip: str = ""
    pod_ips: tuple[str, ...] = ()
    """Of its sandbox; empty when it has none of its own."""
    node: NodeResources = NodeResources()
    volumes: Mapping[str, MountedVolume] = {}
    """By name; for variables that are read from files."""


def make_environment(container: Container, sources: EnvironmentSources) -> dict[str, str]:
    """Name to value. Raises ConfigError."""
    return {variable.name: variable.value for variable in container.env if variable.value_from is None}
