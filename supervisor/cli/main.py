"""The command group, loaded piece by piece, and what becomes of errors."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import click

from ipc.text.safe_text import safe_text
from supervisor.cli.options import Failure, agent_options

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from ipc.wire.boot import LoadWorkerMain

EXIT_INTERRUPTED: Final = 130

COMMANDS: Final[Mapping[str, str]] = {
    "run": "Run the agent.",
    "get": "Show pods, the node, events, ConfigMaps, Secrets or workers.",
    "describe": "Show everything about a pod, the node, a ConfigMap or Secret.",
    "top": "Show CPU and memory of pods, the node or workers.",
    "stats": "Show everything that pods use, and where each figure is from.",
    "logs": "Print the log of a container.",
    "exec": "Run a command in a container.",
    "attach": "Join the streams of a running container.",
    "port-forward": "Forward local ports to a pod.",
    "images": "Show Podman's images, when they were used, and by what.",
    "gc": "Remove unused images, dead containers and directories of pods that are gone.",
    "wait": "Wait until pods are ready, gone, or in another condition.",
    "apply": "Create or change what a manifest states.",
    "delete": "Delete pods, ConfigMaps and Secrets.",
    "workers": "Restart processes of the agent.",
    "drain": "End all pods in order, and admit none until uncordon.",
    "uncordon": "Give a drained node its pods back.",
    "loglevel": "Show or change which lines the agent logs.",
    "stop": "Stop the agent.",
    "version": "Show the versions of this command and of the agent.",
    "config": "Work with configuration files.",
    "doctor": "Say what would break on this host, before it does.",
    "load-test": "Measure the running agent with many pods.",
}
"""Every command and its line in the help. Each is a module of `supervisor.cli.commands`, which only its use imports."""


class _CommandTable(click.Group):
    """Help and completion come from the table; a command's module is imported when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(importlib.import_module(f"supervisor.cli.commands.{name}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        names = [CompletionItem(name, help=line) for name, line in COMMANDS.items() if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]


@click.group(cls=_CommandTable, context_settings={"help_option_names": ["-h", "--help"]})
@agent_options
def rootlet() -> None:
    """Rootlet keeps the pods of your manifests running on rootless Podman."""


def run_cli(arguments: Sequence[str], load_worker_main: LoadWorkerMain) -> int:
    """Run one command; its exit code. Errors are told on stderr in one line, without a traceback.

    Raises SystemExit(1), without a word, when nobody reads the output any more.
    """
    try:
        code = rootlet.main(list(arguments), "rootlet", standalone_mode=False, obj=load_worker_main)
    except Failure as error:
        click.echo(safe_text(str(error)), err=True)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return EXIT_INTERRUPTED
    return code if isinstance(code, int) else 0
