"""`rootlet exec`."""

from __future__ import annotations

import click

from supervisor.cli.options import (
    Failure,
    agent,
    agent_options,
    chosen_socket,
    container_option,
    namespace_option,
    split_pod_name,
)
from supervisor.cli.printers.containers import default_container, find_container, require_not_completed
from supervisor.client.http import pod_path


@click.command()
@click.argument("pod", metavar="POD")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND [ARGUMENT]...")
@container_option
@click.option("-i", "--stdin", is_flag=True, help="Pass standard input to the command.")
@click.option("-t", "--tty", is_flag=True, help="Standard input is a terminal, and so are the command's streams.")
@click.option("-q", "--quiet", is_flag=True, help="Print only what the command prints.")
@namespace_option
@agent_options
@click.pass_context
def exec(
    ctx: click.Context,
    pod: str,
    command: tuple[str, ...],
    container: str,
    stdin: bool,
    tty: bool,
    quiet: bool,
    namespace: str,
) -> int:
    """Run a command in a container of a pod; its exit code is this command's.

    \b
    rootlet exec web -- date
    rootlet exec web -c sidecar -it -- sh
    tar c src | rootlet exec -i web -- tar x
    """
    from supervisor.cli.streams.remote_command import Remote, run_remote, stream_query, usable_terminal

    if not command:
        raise Failure("you must specify at least one command for the container", prefix="error: ")
    name = split_pod_name(pod)
    with agent(ctx) as client:
        found = client.get(pod_path(namespace, name))
        require_not_completed(found, "exec into")
        if container and find_container(found, container) is None:
            raise Failure(f"container {container} not found in pod {name}", prefix="error: ")
        chosen = container or default_container(found, quiet=quiet)
        terminal = usable_terminal(stdin=stdin, tty=tty, quiet=quiet)
        query = stream_query(container=chosen, stdin=stdin, tty=terminal)
        remote = Remote(
            socket=chosen_socket(ctx),
            path=f"{pod_path(namespace, name)}/exec",
            query=[*query, *(("command", word) for word in command)],
            stdin=stdin,
            tty=terminal,
        )
        code = run_remote(remote)
    if code:
        click.echo(f"command terminated with exit code {code}", err=True)
    return code
