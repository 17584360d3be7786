"""Completion of names that are there just now: pods, containers, other objects, namespaces, workers, instances; and of
words that this program knows: forms of output, pages."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

import click

from ipc.host.text.json_types import Json
from ipc.k8s.resources.registry import RESOURCES, find_resource
from supervisor.cli.options import DEFAULT_NAMESPACE, chosen_socket
from supervisor.client.errors import AgentError
from supervisor.client.http import AgentClient, pod_path, pods_path
from supervisor.client.unreachable import listening_instances
from supervisor.config.socket_path import admin_socket_path

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

BY_KIND: Final = frozenset({"get", "describe", "delete"})
"""Commands whose first word is a kind, and names of that kind follow."""
OF_PODS: Final = frozenset(
    {
        "logs",
        "exec",
        "attach",
        "port-forward",
        "stats",
        "top pods",
        "restart pod",
        "restart container",
        "pause pod",
        "resume pod",
    }
)
"""Commands whose words are names of pods."""

Complete = Callable[[AgentClient, click.Context], Iterable[str]]
Known = Callable[[click.Parameter, str], Iterable[str]]
"""Words for a parameter of which something is typed already; no agent is asked."""
FORMS: Final = ("json", "yaml", "kyaml", "name", "wide", "jsonpath=", "jsonpath-as-json=", "custom-columns=")


def complete_live(command: click.Command, path: str = "") -> click.Command:
    """The command, whose words and options are completed with what the agent has; with nothing where none answers.
    ``path``: names of the groups that it is in, with a blank after each."""
    named = f"{path}{command.name}"
    if isinstance(command, click.Group):
        for below in command.commands.values():
            complete_live(below, f"{named} ")
    for param in command.params:
        found = _OPTIONS.get(param.name or "") if isinstance(param, click.Option) else _of_words(named, param)
        known = _KNOWN.get(param.name or "") if isinstance(param, click.Option) else _KNOWN.get(named)
        complete: Callable[..., list[CompletionItem]] | None = None
        if named == COPY:
            complete = _copied
        elif found is not None:
            complete = functools.partial(_items, found)
        elif known is not None:
            complete = functools.partial(_known_items, known, param)
        if complete is not None:
            setattr(param, "shell_complete", complete)  # noqa: B010 - of one object alone
    return command


def _of_words(command: str, param: click.Parameter) -> Complete | None:
    if command in BY_KIND:
        return _kinds_and_names
    if command in OF_PODS and param.name in ("pod", "names", "words"):
        return _pods
    return _OTHERS.get(command)


def _items(found: Complete, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    try:
        names = sorted(set(found(AgentClient(chosen_socket(ctx)), ctx)))
    except (AgentError, LookupError, TypeError):
        return []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _known_items(known: Known, param: click.Parameter, _ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(word) for word in known(param, incomplete) if word.startswith(incomplete)]


def _copied(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """``POD:`` of each pod; else a file of this host, whose names the shell knows."""
    from click.shell_completion import CompletionItem

    pods = _items(lambda client, context: [f"{name}:" for name in _pods(client, context)], ctx, incomplete)
    return pods or ([] if ":" in incomplete else [CompletionItem(incomplete, type="file")])


def _forms(param: click.Parameter, _: str) -> Iterable[str]:
    return filter(None, param.type.choices) if isinstance(param.type, click.Choice) else FORMS


def _pages(_: click.Parameter, __: str) -> Iterable[str]:
    from supervisor.cli.installed_files import installed_pages

    return installed_pages()


def instances(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Names of instances whose agents listen."""
    found = listening_instances(admin_socket_path().parent)
    return [name for name in found if name.startswith(incomplete)]


def _names(answer: Json) -> list[str]:
    return [item.get("metadata", item)["name"] for item in answer["items"]]


def _namespace(ctx: click.Context) -> str | None:
    return None if ctx.params.get("all_namespaces") else ctx.params.get("namespace") or DEFAULT_NAMESPACE


def _pods(client: AgentClient, ctx: click.Context) -> Iterable[str]:
    return _names(client.get(pods_path(_namespace(ctx))))


def _typed_pods(client: AgentClient, ctx: click.Context) -> Iterable[str]:
    return [f"pod/{name}" for name in _pods(client, ctx)]


def _words(ctx: click.Context) -> list[str]:
    """Words that were typed before. The parser leaves them unnamed behind an option that has no value yet."""
    given = [ctx.params.get(param.name or "") for param in ctx.command.params if isinstance(param, click.Argument)]
    named = [word for value in given for word in (value if isinstance(value, tuple) else (value,)) if word]
    return named or list(ctx.args)


def _kinds_and_names(client: AgentClient, ctx: click.Context) -> Iterable[str]:
    words = _words(ctx)
    if not words:
        return [resource.plural for resource in RESOURCES]
    resource = find_resource(words[0])
    return _names(client.get(resource.list_path(_namespace(ctx)))) if resource is not None else ()


def _workers(client: AgentClient, _ctx: click.Context) -> Iterable[str]:
    return [worker["name"] for worker in client.workers()]


def _containers(client: AgentClient, ctx: click.Context) -> Iterable[str]:
    spec = client.get(pod_path(_namespace(ctx) or DEFAULT_NAMESPACE, _words(ctx)[0]))["spec"]
    kinds = ("initContainers", "containers", "ephemeralContainers")
    return [container["name"] for kind in kinds for container in spec.get(kind, ())]


def _namespaces(client: AgentClient, _ctx: click.Context) -> Iterable[str]:
    return [pod["metadata"]["namespace"] for pod in client.get(pods_path(None))["items"]]


_OPTIONS: Final[Mapping[str, Complete]] = {
    "container": _containers,
    "containers": _containers,
    "namespace": _namespaces,
}
COPY: Final = "cp"
_KNOWN: Final[Mapping[str, Known]] = {
    "output": _forms,
    "output_text": _forms,
    "docs": _pages,
}
"""By the name of an option, or by the command whose words they are."""
_OTHERS: Final[Mapping[str, Complete]] = {
    "wait": _typed_pods,
    "rollout restart": _typed_pods,
    "workers restart": _workers,
}
