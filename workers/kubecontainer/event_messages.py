"""Messages of events and results, word for word as the kubelet's. Pure."""

from __future__ import annotations

from ipc.host.text.durations import format_duration
from ipc.k8s.api.v1.pod import Pod


def format_pod(pod: Pod) -> str:
    """``name_namespace(uid)`` (pkg/kubelet/util/format/pod.go)."""
    return f"{pod.metadata.name}_{pod.metadata.namespace}({pod.metadata.uid})"


def duration_to_the_ms(seconds: float) -> str:
    """A duration as Go prints it, cut to the millisecond (Duration.Truncate)."""
    return format_duration(round(seconds * 1e6) // 1000 / 1000)


def crash_loop_message(pod: Pod, container: str, backoff_s: float) -> str:
    """The waiting message of a container that backs off (kuberuntime_manager.go, doBackOff)."""
    return f"back-off {format_duration(round(backoff_s))} restarting failed container={container} pod={format_pod(pod)}"


def crash_loop_event(pod: Pod, container: str) -> str:
    """The BackOff event beside it."""
    return f"Back-off restarting failed container {container} in pod {format_pod(pod)}"
