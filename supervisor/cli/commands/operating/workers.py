"""`rootlet workers`: what can be done to the agent's own processes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

import click

from ipc.host import clock
from ipc.host.text.json_types import Json
from supervisor.cli.options import Failure, agent, agent_options, duration_s
from supervisor.client.http import AgentClient

POLL_S: Final = 0.1
"""How often is looked whether the next incarnation is there."""
_PREFIX: Final = "worker/"


@click.group()
def workers() -> None:
    """Work with the agent's own processes, which `rootlet get workers` shows."""


@workers.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--all", "everything", is_flag=True, help="Every one of them, one after the other.")
@click.option("--timeout", callback=duration_s, default="1m", show_default=True, help="How long to wait for each.")
@agent_options
@click.pass_context
def restart(ctx: click.Context, names: tuple[str, ...], everything: bool, timeout: float) -> None:
    """Replace workers, one after the other, each when its predecessor's successor is ready. Containers keep running.

    Each finishes the step in hand first; one that does not leave within workers.stopTimeout is killed. Pods that were
    isolated because their syncs killed the worker are tried again.

    \b
    rootlet workers restart pods-0
    rootlet workers restart --all
    """
    if bool(names) == everything:
        raise click.UsageError("name the workers, or give --all")
    with agent(ctx) as client:
        chosen = [name.removeprefix(_PREFIX) for name in names] or [worker["name"] for worker in client.workers()]
        for name in dict.fromkeys(chosen):
            _restart(client, name, timeout)


def _restart(client: AgentClient, name: str, timeout_s: float) -> None:
    before = _incarnation(client.workers(), name)
    client.restart_worker(name)
    deadline = clock.monotonic() + timeout_s
    while not _is_replaced(client.workers(), name, before):
        if clock.monotonic() >= deadline:
            raise Failure(f"timed out waiting for the next incarnation of workers/{name}", prefix="error: ")
        time.sleep(POLL_S)
    click.echo(f"{_PREFIX}{name} restarted")


def _incarnation(found: Sequence[Json], name: str) -> int:
    return max((worker["incarnation"] for worker in found if worker["name"] == name), default=0)


def _is_replaced(found: Sequence[Json], name: str, before: int) -> bool:
    return any(w["name"] == name and w["incarnation"] > before and w["state"] == "Running" for w in found)
