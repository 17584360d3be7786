"""What the kubelet's events and results say, word for word where tools or people may know the words. Pure."""

from __future__ import annotations

from ipc.api import Pod


def format_pod(pod: Pod) -> str:
    """``name_namespace(uid)`` (pkg/kubelet/util/format/pod.go)."""
    return f"{pod.metadata.name}_{pod.metadata.namespace}({pod.metadata.uid})"


def go_duration(seconds: float) -> str:
    """A duration as Go prints it, to the second: ``10s``, ``1m20s``, ``5m0s``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + f"{rest}s"


def go_duration_ms(seconds: float) -> str:
    """A duration as Go prints it, cut to the millisecond: ``0s``, ``345ms``, ``1.5s``, ``1m0.25s``."""
    millis = int(round(seconds * 1e6) // 1000)
    if millis == 0:
        return "0s"
    if millis < 1000:
        return f"{millis}ms"
    minutes, rest = divmod(millis, 60_000)
    hours, minutes = divmod(minutes, 60)
    whole, fraction = divmod(rest, 1000)
    decimals = f".{fraction:03}".rstrip("0").rstrip(".")
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + f"{whole}{decimals}s"


def crash_loop_message(pod: Pod, container: str, backoff_s: float) -> str:
    """The waiting message of a container that backs off (kuberuntime_manager.go, doBackOff)."""
    return f"back-off {go_duration(backoff_s)} restarting failed container={container} pod={format_pod(pod)}"


def crash_loop_event(pod: Pod, container: str) -> str:
    """The BackOff event beside it."""
    return f"Back-off restarting failed container {container} in pod {format_pod(pod)}"
