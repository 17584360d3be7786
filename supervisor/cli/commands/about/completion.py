"""`rootlet completion`."""

from __future__ import annotations

import click

from supervisor.cli.completion_scripts import SCRIPTS


@click.command()
@click.argument("shell", type=click.Choice(tuple(SCRIPTS)))
def completion(shell: str) -> None:
    """Print what a shell reads to complete this command's words, with the names of pods and objects that are there.

    \b
    source <(rootlet completion bash)                                    now; in ~/.bashrc for good
    rootlet completion zsh > "${fpath[1]}/_rootlet"
    rootlet completion fish > ~/.config/fish/completions/rootlet.fish
    """
    click.echo(SCRIPTS[shell].text, nl=False)
