"""`rootlet config`: what can be done to configuration files."""

from __future__ import annotations

from pathlib import Path

import click

from supervisor.cli.configuration import agent_socket, config_file, config_option, config_words, load_configuration
from supervisor.cli.installed_files import installed_text
from supervisor.cli.options import Failure, agent, agent_options, document_option
from supervisor.config.config_path import chosen_config_path, usual_config_path


@click.group()
def config() -> None:
    """Work with configuration files."""


@config.command()
@click.argument("file", type=config_file, required=False)
def check(file: Path | None) -> None:
    """Say whether FILE, or the file that counts, is a valid configuration.

    Everything that is wrong is named at once, and the exit code is 2.
    """
    path = chosen_config_path(file)
    if path is None:
        raise Failure(f"there is no {usual_config_path()}: name a file, or make this one with 'rootlet config default'")
    load_configuration(path)
    click.echo(f"{path}: valid")


@config.command()
def default() -> None:
    """Print the configuration file with every setting, its default, unit and reason.

    \b
    rootlet config default > ~/.config/rootlet/rootlet.yaml
    """
    click.echo(installed_text("rootlet.yaml"), nl=False)


@config.command()
def unit() -> None:
    """Print the unit by which systemd runs the agent of a user, for this very program.

    \b
    rootlet config unit > ~/.config/systemd/user/rootlet.service
    systemctl --user daemon-reload
    systemctl --user enable --now rootlet
    """
    from supervisor.cli.installed_files import own_program

    click.echo(installed_text("rootlet.service").replace("%h/.local/bin/rootlet", own_program()), nl=False)


@config.command()
@config_option
@click.option("--file", "of_file", is_flag=True, help="What the file means on this host, whether an agent runs or not.")
@document_option("yaml")
@agent_options
@click.pass_context
def view(ctx: click.Context, config_path: Path | None, of_file: bool, output: str) -> None:
    """Show the configuration in effect in the running agent, with all defaults; what may be secret is hidden."""
    from supervisor.cli.printers.documents import DOCUMENTS
    from supervisor.config.shown_settings import shown_mapping

    if of_file:
        found = shown_mapping(load_configuration(config_path))
        click.echo(f"# {config_words(config_path)}", err=True)
    else:
        with agent(ctx, agent_socket(ctx, config_path)) as client:
            (found,) = client.get("/configz").values()
    click.echo(DOCUMENTS[output](found), nl=False)
