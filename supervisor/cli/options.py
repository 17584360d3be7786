"""Options that many commands share, and the client that they choose."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import click

from ipc.host.text.durations import parse_duration
from ipc.k8s.resources import registry
from supervisor.config.socket_path import admin_socket_path

if TYPE_CHECKING:
    from supervisor.client.http import AgentClient

DEFAULT_NAMESPACE: Final = "default"
FOREVER_S: Final = 7 * 24 * 3600.0
"""Longest wait, in seconds, which stands for one without a timeout (kubectl pkg/cmd/wait)."""
_INSTANCE: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_INSTANCE_RULE: Final = "the name of an instance has lower case letters, digits and inner dashes, at most 63"
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?")

F = TypeVar("F", bound=Callable[..., object])
CommandOptions: TypeAlias = Mapping[str, Any]
"""Values of a command's options by the names of its parameters, as click gives them."""


def agent_options(command: F) -> F:
    """``--socket`` and ``--instance``: which agent is meant. They may stand before or after the command's name."""
    socket = click.option(
        "--socket",
        type=click.Path(path_type=Path),
        envvar="ROOTLET_SOCKET",
        expose_value=False,
        callback=_remember,
        help="Admin socket of the agent.  [env: ROOTLET_SOCKET]",
    )
    instance = click.option(
        "--instance",
        envvar="ROOTLET_INSTANCE",
        expose_value=False,
        callback=_remember,
        shell_complete=_instances,
        help="Name of the agent's instance, instead of its socket.  [env: ROOTLET_INSTANCE]",
    )
    return socket(instance(command))


def _instances(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names for a shell that asks: nobody else needs what looks for them."""
    from supervisor.cli.live_names import instances

    return instances(ctx, param, incomplete)


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Keep an option's value: an explicit one counts more than the environment, and a later one more than an earlier
    one."""
    if value is None or param.name is None:
        return
    if param.name == "instance" and not _INSTANCE.fullmatch(value):
        raise click.BadParameter(f'"{value}": {_INSTANCE_RULE}', ctx, param)
    source = ctx.get_parameter_source(param.name)
    rank = 1 if source is click.core.ParameterSource.COMMANDLINE else 0
    chosen = ctx.meta.setdefault("rootlet.agent", {})
    if rank >= chosen.get(param.name, (0, None))[0]:
        chosen[param.name] = (rank, value)


def chosen_socket(ctx: click.Context) -> Path:
    """The socket that was named. Explicit options outrank the environment; among equals, a socket an instance."""
    chosen = ctx.meta.get("rootlet.agent", {})
    ranked = sorted(chosen.items(), key=lambda item: (item[1][0], item[0] == "socket"))
    if not ranked:
        return admin_socket_path()
    name, (_, value) = ranked[-1]
    return Path(value) if name == "socket" else admin_socket_path(value)


def is_agent_chosen(ctx: click.Context) -> bool:
    """Whether a socket or an instance was named, by an option or the environment."""
    return bool(ctx.meta.get("rootlet.agent"))


@contextmanager
def agent(ctx: click.Context, socket: Path | None = None) -> Iterator[AgentClient]:
    """A client of the agent at ``socket``, else of the chosen one. What it fails of becomes one line on stderr and exit
    code 1."""
    from supervisor.client.errors import AgentError
    from supervisor.client.http import AgentClient

    try:
        yield AgentClient(socket or chosen_socket(ctx))
    except AgentError as error:
        raise Failure(str(error)) from None


class Failure(Exception):
    """The command did not succeed; the text says why."""

    def __init__(self, message: str, exit_code: int = 1, *, prefix: str = "rootlet: ") -> None:
        """``prefix`` comes before the text, unless the agent itself has said it."""
        super().__init__(message if message.startswith("Error from server") else prefix + message)
        self.exit_code = exit_code


container_option: Final = click.option(
    "-c", "--container", default="", help="Which container of the pod, of whatever kind."
)
_NAMESPACE: Final = "rootlet.namespace"


def _keep_namespace(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.meta[_NAMESPACE] = value


def _chosen_namespace(ctx: click.Context, param: click.Parameter, value: str | None) -> str:
    """The command's own outranks the one before its name."""
    found: str = value if value is not None else ctx.meta.get(_NAMESPACE, DEFAULT_NAMESPACE)
    return found


namespace_before_command: Final = click.option(
    "-n", "--namespace", callback=_keep_namespace, expose_value=False, help="Namespace of what a command is about."
)
namespace_option: Final = click.option(
    "-n", "--namespace", callback=_chosen_namespace, help=f"Namespace of the objects.  [default: {DEFAULT_NAMESPACE}]"
)
all_namespaces_option: Final = click.option("-A", "--all-namespaces", is_flag=True, help="Look at all namespaces.")
selector_option: Final = click.option(
    "-l", "--selector", default="", metavar="LABELS", help="Only what these labels select: app=web,tier!=db."
)

field_selector_option: Final = click.option(
    "--field-selector", default="", metavar="FIELDS", help="Only what these fields select: status.phase=Running."
)

everything_option: Final = click.option("--all", "everything", is_flag=True, help="Every object of the namespace.")


def document_option(
    default: str = "", *, metavar: str | None = None, words: str = "json, yaml or kyaml."
) -> Callable[[F], F]:
    """``-o`` of a command whose answer is text, or a document in one of these forms (`printers.documents`)."""
    forms = [*([] if default else [""]), "json", "yaml", "kyaml"]
    return click.option("-o", "--output", type=click.Choice(forms), default=default, metavar=metavar, help=words)


def place_options(command: F) -> F:
    """Options that say in which namespaces objects are, and with which labels."""
    return namespace_option(all_namespaces_option(selector_option(command)))


def listing_options(command: F) -> F:
    """Options that say in which namespaces objects are, and with which labels and fields."""
    return place_options(field_selector_option(command))


def duration_s(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """An option's callback: ``30s``, ``1m30s``; a bare number is seconds, as in kubectl."""
    if value is None:
        return None
    try:
        return parse_duration(f"{value}s" if _NUMBER.fullmatch(value) else value)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from None


def split_pod_name(text: str) -> str:
    """``web``, ``pod/web`` or ``pods/web``. Raises click.UsageError for another resource."""
    resource, slash, name = text.rpartition("/")
    if slash and resource not in POD_ALIASES:
        raise click.UsageError(f"{text!r} is not a pod: the resource must be one of {', '.join(sorted(POD_ALIASES))}")
    if not name:
        raise click.UsageError(f"{text!r} names no pod")
    return name


POD_ALIASES: Final = frozenset(registry.PODS.names)
