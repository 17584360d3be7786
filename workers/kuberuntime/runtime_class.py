"""The OCI runtime of a pod's RuntimeClass (pkg/kubelet/runtimeclass/runtimeclass_manager.go, LookupRuntimeHandler)."""

from __future__ import annotations

from collections.abc import Mapping

from ipc.k8s.podobjects.config_objects import ObjectKind
from workers.kubecontainer.config_error import ConfigError
from workers.sync.pod_snapshot import PodSnapshot


def find_oci_runtime(of: PodSnapshot, runtimes: Mapping[str, str]) -> str:
    """Path of the runtime; empty for Podman's own choice. Raises ConfigError."""
    name = of.pod.spec.runtime_class_name
    if not name:
        return ""
    found = of.objects.runtime_classes.get(name)
    if found is None and of.objects.is_unknown(ObjectKind.RUNTIME_CLASS, name):
        raise ConfigError(f'RuntimeClass "{name}" is not known yet')
    if found is None:
        raise ConfigError(f'RuntimeClass.node.k8s.io "{name}" not found')
    if found.handler not in runtimes:
        raise ConfigError(f'no runtime for "{found.handler}" is configured')
    return runtimes[found.handler]
