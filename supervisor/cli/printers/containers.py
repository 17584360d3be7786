"""Whether a pod has containers that run, and which of them a command means that names none."""

from __future__ import annotations

from typing import Final

import click

from ipc.host.text.json_types import Json
from supervisor.cli.options import Failure

_DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"
_NAMED: Final = (("containers", ""), ("ephemeralContainers", " (ephem)"), ("initContainers", " (init)"))
"""In which order they are named to somebody who can choose (podcmd.go, AllContainerNames)."""

COMPLETED: Final = frozenset(("Succeeded", "Failed"))
"""Phases of pods in which nothing runs any more."""


def require_not_completed(pod: Json, doing: str) -> None:
    """Raises Failure with kubectl's words; ``doing`` is e.g. "attach"."""
    phase = pod["status"].get("phase", "")
    if phase in COMPLETED:
        raise Failure(f"cannot {doing} a container in a completed pod; current phase is {phase}", prefix="error: ")


def container_names(pod: Json, *kinds: str) -> list[str]:
    """Names in these lists of the spec, in their order."""
    return [container["name"] for kind in kinds for container in pod["spec"].get(kind, ())]


def find_container(pod: Json, name: str) -> Json | None:
    """The container of that name, of whatever kind."""
    every = (container for kind, _ in _NAMED for container in pod["spec"].get(kind, ()))
    return next((container for container in every if container["name"] == name), None)


def default_container(pod: Json, *, quiet: bool = False) -> str:
    """The annotated one, of whatever kind, else the first, which is said on stderr unless ``quiet`` (podcmd.go,
    FindOrDefaultContainerByName)."""
    annotated = str(pod["metadata"].get("annotations", {}).get(_DEFAULT_CONTAINER, ""))
    if annotated and find_container(pod, annotated) is not None:
        return annotated
    if annotated and not quiet:
        click.echo(f'Default container name "{annotated}" not found in pod {pod["metadata"]["name"]}', err=True)
    first = container_names(pod, "containers")[0]
    shown = named_containers(pod)
    if ", " in shown and not quiet:
        click.echo(f'Defaulted container "{first}" out of: {shown}', err=True)
    return first


def named_containers(pod: Json) -> str:
    """Names of all containers, for somebody who can choose: ``app, debug (ephem), init (init)``."""
    return ", ".join(f"{name}{mark}" for kind, mark in _NAMED for name in container_names(pod, kind))
