"""`rootlet run`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from supervisor.cli.configuration import EXIT_CONFIG, config_option, load_configuration
from supervisor.cli.messages import file_words
from supervisor.cli.options import Failure

if TYPE_CHECKING:
    from ipc.wire.boot import LoadWorkerMain
ROOT: Final = (
    "this is root: Rootlet runs the pods of an ordinary user by rootless Podman, and with root's rights a pod could do "
    "anything to this host: run it as an ordinary user, or say --allow-root"
)


@click.command()
@config_option
@click.option("--allow-root", is_flag=True, help="Run although this is root, with pods that have root's rights.")
@click.pass_obj
def run(load_worker_main: LoadWorkerMain, config_path: Path | None, allow_root: bool) -> int:
    """Run the agent in the foreground until SIGTERM or `rootlet stop`; containers keep running after it."""
    from ipc.log import setup, verbosity
    from supervisor.agent import run_agent
    from supervisor.config.settings import SettingsError
    from supervisor.processes.inherited_descriptors import close_inherited
    from supervisor.processes.podman_service import BrokenContainersConf
    from supervisor.state.directory_owner import DirectoryTaken
    from supervisor.state.instance_lock import InstanceBusy

    if os.getuid() == 0 and not allow_root:
        raise Failure(ROOT, EXIT_CONFIG)
    settings = load_configuration(config_path)  # before: it may be read from one of them (/dev/fd)
    close_inherited()
    setup.set_up(settings.logging.target, "master")
    verbosity.apply(settings.logging.levels)
    try:
        return run_agent(settings, load_worker_main, config_path)
    except SettingsError as error:
        raise Failure(str(error), EXIT_CONFIG) from error
    except (InstanceBusy, DirectoryTaken, BrokenContainersConf) as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(f"the agent cannot start: {file_words(error)}") from error
