"""Restarts of pods and containers in order, one after the other, as they are told and waited for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import click
import msgspec

from ipc.host.text.json_types import Json
from supervisor.cli.changing.changes import PODS, Choice, chosen
from supervisor.cli.manifests import Target
from supervisor.cli.options import Failure
from supervisor.cli.printers.containers import COMPLETED, default_container
from supervisor.client.errors import RequestFailed
from supervisor.client.http import AgentClient, pod_key, pods_path
from supervisor.client.reflector import Reflector

_STATUSES: Final = ("initContainerStatuses", "containerStatuses")


class Restart(msgspec.Struct, frozen=True):
    """How pods are restarted."""

    grace_period_s: int | None = None
    """None: each pod's own."""
    timeout_s: float = 0.0
    """How long to wait for each pod; 0.0 does not wait."""


def restart_pods(client: AgentClient, choice: Choice, restart: Restart) -> None:
    """One after the other, each when the one before is Ready. Raises Failure: the pods behind it stay as they are."""
    for target in pods_of(client, choice, "restarted"):
        _restart(client, target, restart)


def pods_of(client: AgentClient, choice: Choice, done: str) -> Sequence[Target]:
    """The chosen pods, each once. Raises Failure for what is no pod."""
    targets = list(dict.fromkeys(chosen(client, choice)))
    for target in targets:
        if target.resource != PODS:
            raise Failure(f"{target.resource} {target.name!r}: only pods are {done}", prefix="error: ")
    return targets


def _restart(client: AgentClient, target: Target, restart: Restart) -> None:
    pods = Reflector(client, pods_path(target.namespace), {"fieldSelector": f"metadata.name={target.name}"})
    pods.list()
    before = frozenset(container_ids(_pod(pods, target)))
    try:
        client.restart_pod(target.namespace, target.name, restart.grace_period_s)
    except RequestFailed as error:
        raise Failure(str(error), prefix="") from None
    _wait(pods, f"pod/{target.name}", lambda: progress(_pod(pods, target), before), restart.timeout_s)
    click.echo(f"pod/{target.name} restarted")


def restart_containers(client: AgentClient, pod: Target, names: Sequence[str], restart: Restart) -> None:
    """One after the other, each when the one before is Ready; without names the pod's default container. Raises
    Failure."""
    pods = Reflector(client, pods_path(pod.namespace), {"fieldSelector": f"metadata.name={pod.name}"})
    pods.list()
    found = _pod(pods, pod)
    if found is None:
        raise Failure(f'Error from server (NotFound): pods "{pod.name}" not found', prefix="")
    for name in dict.fromkeys(names or (default_container(found),)):
        _restart_container(client, pods, pod, name, restart)


def _restart_container(client: AgentClient, pods: Reflector, pod: Target, name: str, restart: Restart) -> None:
    named, before = f"container/{name} of pod/{pod.name}", str(_status_of(_pod(pods, pod), name).get("containerID", ""))
    try:
        client.restart_container(pod.namespace, pod.name, name, restart.grace_period_s)
    except RequestFailed as error:
        raise Failure(str(error), prefix="") from None
    _wait(pods, named, lambda: container_progress(_status_of(_pod(pods, pod), name), before), restart.timeout_s)
    click.echo(f"{named} restarted")


def _status_of(pod: Json | None, name: str) -> Json:
    return next((status for status in _statuses(pod) if status["name"] == name), {})


def container_progress(status: Json, before: str) -> str:
    """Cause of a restarted container's wait; empty when another than ``before`` is Ready or has come to a good end.
    Raises Failure for one that has come to a bad one."""
    if not status or status.get("containerID", "") == before:
        return "waiting for it to end"
    state = status.get("state", {})
    ended = state.get("terminated")
    if ended is not None and ended.get("exitCode"):
        raise Failure(
            f"container {status['name']} began anew and ended with exit code {ended['exitCode']}", prefix="error: "
        )
    return "" if status.get("ready") or ended is not None else f"waiting for {_waits(status)}"


def _wait(pods: Reflector, named: str, cause: Callable[[], str], timeout_s: float) -> None:
    """Until there is no cause to wait any more, telling each; 0.0 does not wait. Raises Failure."""
    reported = ""

    def is_back() -> bool:
        nonlocal reported
        now = cause()
        if now and now != reported:
            click.echo(f"{named}: {now}")
            reported = now
        return not now

    if timeout_s and not pods.wait_until(is_back, timeout_s):
        raise Failure(f"timed out waiting for {named} to be Ready again: {cause()}", prefix="error: ")


def _pod(pods: Reflector, target: Target) -> Json | None:
    wanted = (target.namespace, target.name)
    return next((pod for pod in pods.objects.values() if pod_key(pod) == wanted), None)


def container_ids(pod: Json | None) -> Iterator[str]:
    """Ids of its containers, as long as they are shown."""
    for status in _statuses(pod):
        if found := status.get("containerID"):
            yield found


def _statuses(pod: Json | None) -> Iterable[Json]:
    status = pod.get("status", {}) if pod else {}
    return [each for name in _STATUSES for each in status.get(name, ())]


def progress(pod: Json | None, before: frozenset[str]) -> str:
    """Cause of a restarted pod's wait; empty when it is Ready, or has ended, with containers that were not there
    ``before``."""
    if pod is None or not before.isdisjoint(container_ids(pod)) or pod["metadata"].get("deletionTimestamp"):
        return "waiting for its containers to end"
    conditions = {each["type"]: each["status"] for each in pod.get("status", {}).get("conditions", ())}
    if conditions.get("Ready") == "True" or pod.get("status", {}).get("phase") in COMPLETED:
        return ""
    waiting = [_waits(status) for status in _statuses(pod) if not status.get("ready")]
    return f"waiting for {', '.join(waiting) or 'its containers'}"


def _waits(status: Json) -> str:
    waiting = status.get("state", {}).get("waiting", {}).get("reason", "")
    return f"{status['name']} ({waiting})" if waiting else f"{status['name']} to be Ready"
