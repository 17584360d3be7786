"""`rootlet port-forward`."""

from __future__ import annotations

import click

from supervisor.cli.options import agent, agent_options, namespace_option, split_pod_name
from supervisor.cli.streams.forwarded_ports import LOCALHOST
from supervisor.client.http import pod_path


@click.command("port-forward")
@click.argument("pod", metavar="POD")
@click.argument("ports", nargs=-1, required=True, metavar="[LOCAL:]REMOTE...")
@click.option(
    "--address",
    "addresses",
    multiple=True,
    default=(LOCALHOST,),
    help="Addresses to listen on, separated by commas: IP addresses, or localhost for 127.0.0.1 and ::1.",
)
@namespace_option
@agent_options
@click.pass_context
def port_forward(
    ctx: click.Context, pod: str, ports: tuple[str, ...], addresses: tuple[str, ...], namespace: str
) -> None:
    """Forward local ports to ports of a pod, whatever network that has, until it goes.

    \b
    rootlet port-forward web 8080:80          localhost:8080 to the pod's port 80
    rootlet port-forward web 5000 :http       5000 to 5000, and any free port to the one that is named http
    rootlet port-forward --address 0.0.0.0 pod/web 8080:80
    """
    from supervisor.cli.streams.port_forwarding import forward_ports

    name = split_pod_name(pod)
    with agent(ctx) as client:
        forward_ports(client, client.get(pod_path(namespace, name)), ports, addresses)
