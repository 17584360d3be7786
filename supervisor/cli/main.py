"""The command group, loaded piece by piece, and what becomes of errors."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import click

from ipc.host.process import interrupts
from ipc.host.text.safe_text import safe_text
from supervisor.cli.messages import EXIT_FAILURE, file_words, usage_code, usage_words
from supervisor.cli.options import Failure, agent_options, namespace_before_command
from supervisor.cli.pflag import normalized

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from ipc.link.wire.boot import LoadWorkerMain

COMMANDS: Final[Mapping[str, Mapping[str, str]]] = {
    "reading": {
        "get": "Show objects: pods, the node, events, workers and others.",
        "describe": "Show everything about objects.",
        "top": "Show CPU and memory of pods, the node or workers.",
        "events": "Show what has happened, in the order of time.",
        "stats": "Show everything that pods use, and where each figure is from.",
        "logs": "Print logs of containers.",
        "images": "Show Podman's images, when they were used, and by what.",
        "diff": "Show what `apply` would change.",
        "explain": "Show the fields of a kind, and what Rootlet does with each.",
        "api-resources": "Show the kinds of objects that there are.",
        "wait": "Wait until objects are there, gone, or in a condition.",
    },
    "changing": {
        "apply": "Create or change what a manifest states.",
        "create": "Create what a manifest states, or a ConfigMap or Secret of files and values.",
        "delete": "Delete pods, ConfigMaps and Secrets.",
        "edit": "Edit an applied object in an editor.",
        "patch": "Change fields of applied objects by a patch.",
        "replace": "Replace applied objects by what a manifest states.",
        "label": "Change labels of applied objects.",
        "annotate": "Change annotations of applied objects.",
        "set": "Change images, variables or resources of applied pods.",
        "restart": "Restart pods, or containers of a pod, in order.",
        "rollout": "Restart pods, in kubectl's words.",
        "pause": "Pause the processes of pods.",
        "resume": "Let paused pods go on.",
    },
    "entering": {
        "exec": "Run a command in a container.",
        "attach": "Join the streams of a running container.",
        "cp": "Copy files and directories to or from a container.",
        "debug": "Look at a pod with a container of another image.",
        "port-forward": "Forward local ports to a pod.",
    },
    "operating": {
        "run": "Run the agent.",
        "status": "Show whether the agent is well, its configuration, Podman, and pods by phase.",
        "reload": "Have the agent read its configuration file again.",
        "stop": "Stop the agent.",
        "drain": "End all pods in order, and admit none until uncordon.",
        "uncordon": "Give a drained node its pods back.",
        "join": "Write what this host needs to be a node of a cluster.",
        "leave": "Leave the cluster: end the pods, remove the node and its identity.",
        "gc": "Remove unused images, dead containers and directories of pods that are gone.",
        "workers": "Restart processes of the agent.",
        "loglevel": "Show or change which lines the agent logs.",
        "doctor": "Say what would break on this host, before it does.",
        "uninstall": "End the agent and its pods, and remove all that it has made.",
        "load-test": "Measure the running agent with many pods.",
    },
    "about": {
        "help": "Show the help of a command.",
        "config": "Show, check and print configuration files.",
        "docs": "Print a page of the documentation.",
        "completion": "Print a shell's script that completes this command.",
        "auth": "Show the user for whom the agent answers.",
        "version": "Show the versions of this command and of the agent.",
    },
}
"""Every command and its line in the help, by its room in `supervisor.cli.commands`. Each is a module, which only
its use imports."""
_SECTIONS: Final[Mapping[str, str]] = {
    "reading": "Look at pods and other objects",
    "changing": "Change them",
    "entering": "Go into a pod",
    "operating": "Run the node",
    "about": "About Rootlet",
}
"""Heading of each room in the help."""
_ROOMS: Final[Mapping[str, str]] = {name: room for room, commands in COMMANDS.items() for name in commands}


class _CommandTable(click.Group):
    """Help and completion come from the table; a command's module is imported when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_ROOMS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _ROOMS:
            return None
        name = cmd_name.replace("-", "_")
        module = importlib.import_module(f"supervisor.cli.commands.{_ROOMS[cmd_name]}.{name}")
        command: click.Command = getattr(module, name)
        if ctx.resilient_parsing:  # a shell asks for words
            importlib.import_module("supervisor.cli.live_names").complete_live(command)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, normalized(self, args))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        interrupts.raise_in_commands()  # its modules are loaded
        return name, command, rest if command is None else normalized(command, rest)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for room, commands in COMMANDS.items():
            with formatter.section(_SECTIONS[room]):
                formatter.write_dl(list(commands.items()), col_max=16)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        lines = [item for commands in COMMANDS.values() for item in commands.items()]
        names = [CompletionItem(name, help=line) for name, line in lines if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and (version := rootlet.get_command(ctx, "version")) is not None:
        ctx.invoke(version, client_only=True, output="")
        ctx.exit()


@click.group(cls=_CommandTable, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version."
)
@agent_options
@namespace_before_command
def rootlet() -> None:
    """Rootlet keeps the pods of your manifests running on rootless Podman."""


def root_context() -> click.Context:
    """Context of `rootlet` itself, without any arguments."""
    return click.Context(rootlet, info_name="rootlet", **rootlet.context_settings)


def walk(context: click.Context) -> Iterator[click.Context]:
    """The command and all below it, those of a group behind their group. Imports their modules."""
    yield context
    for child in subcommands(context):
        yield from walk(child)


def subcommands(context: click.Context) -> list[click.Context]:
    """Commands of a group, in the order of its help; none of a command that is no group."""
    group = context.command
    if not isinstance(group, click.Group):
        return []
    found = ((name, group.get_command(context, name)) for name in group.list_commands(context))
    return [click.Context(command, info_name=name, parent=context) for name, command in found if command is not None]


def run_cli(arguments: Sequence[str], load_worker_main: LoadWorkerMain) -> int:
    """Run one command; its exit code. Errors are told on stderr in one line, without a traceback.

    Raises SystemExit(1), without a word, when nobody reads the output any more, and KeyboardInterrupt.
    """
    try:
        code = rootlet.main(list(arguments), "rootlet", standalone_mode=False, obj=load_worker_main)
    except Exception as error:
        return tell(error)
    return code if isinstance(code, int) else 0


def tell(error: Exception) -> int:
    """Say on stderr what has kept a command from its work; the exit code. Raises the error, where it is a bug."""
    match error:
        case Failure():
            return _failed(str(error), error.exit_code)
        case click.UsageError() if error.ctx is not None and error.message == error.ctx.get_help():
            click.echo(error.message)  # a group, and no command of it
            return 0
        case click.UsageError():
            return _failed(usage_words(error), usage_code(error))
        case click.Abort() if isinstance(error.__context__, KeyboardInterrupt):
            raise error.__context__
        case click.Abort():
            return _failed("\nerror: there was a question, and the input has ended without an answer", EXIT_FAILURE)
        case UnicodeEncodeError():
            return _failed(f"error: {error.object!a} is not text in UTF-8", EXIT_FAILURE)
        case OSError():
            return _failed(f"error: {file_words(error)}", EXIT_FAILURE)
        case _:
            raise error


def _failed(words: str, code: int) -> int:
    """Tell it on stderr, where that takes anything."""
    with contextlib.suppress(OSError):
        click.echo(safe_text(words), err=True)
    return code
