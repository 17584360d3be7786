"""Input and result of the decision of one sync: values only (``workers.compute.pod_actions`` decides)."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.container_gc import GcPolicy
from ipc.k8s.kubecontainer.pod_status import RuntimeContainerStatus, RuntimePodStatus, SandboxStatus
from ipc.k8s.kubecontainer.probe_results import NO_PROBE_RESULTS, ProbeResults
from ipc.k8s.kubecontainer.resize import ResizeJudge
from ipc.link.eventloop.backoff import Backoff
from workers.compute.kill_spec import ContainerKill
from workers.compute.resize import NO_RESIZE, PodResize
from workers.compute.sandbox_change import SandboxChange


class DecisionInput(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the decision depends on."""

    pod: Pod
    status: RuntimePodStatus
    change: SandboxChange
    now_wall: float
    """Epoch seconds."""
    limits: Backoff
    probe_results: Mapping[str, ProbeResults] = {}
    """By container id; one that is not in it has not been probed."""
    gc: GcPolicy = GcPolicy()
    """How many of the dead are kept. What a decision may still need is kept in any case."""
    dead_containers: frozenset[str] = frozenset()
    """Ids of dead containers that are to go besides."""
    resize: ResizeJudge
    restarts: Mapping[str, int | None] = {}
    """Containers that somebody wants to begin anew, by id, and the grace periods asked for, in seconds."""

    @property
    def sandbox(self) -> SandboxStatus:
        """The newest one."""
        return self.status.sandboxes[0]

    def is_inside(self, container: RuntimeContainerStatus) -> bool:
        """Whether the container lies in the newest sandbox."""
        return bool(self.status.sandboxes) and container.sandbox_id == self.sandbox.id

    def inside(self, name: str) -> RuntimeContainerStatus | None:
        """The newest container of that name, if it lies in the newest sandbox."""
        newest = self.status.newest(name)
        return newest if newest is not None and self.is_inside(newest) else None

    def is_lost(self, container: RuntimeContainerStatus) -> bool:
        """Whether nothing is left of the container, nor of its sandbox."""
        return container.is_remembered and all(container.sandbox_id != each.id for each in self.status.sandboxes)

    def probe_results_of(self, container: RuntimeContainerStatus) -> ProbeResults:
        """Probe results of the container so far."""
        return self.probe_results.get(container.id, NO_PROBE_RESULTS)


class ContainerStart(msgspec.Struct, frozen=True, kw_only=True):
    """Make a container of any kind and start it, or start one that was made and never started."""

    name: str
    attempt: int
    """0 also when no container tells: the log directory may know better."""
    backoff_s: float
    """For its label: how long its end must lie back before its successor starts."""
    created_id: str = ""
    """The container that is only waiting to be started; empty when it has to be made."""
    replaces: str = ""
    """Id of the running container that an edited manifest replaces by it; empty when it replaces none, or one that is
    stopped for other reasons."""


class ContainerWait(msgspec.Struct, frozen=True, kw_only=True):
    """A container that would start if its back-off were over."""

    name: str
    backoff_s: float
    retry_at: float
    """Wall time of the next try."""


class ContainerReset(msgspec.Struct, frozen=True, kw_only=True):
    """Take a container away so that it begins as if it had never run. Its logs stay, and so its restart count."""

    container: RuntimeContainerStatus
    kill: ContainerKill | None
    """First, when it may be running."""


class PodActions(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one sync does, in the order of the fields (kuberuntime_manager.go, podActions)."""

    reason: str
    """Summary of what was observed, for people."""
    kill_pod: bool = False
    """Stop every container and every sandbox first."""
    containers_to_kill: tuple[ContainerKill, ...] = ()
    """Unless the whole pod is stopped."""
    containers_to_reset: tuple[ContainerReset, ...] = ()
    """In this order; nothing starts before all of them are gone."""
    init_containers_to_prune: tuple[RuntimeContainerStatus, ...] = ()
    """Dead ones, before init containers are made."""
    create_sandbox: bool = False
    sandbox_id: str = ""
    """The sandbox to use, or the one that is replaced (its loss is worth an event when not empty)."""
    attempt: int = 0
    """Attempt of the sandbox to create."""
    ephemeral_containers_to_start: tuple[ContainerStart, ...] = ()
    init_containers_to_start: tuple[ContainerStart, ...] = ()
    """In order; one that is no sidecar and does not start keeps the later ones from starting."""
    containers_to_start: tuple[ContainerStart, ...] = ()
    resize: PodResize = NO_RESIZE
    """After the starts of init containers, before those of regular ones."""
    waiting: tuple[ContainerWait, ...] = ()
    containers_to_remove: tuple[RuntimeContainerStatus, ...] = ()
    sandboxes_to_remove: tuple[SandboxStatus, ...] = ()
    """Each with everything in it."""

    def is_empty(self) -> bool:
        """Nothing to do, though something may be waiting."""
        return self == PodActions(
            reason=self.reason, sandbox_id=self.sandbox_id, attempt=self.attempt, waiting=self.waiting
        )
