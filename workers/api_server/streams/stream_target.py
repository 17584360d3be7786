"""The container, and its streams, that an exec or attach means. Decided from the pod's status alone. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ipc.k8s.api.pod_containers import every_status, find_container
from ipc.k8s.api.v1.status import TERMINAL_PHASES
from ipc.k8s.network.ports import MAX_PORT
from ipc.link.messages.api_server import PodChanged
from workers.api_server.core.query import flag, integer
from workers.api_server.core.status_errors import ApiError, bad_request


class Streams(msgspec.Struct, frozen=True, kw_only=True):
    """v1 PodExecOptions and PodAttachOptions without the container."""

    stdin: bool
    stdout: bool
    stderr: bool
    tty: bool


class Target(msgspec.Struct, frozen=True):
    """A container that runs."""

    name: str
    id: str
    tty: bool
    """The container's own process has a terminal."""
    stdin: bool
    """The container's own process has an input."""


def wanted_streams(query: Mapping[str, str]) -> Streams:
    """Raises ApiError 400 (pkg/apis/core/validation, validatePodExecOptions; cri-streaming's remotecommand NewOptions).

    With a terminal there is one output stream.
    """
    streams = Streams(
        stdin=flag(query, "stdin"), stdout=flag(query, "stdout"), stderr=flag(query, "stderr"), tty=flag(query, "tty")
    )
    if not (streams.stdin or streams.stdout or streams.stderr):
        raise bad_request("you must specify at least 1 of stdin, stdout, stderr")
    return msgspec.structs.replace(streams, stderr=streams.stderr and not streams.tty)


def running_container(pod: PodChanged, asked: str) -> Target:
    """The container that is meant, if it runs; without a name the first one.

    Raises ApiError in upstream's words (pkg/registry/core/pod/strategy.go, streamLocation; pkg/kubelet/kubelet_pods.go,
    GetExec): 400 for one that the pod does not have, 500 for one that does not run.
    """
    meta, spec = pod.pod.metadata, pod.pod.spec
    name = asked or spec.containers[0].name
    found = find_container(spec, name)
    if found is None:
        raise bad_request(f"container {name} is not valid for pod {meta.name}")
    if pod.status.phase in TERMINAL_PHASES:
        raise bad_request(f"cannot use a container in a completed pod; current phase is {pod.status.phase}")
    shown = next(
        (each for each in every_status(pod.status) if each.name == name and each.state.running is not None), None
    )
    if shown is None or not shown.container_id:
        raise not_running(name)
    return Target(name, shown.container_id.partition("://")[2], found.container.tty, found.container.stdin)


def not_running(container: str) -> ApiError:
    """The kubelet's error about a container that does not run (any more)."""
    return ApiError(500, f'unable to upgrade connection: container not found ("{container}")')


def forwarded_port(ports: list[str]) -> int:
    """The one port of a forwarded connection. Raises ApiError 400."""
    if len(ports) != 1:
        raise bad_request(f"query parameter ports must be given once: a connection for each port; got {len(ports)}")
    port = integer({"ports": ports[0]}, "ports", low=1, high=MAX_PORT)
    if port is None:
        raise bad_request('query parameter "ports" is required')
    return port
