"""`rootlet apply`."""

from __future__ import annotations

import click

from supervisor.cli.manifests import files_option, read_manifests
from supervisor.cli.options import Failure, agent, agent_options


@click.command()
@files_option
@agent_options
@click.pass_context
def apply(ctx: click.Context, files: tuple[str, ...]) -> None:
    """Create or change pods and objects beside them: all of one file, or none of it when something in it is wrong."""
    if not files:
        raise click.UsageError("must specify -f")
    problems = []
    with agent(ctx) as client:
        for manifest in read_manifests(files):
            result = client.apply(manifest.body, manifest.name)
            click.echo("".join(f"{line}\n" for line in result.results), nl=False)
            if result.failed:
                problems.append(result.message or result.reason)
    if problems:
        raise Failure("\n".join(problems), prefix="error: ")
