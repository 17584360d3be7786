"""`rootlet version`."""

from __future__ import annotations

import click

from ipc.host.text.json_types import JsonObject
from supervisor.cli.options import agent, agent_options, chosen_socket, document_option
from supervisor.cli.printers.staleness import skew_words
from supervisor.cli.printers.tables import printable
from supervisor.version import VERSION


@click.command()
@click.option("--client", "client_only", is_flag=True, help="Do not ask the agent.")
@document_option()
@agent_options
@click.pass_context
def version(ctx: click.Context, client_only: bool, output: str) -> None:
    """Show the versions of this command and of the agent; warn when they differ."""
    from supervisor.cli.printers.documents import DOCUMENTS

    found: JsonObject = {"clientVersion": f"v{VERSION}"}
    try:
        if not client_only:
            with agent(ctx) as client:
                found["agent"] = client.get("/version") | {"socket": str(chosen_socket(ctx))}
    finally:
        click.echo(DOCUMENTS[output](found) if output else _version_lines(found), nl=False)
    if (about := found.get("agent")) and (skew := skew_words(about, found["clientVersion"])):
        click.echo(f"warning: the agent is {printable(about['gitVersion'])}, {skew}", err=True)


def _version_lines(found: JsonObject) -> str:
    lines = [f"Client Version: {found['clientVersion']}"]
    about = found.get("agent")
    if about:
        health = "healthy" if about["runtimeHealthy"] else f"unhealthy: {about['runtimeMessage']}"
        lines += [
            f"Agent Version: {about['gitVersion']}",
            f"Instance: {about['instance']} (pid {about['pid']}, {about['socket']})",
            f"Node: {about['nodeName']}",
            f"Podman API Version: {about['runtimeVersion'] or 'unknown'} ({health})",
        ]
    return "".join(f"{line}\n" for line in lines)
