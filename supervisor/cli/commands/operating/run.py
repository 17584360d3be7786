"""`rootlet run`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from supervisor.cli.configuration import EXIT_CONFIG, config_file, load_configuration
from supervisor.cli.options import Failure

if TYPE_CHECKING:
    from ipc.wire.boot import LoadWorkerMain


@click.command()
@click.option("--config", "config_path", type=config_file, help="The configuration file; without, all defaults.")
@click.pass_obj
def run(load_worker_main: LoadWorkerMain, config_path: Path | None) -> int:
    """Run the agent in the foreground until SIGTERM or `rootlet stop`; containers keep running after it."""
    from ipc.log import setup, verbosity
    from supervisor.agent import run_agent
    from supervisor.config.settings import SettingsError
    from supervisor.processes.inherited_descriptors import close_inherited
    from supervisor.processes.podman_service import BrokenContainersConf
    from supervisor.state.directory_owner import DirectoryTaken
    from supervisor.state.instance_lock import InstanceBusy

    settings = load_configuration(config_path)  # before: it may be read from one of them (/dev/fd)
    close_inherited()
    setup.set_up(settings.logging.target, "master")
    verbosity.apply(settings.logging.levels)
    try:
        return run_agent(settings, load_worker_main, config_path)
    except SettingsError as error:
        raise Failure(str(error), EXIT_CONFIG) from error
    except (InstanceBusy, DirectoryTaken, BrokenContainersConf, OSError) as error:
        raise Failure(str(error)) from error
