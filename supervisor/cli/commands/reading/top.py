"""`rootlet top`: CPU and memory of pods, the node and the agent's own processes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import click

from ipc.host import clock
from ipc.host.text.json_types import Json, JsonObject
from ipc.k8s.resources import registry
from supervisor.cli.options import (
    Failure,
    agent,
    agent_options,
    listing_options,
    split_pod_name,
)
from supervisor.cli.printers import usage
from supervisor.cli.printers.tables import TablePrinter
from supervisor.client.http import NODES_PATH, STATISTICS_PATH, AgentClient, pods_path

PERIOD_S: Final = 5.0
"""How often a live view is drawn anew, in seconds. Figures are collected every ten seconds."""
WORKERS_S: Final = 1.0
"""Between the two readings that make the CPU use of the agent's processes, in seconds."""
_REDRAW: Final = "\x1b[H\x1b[J"
"""To the upper left corner, and everything below it away."""


_sort_option: Final = click.option(
    "--sort-by", type=click.Choice(["", *usage.SORTS]), default="", metavar="cpu|memory", help="Largest first."
)
_watch_option: Final = click.option("-w", "--watch", is_flag=True, help="A live view.")
_headers_option: Final = click.option("--no-headers", is_flag=True, help="Leave the table's header out.")


class _Group(click.Group):
    """Every name of a kind is the name of its command, as in kubectl."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, _KINDS.get(cmd_name, cmd_name))


_KINDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(registry.PODS.names, "pods"),
    **dict.fromkeys(registry.NODES.names, "node"),
}


@click.group(cls=_Group)
def top() -> None:
    """Show CPU and memory of pods, the node, or the agent's own processes."""


@top.command(name="pods")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--containers", is_flag=True, help="Show containers instead of pods.")
@click.option("--sum", "with_sum", is_flag=True, help="The sum of all rows below them.")
@listing_options
@_sort_option
@_watch_option
@_headers_option
@agent_options
@click.pass_context
def pods(
    ctx: click.Context,
    names: tuple[str, ...],
    containers: bool,
    namespace: str,
    all_namespaces: bool,
    selector: str,
    field_selector: str,
    with_sum: bool,
    sort_by: str,
    watch: bool,
    no_headers: bool,
) -> None:
    """CPU and memory of pods that run something.

    \b
    rootlet top pods -A --sort-by memory
    rootlet top pods web --containers
    """
    wanted = {split_pod_name(name) for name in names}
    header = usage.CONTAINER_HEADER if containers else usage.POD_HEADER

    def table(client: AgentClient) -> str:
        samples = client.get(STATISTICS_PATH).get("pods", [])
        found = [pod for pod in samples if all_namespaces or pod["namespace"] == namespace]
        if selector or field_selector:
            query = {"labelSelector": selector or None, "fieldSelector": field_selector or None}
            path = pods_path(None if all_namespaces else namespace)
            uids = {pod["metadata"]["uid"] for pod in client.get(path, query)["items"]}
            found = [pod for pod in found if pod["uid"] in uids]
        if missing := wanted - {pod["name"] for pod in found}:
            there = client.get(pods_path(None if all_namespaces else namespace))["items"]
            raise Failure(usage.why_missing(missing, there))
        shown = [pod for pod in found if not wanted or pod["name"] in wanted]
        rows = _container_rows(shown, sort_by) if containers else _pod_rows(shown, sort_by)
        if with_sum and rows:
            rows += [("", row) for row in usage.sum_rows(shown, len(header))]
        full = ("NAMESPACE", *header) if all_namespaces else header
        return TablePrinter(full, show_header=not no_headers).format(
            (namespace_of, *row) if all_namespaces else row for namespace_of, row in rows
        )

    _show(ctx, table, watch=watch)


def _pod_rows(found: Sequence[Json], sort_by: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(pod["namespace"], usage.pod_row(pod)) for pod in usage.in_order(found, sort_by)]


def _container_rows(found: Sequence[Json], sort_by: str) -> list[tuple[str, tuple[str, ...]]]:
    """By pod, or all containers together when they are sorted."""
    samples = [
        {**container, "pod": pod["name"], "namespace": pod["namespace"]}
        for pod in usage.in_order(found, "")
        for container in pod.get("containers", ())
    ]
    ordered = usage.in_order(samples, sort_by) if sort_by else samples
    return [(sample["namespace"], (sample["pod"], *usage.pod_row(sample))) for sample in ordered]


@top.command()
@_watch_option
@_headers_option
@agent_options
@click.pass_context
def node(ctx: click.Context, watch: bool, no_headers: bool) -> None:
    """CPU and memory of the whole host."""

    def table(client: AgentClient) -> str:
        sample = client.get(STATISTICS_PATH)["node"]
        (found,) = client.get(NODES_PATH)["items"]
        cpus = found["status"].get("capacity", {}).get("cpu", "")
        row = usage.node_row(sample, int(cpus) if cpus.isdigit() else None)
        return TablePrinter(usage.NODE_HEADER, show_header=not no_headers).format([row])

    _show(ctx, table, watch=watch)


@top.command()
@_sort_option
@_watch_option
@_headers_option
@agent_options
@click.pass_context
def workers(ctx: click.Context, sort_by: str, watch: bool, no_headers: bool) -> None:
    """CPU and memory of the agent's own processes, over a second."""

    def table(client: AgentClient) -> str:
        began, before = clock.monotonic(), _workers(client)
        time.sleep(WORKERS_S)
        rows = usage.worker_rows(before, _workers(client), clock.monotonic() - began)
        return TablePrinter(usage.WORKER_HEADER, show_header=not no_headers).format(
            usage.worker_row(row) for row in usage.in_order(rows, sort_by)
        )

    _show(ctx, table, watch=watch)


def _workers(client: AgentClient) -> list[JsonObject]:
    found: list[JsonObject] = client.get("/rootlet/v1/workers", {"resources": True})["items"]
    return found


def _show(ctx: click.Context, table: Callable[[AgentClient], str], *, watch: bool) -> None:
    """The table once, or again and again: in place on a terminal, else one below the other."""
    with agent(ctx) as client:
        while True:
            text = table(client)
            click.echo((_REDRAW if watch and sys.stdout.isatty() else "") + text, nl=False)
            if not watch:
                return
            time.sleep(PERIOD_S)
