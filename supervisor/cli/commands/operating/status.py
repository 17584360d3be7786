"""`rootlet status`: the agent, what it runs with, and its pods by phase."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Mapping

import click

from ipc.host.clock import wall
from ipc.host.text.human import human_duration
from ipc.host.text.json_types import Json
from supervisor.cli.configuration import config_words
from supervisor.cli.options import agent, agent_options, chosen_socket, document_option
from supervisor.cli.printers.staleness import skew_words
from supervisor.cli.printers.tables import printable
from supervisor.client.http import pods_path
from supervisor.config.config_path import chosen_config_path
from supervisor.version import VERSION


@click.command()
@document_option()
@agent_options
@click.pass_context
def status(ctx: click.Context, output: str) -> int:
    """Show whether the agent runs and is well: its version, configuration, socket, Podman, and pods by phase.

    The exit code is 1 when it does not run, or when Podman does not answer it.
    """
    from supervisor.cli.printers.documents import DOCUMENTS

    with agent(ctx) as client:
        about = client.get("/version") | {"socket": str(chosen_socket(ctx))}
        pods = client.get(pods_path(None))["items"]
    phases = collections.Counter(pod["status"].get("phase", "Unknown") for pod in pods)
    found = {**about, "pods": dict(sorted(phases.items()))}
    click.echo(DOCUMENTS[output](found) if output else "".join(f"{line}\n" for line in _lines(found)), nl=False)
    return 0 if about["runtimeHealthy"] else 1


def _lines(about: Json) -> Iterator[str]:
    yield f"Agent:          {about['gitVersion']}, instance {about['instance']}, pid {about['pid']}, up {_age(about)}"
    if skew := skew_words(about, f"v{VERSION}"):
        yield f"                {skew}"
    yield f"Configuration:  {printable(about.get('configFile', '') or config_words(None))}"
    if (now := chosen_config_path(None)) is not None and not about.get("configFile"):
        yield f"                {printable(str(now))} came later: restart the agent to have it read"
    yield f"Socket:         {printable(about['socket'])}"
    yield f"Node:           {about['nodeName']}{'' if about['sourcesReady'] else ', manifests are not read yet'}"
    yield f"Podman:         {_podman(about)}"
    yield f"Pods:           {_pods(about['pods'])}"


def _age(about: Json) -> str:
    return human_duration(max(0.0, wall() - about["startedAt"]))


def _podman(about: Json) -> str:
    version = about["runtimeVersion"] or "of unknown version"
    return version if about["runtimeHealthy"] else f"{version}, does not answer: {printable(about['runtimeMessage'])}"


def _pods(phases: Mapping[str, int]) -> str:
    total = sum(phases.values())
    return f"{total}: {', '.join(f'{count} {phase}' for phase, count in phases.items())}" if total else "none"
