"""The configuration file as the command line takes it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from supervisor.cli.options import Failure

if TYPE_CHECKING:
    from supervisor.config.settings import Settings

EXIT_CONFIG: Final = 2

config_file: Final = click.Path(dir_okay=False, path_type=Path)
"""Type of an option or argument that names one; whether it can be read is found when it is."""


def load_configuration(path: Path | None) -> Settings:
    """Settings of the file, or the defaults. Raises Failure with EXIT_CONFIG."""
    from supervisor.config.config_file import default_settings, load_settings
    from supervisor.config.settings import SettingsError

    try:
        return default_settings() if path is None else load_settings(path)
    except SettingsError as error:
        raise Failure(str(error), EXIT_CONFIG) from None
