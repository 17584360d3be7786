"""The labels by which everything about a container is known again after any crash.

Pod and container names use the kubelet's own keys (staging/src/k8s.io/kubelet/pkg/types/labels.go), and so does what
the kubelet keeps of a container beside them (pkg/kubelet/kuberuntime/labels.go), so that other tools read them; the
rest is ours. A container belongs to this agent if and only if ``INSTANCE`` carries its instance
name; the infra container inherits its pod's labels and is told apart by ``IsInfra``.
"""

from __future__ import annotations

from collections.abc import Mapping

INSTANCE = "rootlet.dev/instance"
POD_NAME = "io.kubernetes.pod.name"
POD_NAMESPACE = "io.kubernetes.pod.namespace"
POD_UID = "io.kubernetes.pod.uid"
CONTAINER_NAME = "io.kubernetes.container.name"
CONTAINER_HASH = "rootlet.dev/container-hash"
SANDBOX_HASH = "rootlet.dev/sandbox-hash"
ATTEMPT = "rootlet.dev/attempt"
"""Restart count of a container, attempt of a sandbox (on the Podman pod)."""
BACKOFF_S = "rootlet.dev/restart-backoff-seconds"
GRACE_PERIOD_S = "rootlet.dev/termination-grace-period-seconds"
HOST_NETWORK = "rootlet.dev/host-network"
LEAVES_PROCESSES = "rootlet.dev/leaves-processes"
"""The end of the container's first process does not end the others that it has; only when it is so."""
PRE_STOP = "io.kubernetes.container.preStopHandler"
"""The hook as JSON; only when there is one."""
TERMINATION_MESSAGE_PATH = "io.kubernetes.container.terminationMessagePath"
"""Within the container; empty when it has no such file."""
TERMINATION_MESSAGE_POLICY = "io.kubernetes.container.terminationMessagePolicy"


def whole(found: Mapping[str, str], key: str, default: int) -> int:
    """A number; a label that somebody has spoiled must not stop the observation of everything else."""
    text = found.get(key, "")
    return int(text) if text.isascii() and text.isdigit() else default
