"""Transition times of conditions (pkg/kubelet/status/status_manager.go, updateLastTransitionTime).

Upstream finds the times of the agent before it in the API. Here nothing keeps them: for a pod that this agent sees for
the first time they are the dates that the runtime has, and now where it has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from ipc.k8s.api.v1.status import ContainerStatus, PodCondition, PodStatus
from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from supervisor.status import conditions
from supervisor.status.container_states import stamp


def with_transition_times(
    made: Iterable[PodCondition], previous: Iterable[PodCondition], generation: int, now: str
) -> tuple[PodCondition, ...]:
    """Each with the time of ``previous`` where its status is the same, else with ``now``."""
    before = {condition.type: condition for condition in previous}

    def dated(condition: PodCondition) -> PodCondition:
        old = before.get(condition.type)
        same = old is not None and old.status == condition.status
        at = old.last_transition_time if old is not None and same else now
        return msgspec.structs.replace(condition, last_transition_time=at, observed_generation=generation)

    return tuple(map(dated, made))


def with_observed_times(status: PodStatus, observed: RuntimePodStatus) -> PodStatus:
    """Status of a pod at its first observation: transitions before that are dated by what was observed."""
    known = _known_times(status, observed)

    def dated(condition: PodCondition) -> PodCondition:
        at = known.get((condition.type, condition.status))
        return msgspec.structs.replace(condition, last_transition_time=at) if at else condition

    return msgspec.structs.replace(status, conditions=tuple(map(dated, status.conditions)))


def _known_times(status: PodStatus, observed: RuntimePodStatus) -> Mapping[tuple[str, str], str | None]:
    """(Condition, status) -> since when, None where nothing tells."""
    sandbox_at = next((stamp(sandbox.created_at) for sandbox in observed.sandboxes), None)
    last_init_end = max(filter(None, map(_finished_at, status.init_container_statuses)), default=None)
    last_start = max(filter(None, map(_started_at, status.container_statuses)), default=None)
    last_end = max(filter(None, map(_finished_at, status.container_statuses)), default=None)
    return {
        (conditions.POD_SCHEDULED, "True"): status.start_time,
        (conditions.POD_READY_TO_START_CONTAINERS, "True"): sandbox_at,
        (conditions.INITIALIZED, "True"): last_init_end if status.init_container_statuses else status.start_time,
        (conditions.CONTAINERS_READY, "True"): last_start,
        (conditions.CONTAINERS_READY, "False"): last_end,
        (conditions.READY, "True"): last_start,
        (conditions.READY, "False"): last_end,
    }


def _started_at(status: ContainerStatus) -> str | None:
    return status.state.running.started_at if status.state.running is not None else None


def _finished_at(status: ContainerStatus) -> str | None:
    """The time of the container's last end, whatever it waits for now."""
    end = status.state.terminated or (status.last_state.terminated if status.state.waiting is not None else None)
    return end.finished_at if end is not None else None
