"""`rootlet stop`."""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from supervisor.cli.options import Failure, agent, agent_options, duration_s

if TYPE_CHECKING:
    from supervisor.client.http import AgentClient


@click.command()
@click.option("--pods", is_flag=True, help="Terminate every pod first; otherwise containers keep running.")
@click.option("--timeout", callback=duration_s, default="5m", show_default=True, help="How long to wait for its end.")
@agent_options
@click.pass_context
def stop(ctx: click.Context, pods: bool, timeout: float) -> None:
    """Stop the agent, and wait until it is gone."""
    with agent(ctx) as client:
        stop_agent(client, pods=pods, timeout_s=timeout)
    click.echo("agent stopped")


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
