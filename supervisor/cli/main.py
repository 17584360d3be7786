"""The command group, loaded piece by piece, and what becomes of errors."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import click

from ipc.text.safe_text import safe_text
from supervisor.cli.options import Failure, agent_options

if TYPE_CHECKING:
    from ipc.wire.boot import LoadWorkerMain

EXIT_INTERRUPTED: Final = 130

_COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "run": ("supervisor.cli.commands.agent", "Run the agent."),
    "get": ("supervisor.cli.commands.get", "Show pods, events, ConfigMaps, Secrets or workers."),
    "describe": ("supervisor.cli.commands.describe", "Show everything about a pod, ConfigMap or Secret."),
    "logs": ("supervisor.cli.commands.logs", "Print the log of a container."),
    "exec": ("supervisor.cli.commands.exec", "Run a command in a container."),
    "attach": ("supervisor.cli.commands.attach", "Join the streams of a running container."),
    "port-forward": ("supervisor.cli.commands.port_forward", "Forward local ports to a pod."),
    "wait": ("supervisor.cli.commands.wait", "Wait until pods are ready, gone, or in another condition."),
    "apply": ("supervisor.cli.commands.apply", "Create or change what a manifest states."),
    "delete": ("supervisor.cli.commands.delete", "Delete pods, ConfigMaps and Secrets."),
    "workers": ("supervisor.cli.commands.workers", "Restart processes of the agent."),
    "stop": ("supervisor.cli.commands.agent", "Stop the agent."),
    "version": ("supervisor.cli.commands.agent", "Show the versions of this command and of the agent."),
    "config": ("supervisor.cli.commands.agent", "Work with configuration files."),
    "doctor": ("supervisor.cli.commands.doctor", "Say what would break on this host, before it does."),
    "load-test": ("supervisor.cli.commands.load_test", "Measure the running agent with many pods."),
}
"""Where each command is, and its line in the help: asking for a list of pods must not import the whole agent."""


class _LazyGroup(click.Group):
    """Imports a command's module when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(_COMMANDS[cmd_name][0])
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in _COMMANDS.items()])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
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
