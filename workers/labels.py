"""The labels by which everything about a container is known again after any crash.

Pod and container names use the kubelet's own keys (staging/src/k8s.io/kubelet/pkg/types/labels.go), so that other
tools read them; the rest is ours. A container belongs to this agent if and only if ``INSTANCE`` carries its instance
name; the infra container inherits its pod's labels and is told apart by ``IsInfra``.
"""

from __future__ import annotations

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
