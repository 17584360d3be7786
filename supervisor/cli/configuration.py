"""The configuration file as the command line takes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import click

from supervisor.cli.options import Failure, chosen_socket, is_agent_chosen
from supervisor.config.config_path import chosen_config_path, usual_config_path

if TYPE_CHECKING:
    from supervisor.config.settings import Settings

EXIT_CONFIG: Final = 2
F = TypeVar("F", bound=Callable[..., object])

config_file: Final = click.Path(dir_okay=False, path_type=Path)
"""Type of an option or argument that names one; whether it can be read is found when it is."""


def config_option(command: F) -> F:
    """``--config``: the file, or the usual one."""
    return click.option(
        "--config",
        "config_path",
        type=config_file,
        callback=lambda _ctx, _param, value: chosen_config_path(value),
        help="The configuration file.  [default: ~/.config/rootlet/rootlet.yaml, where it exists]",
    )(command)


def config_words(path: Path | None) -> str:
    """Words for the file that counts."""
    return str(path) if path is not None else f"all defaults ({usual_config_path()} does not exist)"


def agent_socket(ctx: click.Context, config_path: Path | None) -> Path:
    """Socket of the agent that a command with ``--config`` is about: of the instance that the file names where one was
    named, else of the chosen one. Raises Failure."""
    if ctx.get_parameter_source("config_path") is not click.core.ParameterSource.COMMANDLINE:
        return chosen_socket(ctx)
    return own_socket(ctx, load_configuration(config_path))


def own_socket(ctx: click.Context, settings: Settings) -> Path:
    """Socket of the agent that runs with these settings. Raises Failure where an option or the environment names
    another."""
    if is_agent_chosen(ctx) and settings.admin_socket != chosen_socket(ctx):
        raise Failure(
            f"this configuration is of the instance {settings.instance_name} on {settings.admin_socket}, and another "
            f"agent was named, {chosen_socket(ctx)}: name that one's configuration file with --config"
        )
    return settings.admin_socket


def load_configuration(path: Path | None) -> Settings:
    """Settings of the file, or the defaults. Raises Failure with EXIT_CONFIG."""
    from supervisor.config.resolution.config_file import default_settings, load_settings
    from supervisor.config.settings import SettingsError

    try:
        return default_settings() if path is None else load_settings(path)
    except SettingsError as error:
        raise Failure(str(error), EXIT_CONFIG) from None
