"""`rootlet attach`."""

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
from supervisor.cli.streams.detach_keys import parse_detach_keys
from supervisor.client.http import pod_path


def _keys(ctx: click.Context, param: click.Parameter, value: str) -> bytes:
    try:
        return parse_detach_keys(value)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from None


@click.command()
@click.argument("pod", metavar="POD")
@container_option
@click.option("-i", "--stdin", is_flag=True, help="Pass standard input to the container, if it has `stdin: true`.")
@click.option("-t", "--tty", is_flag=True, help="Standard input is a terminal, as the container's is (`tty: true`).")
@click.option("-q", "--quiet", is_flag=True, help="Print only what the container prints.")
@click.option(
    "--detach-keys",
    default="",
    callback=_keys,
    metavar="KEYS",
    help="In a terminal these keys leave the container alone, such as ctrl-p,ctrl-q.  [default: none do]",
)
@namespace_option
@agent_options
@click.pass_context
def attach(
    ctx: click.Context,
    pod: str,
    container: str,
    stdin: bool,
    tty: bool,
    quiet: bool,
    detach_keys: bytes,
    namespace: str,
) -> int:
    """Join the streams of a container's own process, until it ends.

    \b
    rootlet attach web                  its output from now on
    rootlet attach shell -c main -it    its terminal
    """
    from supervisor.cli.streams.remote_command import Remote, run_remote, stream_query, usable_terminal

    name = split_pod_name(pod)
    with agent(ctx) as client:
        found = client.get(pod_path(namespace, name))
        require_not_completed(found, "attach")
        chosen = container or default_container(found, quiet=quiet)
        target = find_container(found, chosen)
        if target is None:
            raise Failure(
                f"cannot attach to the container: container {chosen} not found in pod {name}", prefix="error: "
            )
        has_terminal = bool(target.get("tty"))
        if tty and not has_terminal and not quiet:
            click.echo(f"error: Unable to use a TTY - container {chosen} did not allocate one", err=True)
        terminal = usable_terminal(stdin=stdin, tty=has_terminal, quiet=quiet)
        if not quiet:
            click.echo("If you don't see a command prompt, try pressing enter.", err=True)
        remote = Remote(
            socket=chosen_socket(ctx),
            path=f"{pod_path(namespace, name)}/attach",
            query=stream_query(container=chosen, stdin=stdin, tty=terminal),
            stdin=stdin,
            tty=terminal,
            detach_keys=detach_keys,
        )
        code = run_remote(remote)
    if terminal and not quiet:
        click.echo(f"Session ended, resume using 'rootlet attach {name} -c {chosen} -n {namespace} -i -t' command")
    return code
