"""`rootlet stop`."""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from supervisor.cli.configuration import agent_socket, config_option, load_configuration
from supervisor.cli.options import Failure, agent_options, duration_s, is_agent_chosen
from supervisor.cli.printers.tables import printable
from supervisor.client.errors import AgentError, AgentUnreachable
from supervisor.client.http import AgentClient

if TYPE_CHECKING:
    from supervisor.config.settings import Settings

NOT_SIGNED: Final = "its labels are not signed with the key of this instance"


@click.command()
@click.option("--pods", is_flag=True, help="Terminate every pod first; otherwise containers keep running.")
@click.option("--timeout", callback=duration_s, default="5m", show_default=True, help="How long to wait for its end.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask, when pods of an agent that does not run are stopped.")
@config_option
@agent_options
@click.pass_context
def stop(ctx: click.Context, pods: bool, timeout: float, yes: bool, config_path: Path | None) -> None:
    """Stop the agent, and wait until it is gone.

    With --pods and without an agent, the pods that a dead one has left are found by their labels, with the settings of
    the configuration file, and are stopped and removed; it asks before.
    """
    socket = agent_socket(ctx, config_path)
    try:
        stop_agent(AgentClient(socket), pods=pods, timeout_s=timeout)
    except AgentUnreachable as error:
        if not pods:
            raise Failure(str(error)) from None
        settings = load_configuration(config_path)
        if is_agent_chosen(ctx) and settings.admin_socket != socket:
            raise Failure(f"{error}; to stop its pods without it, name its configuration file with --config") from None
        _stop_left(settings, timeout, yes=yes)
    except AgentError as error:
        raise Failure(str(error)) from None
    else:
        click.echo("agent stopped")


def _stop_left(settings: Settings, timeout_s: float, *, yes: bool) -> None:
    """Pods of an agent that does not run. Raises Failure."""
    from supervisor.cli.instance_pods import find_pods, no_agent, remove_pods

    instance = settings.instance_name
    with no_agent(settings):
        found = find_pods(settings)
        for pod in found.strangers:
            click.echo(f"warning: pod {printable(pod.title)} is left alone: {NOT_SIGNED}", err=True)
        if not found.ours:
            click.echo(f"the agent of the instance {instance} does not run, and there are no pods of it")
            return
        click.echo(f"the agent of the instance {instance} does not run; these pods of it are there:")
        for pod in found.ours:
            click.echo(f"  {printable(pod.title)}")
        if not yes and not click.confirm("Stop and remove them?", err=True):
            raise Failure("nothing was stopped", prefix="error: ")
        for pod in remove_pods(settings, found.ours, timeout_s):
            click.echo(f"pod {printable(pod.title)} stopped and removed")


def stop_agent(client: AgentClient, *, pods: bool, timeout_s: float) -> None:
    """Return when it is gone. Raises AgentError, and Failure when it refuses or is not in time."""
    pid = int(client.get("/version")["pid"])
    with _process(pid) as process:
        result = client.stop(pods)
        if result.failed:
            raise Failure(result.message)
        if not _has_ended(process, timeout_s):
            raise Failure(f"the agent (pid {pid}) has not ended within {timeout_s:g} s")


@contextlib.contextmanager
def _process(pid: int) -> Iterator[int | None]:
    """A pidfd, which names this very process even when its pid is given out again; None when it cannot be seen."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        yield None
        return
    try:
        yield fd
    finally:
        os.close(fd)


def _has_ended(process: int | None, timeout_s: float) -> bool:
    if process is None:
        return True
    poller = select.poll()
    poller.register(process, select.POLLIN)
    return bool(poller.poll(timeout_s * 1000))
