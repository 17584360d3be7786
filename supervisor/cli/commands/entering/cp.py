"""`rootlet cp`."""

from __future__ import annotations

import click

from supervisor.cli.options import Failure, agent, agent_options, container_option, namespace_option


@click.command()
@click.argument("source", metavar="SOURCE")
@click.argument("target", metavar="TARGET")
@container_option
@click.option("--no-preserve", is_flag=True, help="Files in the container belong to its root user.")
@namespace_option
@agent_options
@click.pass_context
def cp(ctx: click.Context, source: str, target: str, container: str, no_preserve: bool, namespace: str) -> None:
    """Copy files and directories to or from a container that runs. The image needs no tar of its own.

    \b
    rootlet cp site web:/usr/share/nginx/html
    rootlet cp shop/web:/var/log/app.log app.log
    """
    from supervisor.cli.streams.copying import Remote, copy_in, copy_out, parse_spec

    here, there = parse_spec(source, namespace), parse_spec(target, namespace)
    if here.pod and there.pod:
        raise Failure("one of src or dest must be a local file specification", prefix="error: ")
    if not here.pod and not there.pod:
        raise Failure("one of src or dest must be a remote file specification", prefix="error: ")
    with agent(ctx) as client:
        if there.pod:
            copy_in(here.path, Remote(client, there, container), there.path, preserve=not no_preserve)
        else:
            copy_out(Remote(client, here, container), here.path, there.path)
