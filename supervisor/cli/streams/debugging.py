"""Containers to look at a pod with: ephemeral ones, and copies of pods (kubectl pkg/cmd/debug)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click
import msgspec

from ipc.host.clock import monotonic
from ipc.host.text.json_types import Json, JsonObject
from supervisor.cli.changing.changes import PODS, ChangeReport, patch_object, warn
from supervisor.cli.manifests import Target
from supervisor.cli.options import CommandOptions, Failure
from supervisor.cli.printers.containers import find_container
from supervisor.client.http import AgentClient, pod_key, pod_path, pods_path
from supervisor.client.reflector import Reflector

START_TIMEOUT_S: Final = 300.0
"""How long an image may take to be pulled, and its container to start."""
_SUFFIX: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Letters of generated names (apimachinery pkg/util/rand)."""
_PROBES: Final[Mapping[str, str]] = {
    "livenessProbe": "keep_liveness",
    "readinessProbe": "keep_readiness",
    "startupProbe": "keep_startup",
}
_OF_HOST: Final = ("nodeName", "ephemeralContainers", "priority")


class Debugging(msgspec.Struct, frozen=True, kw_only=True):
    """A request to look at a pod."""

    pod: str
    namespace: str
    command: tuple[str, ...] = ()
    image: str = ""
    target: str = ""
    container: str = ""
    copy_to: str = ""
    replace: bool = False
    set_image: tuple[str, ...] = ()
    share_processes: bool = True
    keep_labels: bool = False
    keep_annotations: bool = False
    keep_liveness: bool = False
    keep_readiness: bool = False
    keep_startup: bool = False
    keep_init_containers: bool = True
    variables: tuple[str, ...] = ()
    image_pull_policy: str = ""
    arguments_only: bool = False
    attach: bool = False
    stdin: bool = False
    tty: bool = False
    quiet: bool = False

    @classmethod
    def of(cls, pod: str, namespace: str, command: Sequence[str], options: CommandOptions) -> Debugging:
        return cls(pod=pod, namespace=namespace, command=tuple(command), **options)


def begin_debugging(client: AgentClient, wanted: Debugging) -> tuple[str, str]:
    """Names of the pod and of the container to look with. Raises Failure and AgentError."""
    found = client.get(pod_path(wanted.namespace, wanted.pod))
    name = wanted.container or f"debugger-{''.join(random.choices(_SUFFIX, k=5))}"
    if not wanted.container and not wanted.quiet and wanted.image:
        click.echo(f"Defaulting debug container name to {name}.", err=True)
    if wanted.copy_to:
        copied = copy_of(found, wanted, name)
        result = client.apply(msgspec.json.encode(copied), wanted.copy_to, verb="create")
        warn(result)
        if result.failed:
            raise Failure(result.message, prefix="error: ")
        if wanted.replace:
            client.delete_pod(wanted.namespace, wanted.pod)
        return wanted.copy_to, name
    if wanted.target and find_container(found, wanted.target) is None:
        raise Failure(f'ephemeral container target "{wanted.target}" not found in pod {wanted.pod}', prefix="error: ")
    if wanted.target and not wanted.quiet:
        click.echo(f'Targeting container "{wanted.target}".', err=True)
    patch = {"spec": {"ephemeralContainers": [_container(wanted, name, ephemeral=True)]}}
    patch_object(client, Target(PODS, wanted.namespace, wanted.pod), patch, ChangeReport())
    return wanted.pod, name


def _container(wanted: Debugging, name: str, *, ephemeral: bool) -> JsonObject:
    words = {"args" if wanted.arguments_only else "command": list(wanted.command)} if wanted.command else {}
    stated: JsonObject = {
        "name": name,
        "image": wanted.image,
        "stdin": wanted.stdin,
        "tty": wanted.tty,
        "terminationMessagePolicy": "File",
        "imagePullPolicy": wanted.image_pull_policy,
        "targetContainerName": wanted.target if ephemeral else "",
        "env": [_variable(text) for text in wanted.variables],
        **words,
    }
    return {key: value for key, value in stated.items() if value}


