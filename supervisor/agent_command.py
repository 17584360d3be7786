"""`rootlet run` with its options known: settings, then the agent; and how they are known without the command line.

The command line's library and what it imports would be 4 MiB of the agent's processes for as long as they live.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from supervisor.config.config_path import chosen_config_path

if TYPE_CHECKING:
    from ipc.link.wire.boot import LoadWorkerMain
    from supervisor.cli.options import Failure

ROOT: Final = (
    "this is root: Rootlet runs the pods of an ordinary user by rootless Podman, and with root's rights a pod could do "
    "anything to this host: run it as an ordinary user, or say --allow-root"
)
CONFIG: Final = "--config"
ALLOW_ROOT: Final = "--allow-root"
GC_THRESHOLD: Final = 20_000
"""New containers between two collections, here and in the children: modules, messages and views make no cycles, looking
for some every 700 objects costs more than it finds."""


class RunOptions(NamedTuple):
    """Options of `rootlet run`."""

    config_path: Path | None
    """The file that counts; None for all defaults."""
    allow_root: bool


def plain_options(arguments: Sequence[str]) -> RunOptions | None:
    """A file and ``--allow-root`` at most, each once; None for all else, help and mistakes among it, which the command
    line answers."""
    named: Path | None = None
    allow_root = False
    rest = iter(arguments)
    for argument in rest:
        name, given, value = argument.partition("=")
        if argument == ALLOW_ROOT and not allow_root:
            allow_root = True
        elif name == CONFIG and named is None:
            file = value if given else next(rest, "")
            if not file or file.startswith("-") or os.path.isdir(file):
                return None
            named = Path(file)
        else:
            return None
    return RunOptions(chosen_config_path(named), allow_root)


def run_with(options: RunOptions, load_worker_main: LoadWorkerMain) -> int:
    """The agent's whole life; its exit code. Raises `supervisor.cli.options.Failure` where it cannot start."""
    gc.set_threshold(GC_THRESHOLD)  # before most modules are imported
    from ipc.host.log import setup, verbosity
    from supervisor.agent import run_agent
    from supervisor.config.containers_conf import BrokenContainersConf
    from supervisor.config.resolution.config_file import default_settings, load_settings
    from supervisor.config.settings import SettingsError
    from supervisor.processes.inherited_descriptors import close_inherited
    from supervisor.state.directory_owner import DirectoryTaken
    from supervisor.state.instance_lock import InstanceBusy

    if os.getuid() == 0 and not options.allow_root:
        raise _failure(ROOT, of_configuration=True)
    path = options.config_path
    try:
        # Before files are closed: it may be read from one of them (/dev/fd).
        settings = default_settings() if path is None else load_settings(path)
        close_inherited()
        setup.set_up(settings.logging.target, "master")
        verbosity.apply(settings.logging.levels)
        return run_agent(settings, load_worker_main, path)
    except SettingsError as error:
        raise _failure(str(error), of_configuration=True) from error
    except (InstanceBusy, DirectoryTaken, BrokenContainersConf) as error:
        raise _failure(str(error)) from error
    except OSError as error:
        from supervisor.cli.messages import file_words

        raise _failure(f"the agent cannot start: {file_words(error)}") from error


def _failure(words: str, *, of_configuration: bool = False) -> Failure:
    """As the command line has it, which is imported now that there is something to say."""
    from supervisor.cli.configuration import EXIT_CONFIG
    from supervisor.cli.messages import EXIT_FAILURE
    from supervisor.cli.options import Failure

    return Failure(words, EXIT_CONFIG if of_configuration else EXIT_FAILURE)
