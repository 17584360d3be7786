"""Containers whose end is final: a status in which one of them waits or runs again is an error of the node, and is not
told (pkg/kubelet/status/status_manager.go, checkContainerStateTransition). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from ipc.host.text.json_types import UNDECODABLE, Json
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import PodSpec
from ipc.k8s.kubecontainer.restart_policy import all_containers_could_restart, container_should_restart
from workers.cluster.node.nulls import without_nulls
from workers.cluster.pods.known_pod import KnownPod

_LISTS: Final = (("containerStatuses", "containers"), ("initContainerStatuses", "init_containers"))
"""Lists of a status, each with that of the spec. An ephemeral container never starts again."""


def forbidden_transition(known: KnownPod, server: Json, own: Json) -> str:
    """Name of a container that has ended for good by the status ``server`` and has not by ``own``; empty for none.

    A spec that this node cannot read forbids nothing: the server says what it does not take."""
    suspects = {status: tuple(_left_their_end(server.get(status), own.get(status))) for status, _ in _LISTS}
    if not any(suspects.values()):
        return ""
    try:
        spec = msgspec.convert(without_nulls(msgspec.json.decode(known.spec)), PodSpec)
    except UNDECODABLE:
        return ""
    if all_containers_could_restart(spec):
        return ""
    return next(_final_ends(spec, suspects), "")


def _left_their_end(before: Sequence[Json] | None, after: Sequence[Json] | None) -> Iterator[tuple[str, int]]:
    """Name and exit code of each container that had ended before and has not after."""
    states = {status["name"]: status.get("state") or {} for status in after or ()}
    for status in before or ():
        ended = (status.get("state") or {}).get("terminated")
        if ended and status["name"] in states and not states[status["name"]].get("terminated"):
            yield status["name"], ended.get("exitCode", 0)


def _final_ends(spec: PodSpec, suspects: Mapping[str, tuple[tuple[str, int], ...]]) -> Iterator[str]:
    for status, field in _LISTS:
        containers: dict[str, Container] = {container.name: container for container in getattr(spec, field)}
        for name, exit_code in suspects[status]:
            if name in containers and not container_should_restart(containers[name], spec, exit_code):
                yield name
