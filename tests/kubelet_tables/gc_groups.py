"""Adapters of the groups about garbage: what remains of a list, by index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from ipc.k8s.kubecontainer.container_gc import GcPolicy, PodStates, evict_containers, evict_sandboxes
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, SandboxState, SandboxStatus
from tests.kubelet_tables.later import Result
from tests.kubelet_tables.translate import Json, convert

NOW: Final = 1_800_000_000.0
"""The present of these tables: their other times are seconds after 1970."""
_T = TypeVar("_T")
_SANDBOX_STATES: Final = {"READY": SandboxState.READY, "NOTREADY": SandboxState.NOT_READY}


def _container_gc(case: Json) -> Result:
    listed = [(data["pod_uid"], _container(index, data)) for index, data in enumerate(case["containers"])]
    removed = evict_containers(
        _by_pod(listed),
        _states(case),
        convert(case["policy"], GcPolicy),
        NOW,
        all_sources_ready=case["all_sources_ready"],
    )
    return case["expected_remaining_indexes"], _remaining(len(listed), removed)


def _sandbox_gc(case: Json) -> Result:
    listed = [(data["pod_uid"], _sandbox(index, data)) for index, data in enumerate(case["sandboxes"])]
    states, pods = _states(case), _by_pod(listed)
    needed = {
        sandbox.id
        for data in case["containers"]
        for sandbox in pods[data["pod_uid"]]
        if sandbox.attempt == data["sandbox_attempt"]
    }
    removed = [
        id
        for uid, sandboxes in pods.items()
        for id in evict_sandboxes(sandboxes, needed, all_of_them=states.lose_everything(uid))
    ]
    return case["expected_remaining_indexes"], _remaining(len(listed), removed)


def _states(case: Json) -> PodStates:
    return PodStates(
        deleted=case["pods_content_removed"],
        ended=case["pods_runtime_removed"],
        evict_ended=case["evict_non_deleted_pods"],
    )


def _container(index: int, data: Json) -> RuntimeContainerStatus:
    return RuntimeContainerStatus(
        id=str(index),
        name=data["container"],
        attempt=data["attempt"],
        state=ContainerState(data["state"].lower()),
        created_at=NOW if data["created_at"] == "now" else data["created_at"],
    )


def _sandbox(index: int, data: Json) -> SandboxStatus:
    return SandboxStatus(
        id=str(index),
        name=data["pod"],
        infra_id=f"{index}-infra",
        attempt=data["attempt"],
        state=_SANDBOX_STATES[data["state"]],
        created_at=data["created_at"],
    )


def _by_pod(listed: Iterable[tuple[str, _T]]) -> dict[str, list[_T]]:
    pods: dict[str, list[_T]] = {}
    for uid, item in listed:
        pods.setdefault(uid, []).append(item)
    return pods


def _remaining(count: int, removed: Iterable[str]) -> list[int]:
    gone = set(removed)
    return [index for index in range(count) if str(index) not in gone]


ADAPTERS: Final[Mapping[str, Callable[[Json], Result]]] = {"container_gc": _container_gc, "sandbox_gc": _sandbox_gc}
