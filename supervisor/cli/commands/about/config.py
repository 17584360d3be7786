"""`rootlet config`: what can be done to configuration files."""

from __future__ import annotations

from pathlib import Path

import click

from supervisor.cli.configuration import config_file, load_configuration


@click.group()
def config() -> None:
    """Work with configuration files."""


@config.command()
@click.argument("file", type=config_file)
def check(file: Path) -> None:
    """Say whether FILE is a valid configuration; what is wrong names its path, and the exit code is 2."""
    load_configuration(file)
    click.echo(f"{file}: valid")
