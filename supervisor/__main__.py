"""The command `rootlet`. The only file here that names `workers`: it hands their entry point to the agent."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from supervisor.cli.main import run_cli

if TYPE_CHECKING:
    from ipc.wire.boot import WorkerMain


def load_worker_main() -> WorkerMain:
    """Main function of every forked child. Imported by the agent alone, not by commands that only ask it something."""
    from workers.main import main as worker_main

    return worker_main


def main() -> int:
    """Entry point of the console script; its exit code, where it returns at all."""
    code = run_cli(sys.argv[1:], load_worker_main)
    leave(code)
    return code


def leave(code: int) -> None:
    """End the process without taking the interpreter apart, which would be a fifth of a short command's CPU time: the
    kernel frees memory and descriptors faster, and a command has ended its threads and children by itself.

    Returns when what was printed cannot be written: the interpreter's own end says so.
    """
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except OSError:
        return
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
