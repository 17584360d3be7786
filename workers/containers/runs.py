"""Whether an inspect of earlier still holds, by what a list of containers shows. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from ipc.k8s.kubecontainer.pod_status import ContainerState
from workers.kubecontainer.convert import container_state
from workers.kubecontainer.runtime import InspectedContainer, ListedContainer

SETTLED_STATES: Final = frozenset({"running", "stopped", "exited"})
"""States that last. In the others anything may change without a sign in the list, so those are always inspected: a
container whose start failed stays "created" with all its times unset."""


def cut_short(listed: Iterable[ListedContainer]) -> frozenset[str]:
    """Ids of containers whose newest run has no end, though they are said to have exited: the host went down. The end
    that an inspect shows of them is that of a run before, if there was one."""
    return frozenset(container.id for container in listed if container.state == "exited" and not container.has_end)


def without_earlier_end(inspected: InspectedContainer) -> InspectedContainer:
    """A container that is `cut_short`, without the date of an end that was before its newest start."""
    if inspected.finished_at >= inspected.started_at:
        return inspected
    return msgspec.structs.replace(inspected, finished_at=0.0)


def is_same_run(inspected: InspectedContainer, listed: ListedContainer) -> bool:
    """Whether an inspect of earlier still says everything about a container that the list shows."""
    return (
        listed.state in SETTLED_STATES
        and (inspected.state, inspected.pid) == (listed.state, listed.pid)
        and int(inspected.started_at) == int(listed.started_at)
        and int(inspected.finished_at) == int(listed.exited_at)
    )


def is_as_remembered(inspected: InspectedContainer, listed: ListedContainer) -> bool:
    """Whether an inspect by an earlier process still says everything: that has not heard of what was renamed since."""
    return is_same_run(inspected, listed) and (
        (inspected.name, inspected.pod_id, inspected.is_infra, inspected.labels)
        == (listed.name, listed.pod_id, listed.is_infra, listed.labels)
    )


def is_run_of(inspected: InspectedContainer, listed: ListedContainer) -> bool:
    """Whether the list shows the run that was inspected earlier, under way or ended."""
    has_ended = container_state(listed.state) is ContainerState.EXITED
    is_same_start = int(inspected.started_at) == int(listed.started_at)
    return is_same_start and (has_ended or inspected.pid == listed.pid)