def _variable(text: str) -> dict[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise Failure(f"invalid env {text!r}: it is not KEY=VALUE", prefix="error: ")
    return {"name": name, "value": value}


def copy_of(found: Json, wanted: Debugging, name: str) -> JsonObject:
    """The pod that looks like it, with the new container or with another image of one that is there."""
    metadata: JsonObject = {"name": wanted.copy_to, "namespace": wanted.namespace}
    for field, keeps in (("labels", wanted.keep_labels), ("annotations", wanted.keep_annotations)):
        if keeps and (kept := found["metadata"].get(field)):
            metadata[field] = {key: value for key, value in kept.items() if not key.startswith("kubernetes.io/config.")}
    spec = {key: value for key, value in found["spec"].items() if key not in _OF_HOST}
    dropped = [probe for probe, keeps in _PROBES.items() if not getattr(wanted, keeps)]
    images = dict(_image(text) for text in wanted.set_image)
    containers = [_copied(each, dropped, images) for each in spec["containers"]]
    if not wanted.keep_init_containers:
        spec.pop("initContainers", None)
    if wanted.image:
        containers = _with_container(containers, wanted, name)
    spec["containers"] = containers
    if wanted.share_processes and not spec.get("hostPID"):
        spec["shareProcessNamespace"] = True
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _image(text: str) -> tuple[str, str]:
    name, equals, image = text.partition("=")
    if not (name and equals and image):
        raise Failure(f"--set-image: {text!r} is not NAME=IMAGE", prefix="error: ")
    return name, image


def _copied(container: Json, dropped: Sequence[str], images: Mapping[str, str]) -> JsonObject:
    kept = {key: value for key, value in container.items() if key not in dropped}
    image = images.get(container["name"], images.get("*", container["image"]))
    return {**kept, "image": image}


def _with_container(containers: list[JsonObject], wanted: Debugging, name: str) -> list[JsonObject]:
    added = _container(wanted, name, ephemeral=False)
    if any(each["name"] == name for each in containers):
        return [{**each, **added} if each["name"] == name else each for each in containers]
    return [*containers, added]


def join(client: AgentClient, socket: Path, wanted: Debugging, pod: str, container: str) -> int:
    """Wait until the container runs, and join its streams: its exit code. Of one that has ended meanwhile the log is
    shown, as kubectl does. Raises Failure."""
    from supervisor.cli.streams.remote_command import Remote, run_remote, stream_query, usable_terminal

    pods = Reflector(client, pods_path(wanted.namespace), {"fieldSelector": f"metadata.name={pod}"})
    pods.list()
    deadline = monotonic() + START_TIMEOUT_S
    if not pods.wait_until(lambda: bool(_state(pods, pod, container)), deadline - monotonic()):
        raise Failure(f"timed out waiting for container {container} to start", prefix="error: ")
    if "terminated" in _state(pods, pod, container):
        return _show_log(client, wanted.namespace, pod, container)
    terminal = usable_terminal(stdin=wanted.stdin, tty=wanted.tty, quiet=wanted.quiet)
    if not wanted.quiet:
        click.echo("If you don't see a command prompt, try pressing enter.", err=True)
    return run_remote(
        Remote(
            socket=socket,
            path=f"{pod_path(wanted.namespace, pod)}/attach",
            query=stream_query(container=container, stdin=wanted.stdin, tty=terminal),
            stdin=wanted.stdin,
            tty=terminal,
        )
    )


def _show_log(client: AgentClient, namespace: str, pod: str, container: str) -> int:
    for piece in client.stream_log(namespace, pod, {"container": container}):
        click.echo(piece, nl=False)
    return 0


def _state(pods: Reflector, pod: str, container: str) -> Json:
    """State of the container, once it runs or has ended."""
    for found in pods.objects.values():
        if pod_key(found)[1] != pod:
            continue
        status = found.get("status", {})
        for each in (*status.get("ephemeralContainerStatuses", ()), *status.get("containerStatuses", ())):
            if each["name"] == container and each.get("state", {}).keys() & {"running", "terminated"}:
                state: Json = each["state"]
                return state
    return {}
