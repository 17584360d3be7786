"""`rootlet run`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from supervisor.agent_command import ALLOW_ROOT, RunOptions, run_with
from supervisor.cli.configuration import config_option

if TYPE_CHECKING:
    from ipc.link.wire.boot import LoadWorkerMain


@click.command()
@config_option
@click.option(ALLOW_ROOT, is_flag=True, help="Run although this is root, with pods that have root's rights.")
@click.pass_obj
def run(load_worker_main: LoadWorkerMain, config_path: Path | None, allow_root: bool) -> int:
    """Run the agent in the foreground until SIGTERM or `rootlet stop`; containers keep running after it."""
    return run_with(RunOptions(config_path, allow_root), load_worker_main)
