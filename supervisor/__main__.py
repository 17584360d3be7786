"""The command `rootlet`. The only file here that names `workers`: it hands their entry point to the agent."""

from __future__ import annotations

import os
import sys
from errno import EPIPE
from typing import TYPE_CHECKING, NoReturn

from ipc.host.process import interrupts

if TYPE_CHECKING:
    from ipc.link.wire.boot import LoadWorkerMain, WorkerMain
    from supervisor.agent_command import RunOptions


def load_worker_main() -> WorkerMain:
    """Main function of every forked child. Imported by the agent alone, not by commands that only ask it something."""
    from workers.main import main as worker_main

    return worker_main


def main() -> int:
    """Entry point of the console script; its exit code, where it returns at all.

    Modules are loaded within it, so that Ctrl-C ends it without a word while they are.
    """
    interrupts.end_the_process()
    try:
        if sys.stdout is not None:
            sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # of a text that is no UTF-8
        leave(run_command(sys.argv[1:], load_worker_main))
    except KeyboardInterrupt:
        interrupts.die()


def run_command(arguments: list[str], load: LoadWorkerMain) -> int:
    """Run a command; its exit code. The agent runs without the command line's library where its options are plain."""
    if arguments[:1] == ["run"]:
        from supervisor.agent_command import plain_options

        if (options := plain_options(arguments[1:])) is not None:
            return _run_agent(options, load)
    from supervisor.cli.main import run_cli

    return run_cli(arguments, load)


def _run_agent(options: RunOptions, load: LoadWorkerMain) -> int:
    from supervisor.agent_command import run_with

    interrupts.raise_in_commands()
    try:
        return run_with(options, load)
    except Exception as error:
        from supervisor.cli.main import tell

        return tell(error)


def leave(code: int) -> NoReturn:
    """End the process without taking the interpreter apart, which would be a fifth of a short command's CPU time: the
    kernel frees memory and descriptors faster, and a command has ended its threads and children by itself.

    What was printed and cannot be written is told, once, and makes exit code 1 of a success.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError as error:
            if code == 0 and stream is sys.stdout and error.errno != EPIPE:
                os.write(2, f"error: the output cannot be written: {error.strerror}\n".encode())
            code = code or 1
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
