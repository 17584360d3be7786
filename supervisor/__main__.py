"""The command `rootlet`. The only file here that names `workers`: it hands their entry point to the agent."""

from __future__ import annotations

import sys

from ipc.wire.boot import WorkerMain
from supervisor.cli.main import run_cli


def load_worker_main() -> WorkerMain:
    """Main function of every forked child. Imported by the agent alone, not by commands that only ask it something."""
    from workers.main import main as worker_main

    return worker_main


def main() -> int:
    """Entry point of the console script; its exit code."""
    return run_cli(sys.argv[1:], load_worker_main)


if __name__ == "__main__":
    sys.exit(main())
