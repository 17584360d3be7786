"""Observed state of a pod in the runtime: plain values with a date on them.

These mirror the kubelet's ``kubecontainer.PodStatus`` (pkg/kubelet/container/runtime.go). All wall-clock times are
epoch seconds, 0.0 meaning *never*; ``observed_at`` is CLOCK_MONOTONIC seconds, comparable between all processes of
one agent.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from ipc.k8s.api.v1.container import ResourceRequirements
from ipc.k8s.api.v1.probe import LifecycleHandler
from ipc.k8s.api.v1.status import LinuxContainerUser

CONTAINER_STATUS_UNKNOWN: Final = "ContainerStatusUnknown"
"""Reason of an end that nobody saw (pkg/kubelet/container/helpers.go and kubelet_pods.go)."""
UNKNOWN_EXIT_CODE: Final = 137
"""Exit code of a container whose end nobody saw."""


class ContainerState(enum.StrEnum):
    """The kubelet's four container states (pkg/kubelet/container/runtime.go, State)."""

    CREATED = "created"
    RUNNING = "running"
    EXITED = "exited"
    UNKNOWN = "unknown"


class SandboxState(enum.StrEnum):
    """CRI's two sandbox states: ready means that the infra container runs."""

    READY = "ready"
    NOT_READY = "notready"


class RuntimeContainerStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One container of ours as Podman showed it."""

    id: str
    name: str
    """Name within the pod, from its label."""
    attempt: int
    """How many containers of this name the pod had before: the restart count. From its label."""
    state: ContainerState
    podman_state: str = ""
    """Podman's own word (configured, created, running, stopping, stopped, exited, paused, removing, ...)."""
    sandbox_id: str = ""
    """Id of the Podman pod that it is a member of."""
    hash: str = ""
    image: str = ""
    image_id: str = ""
    """``name@sha256:...``; Podman's own id when the image has no name or no digest."""
    backoff_s: float = 0.0
    """How long its end must lie back before its successor starts. From its label (see
    workers.compute.crash_loop_backoff)."""
    grace_period_s: int = 30
    """terminationGracePeriodSeconds of its pod when it was made. From its label."""
    stop_signal: str = ""
    """Signal that asks the container to end, e.g. SIGTERM: its own or its image's."""
    pre_stop: LifecycleHandler | None = None
    """The preStop hook when the container was made. From its label, for when nobody has its manifest any more."""
    created_at: float = 0.0
    started_at: float = 0.0
    finished_at: float = 0.0
    exit_code: int = 0
    oom_killed: bool = False
    error: str = ""
    reason: str = ""
    """CONTAINER_STATUS_UNKNOWN when it has ended and how is lost; otherwise empty: Podman knows no reasons."""
    message: str = ""
    """Termination message of one that has ended: what it wrote for that purpose, or the end of its log."""
    message_cut: bool = False
    """There was more of it than is told."""
    has_fit_texts: bool = False
    """The master has taken the values of Secrets out of ``message`` and ``error`` (`supervisor.record.pod_texts`)."""
    pid: int = 0
    """Pid of its first process in the host's pid namespace; 0 when not running."""
    start_ticks: int = 0
    """When that process was started, in clock ticks since boot: with the pid it says which process it is. 0 when it is
    not known."""
    monitor_pid: int = 0
    """Pid of its monitor (conmon); 0 when it is not known."""
    leaves_processes: bool = False
    """The end of its first process does not end the others, for want of a PID namespace of its own. From its label."""
    user: LinuxContainerUser | None = None
    """As whom that was begun."""
    resources: ResourceRequirements | None = None
    """Resources with which it was made. From its label; None of one that an agent has made that could not resize."""
    devices: Mapping[str, tuple[str, ...]] = {}
    """Devices that it was given, by extended resource. From its label."""
    image_volumes: Mapping[str, str] = {}
    """Images that it sees as volumes, by the volume's name, each as ``image_id`` says it. From its label."""
    is_remembered: bool = False
    """Nothing of it is left in the runtime: the agent's own record says how it ended."""


class SandboxStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One Podman pod of ours with its infra container."""

    id: str
    name: str
    infra_id: str
    attempt: int
    state: SandboxState
    hash: str = ""
    created_at: float = 0.0
    host_network: bool = False
    ips: tuple[str, ...] = ()
    infra_pid: int = 0
    """Pid of the infra container's process, in the host's pid namespace; 0 when it does not run."""
    infra_start_ticks: int = 0
    """When that process was started, in clock ticks since boot: with the pid it says which process it is."""
    infra_monitor_pid: int = 0
    """Pid of its monitor; 0 when it is not known."""
    grace_period_s: int = 30
    resources: ResourceRequirements | None = None
    """Resources of the pod as a whole with which it was made, as of a container."""
    active_since: str = ""
    """When its pod began to be active, as RFC 3339, which may be in an earlier sandbox; empty where nobody wrote it."""


class RuntimePodStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, dict=True):
    """Everything in the runtime that carries one pod's UID."""

    uid: str
    name: str = ""
    namespace: str = ""
    observed_at: float = 0.0
    """Monotonic time at which the observation *started*; nothing later than this is certain."""
    sandboxes: tuple[SandboxStatus, ...] = ()
    """Newest attempt first."""
    containers: tuple[RuntimeContainerStatus, ...] = ()
    """Per name newest attempt first."""
    lost_attempts: dict[str, int] = {}
    """Containers of which a newer attempt has run than any that is left: name -> that attempt. Only what was removed
    before the node worker was born; who has seen it removed knows better."""
    began_at: float = 0.0
    """When its first sandbox was made, where the agent's own record says so and none is left that is as old."""

    def is_empty(self) -> bool:
        """Nothing of this pod is left in the runtime."""
        return not self.sandboxes and all(container.is_remembered for container in self.containers)

    def is_running(self) -> bool:
        """Some container or sandbox may still run (an unknown one counts)."""
        return any(s.state is SandboxState.READY for s in self.sandboxes) or self.has_running_containers()

    def has_running_containers(self) -> bool:
        """Some container may still run (an unknown one counts), whatever its sandbox does."""
        return any(c.state in (ContainerState.RUNNING, ContainerState.UNKNOWN) for c in self.containers)

    def newest(self, name: str) -> RuntimeContainerStatus | None:
        """The newest container of that name (upstream: FindContainerStatusByName)."""
        return next(iter(self.of_name(name)), None)

    def of_name(self, name: str) -> Sequence[RuntimeContainerStatus]:
        """All containers of that name, newest attempt first."""
        return self._by_name.get(name, ())

    @functools.cached_property
    def _by_name(self) -> Mapping[str, Sequence[RuntimeContainerStatus]]:
        """Containers by name: a search for each name of a pod would be quadratic."""
        found: dict[str, list[RuntimeContainerStatus]] = {}
        for container in self.containers:
            found.setdefault(container.name, []).append(container)
        return found

    def with_containers(self, containers: Iterable[RuntimeContainerStatus]) -> RuntimePodStatus:
        """The status with these in place of its containers, in order."""
        return msgspec.structs.replace(self, containers=tuple(sorted(containers, key=_newest_of_a_name_first)))

    def same_as(self, other: RuntimePodStatus) -> bool:
        """Equal apart from when it was observed."""
        return msgspec.structs.replace(self, observed_at=0.0) == msgspec.structs.replace(other, observed_at=0.0)


def _newest_of_a_name_first(container: RuntimeContainerStatus) -> tuple[str, int, float, str]:
    return (container.name, -container.attempt, -container.created_at, container.id)
