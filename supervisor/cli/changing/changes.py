"""Changes of applied objects as commands make them: which objects are meant, what is asked, and what is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

import click
import msgspec

from ipc.host.text.json_types import Json, JsonObject
from ipc.k8s.resources.registry import APPLIED, BY_PLURAL
from supervisor.cli.manifests import RESOURCES, Target, manifest_options, objects_in, read_manifests, recursive_option
from supervisor.cli.options import DEFAULT_NAMESPACE, Failure, agent_options
from supervisor.client.errors import RequestFailed
from supervisor.client.http import WITHOUT_NAMESPACE, ActionResult, AgentClient, config_objects_path, pods_path

F = TypeVar("F", bound=Callable[..., object])

PODS: Final = "pods"
KINDS: Final[Mapping[str, str]] = {resource: kind for kind, resource in RESOURCES.items()}
"""Resources that can be applied, and their kinds."""
ALIASES: Final[Mapping[str, str]] = {name: resource.plural for resource in APPLIED for name in resource.names}
NO_TYPE: Final = "You must provide one or more resources by argument or filename"
NO_NAME: Final = "resource(s) were provided, but no name was specified"
NONE, CLIENT, SERVER = "none", "client", "server"
_DRY_RUNS: Final[Mapping[str, str]] = {NONE: "", CLIENT: " (dry run)", SERVER: " (server dry run)"}

dry_run_option: Final = click.option(
    "--dry-run",
    type=click.Choice([NONE, SERVER, CLIENT]),
    is_flag=False,
    flag_value=CLIENT,
    default=NONE,
    show_default=True,
    help="Only say what would be done: client asks no agent to try it, server does.",
)
output_option: Final = click.option(
    "-o",
    "--output",
    type=click.Choice(["", "json", "yaml", "kyaml", "name"]),
    default="",
    metavar="FORMAT",
    help="json, yaml, kyaml or name of what was changed.",
)
stated_namespace_option: Final = click.option(
    "-n", "--namespace", default="", help="Namespace of the objects.  [default: default]"
)


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """Objects as a command line names them."""

    words: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    recursive: bool = False
    selector: str = ""
    everything: bool = False
    namespace: str = ""
    all_namespaces: bool = False


def choice_options(command: F) -> F:
    """Options by which `label`, `annotate` and `set` choose objects; `Choice` takes them."""
    for option in (
        recursive_option,
        manifest_options,
        click.option("-l", "--selector", default="", metavar="LABELS", help="Objects of the type with these labels."),
        click.option("--all", "everything", is_flag=True, help="All objects of the type in the namespace."),
        click.option("-A", "--all-namespaces", is_flag=True, help="Objects of all namespaces."),
        stated_namespace_option,
    ):
        command = option(command)
    return command


def pods_options(command: F) -> F:
    """Words and options by which `restart pod`, `pause pod` and `resume pod` choose pods; `pods_choice` takes them."""
    for option in (
        click.option("-l", "--selector", default="", metavar="LABELS", help="Pods with these labels."),
        click.option("--all", "everything", is_flag=True, help="All pods of the namespace."),
        stated_namespace_option,
        click.argument("names", nargs=-1, metavar="NAME..."),
    ):
        command = option(command)
    return command


def pods_choice(names: tuple[str, ...], selector: str, everything: bool, namespace: str) -> Choice:
    """Pods by `pods_options`. Raises click.UsageError when they are chosen in two ways, or in none."""
    if bool(names) == bool(selector or everything):
        raise click.UsageError("name the pods, or give --all or a selector")
    return Choice(words=("pods", *names), selector=selector, everything=everything, namespace=namespace)


def changing_options(command: F) -> F:
    """Options of the commands that change objects which are there: which they are, and how it is told."""
    for option in (agent_options, output_option, dry_run_option, choice_options):
        command = option(command)
    return command


class ChangeReport(msgspec.Struct, frozen=True, kw_only=True):
    """How a change is reported, and whether it is made at all."""

    output: str = ""
    dry_run: str = NONE

    @property
    def is_dry(self) -> bool:
        """Nothing is to be changed."""
        return self.dry_run != NONE

    def line(self, name: str, done: str) -> str:
        """``pod/web labeled (dry run)``."""
        return f"{name} {done}{_DRY_RUNS[self.dry_run]}"

    def show(self, lines: Sequence[str], objects: Sequence[Json]) -> None:
        """Print the lines, or the objects instead."""
        if self.output == "name":
            lines = [f"{str(found['kind']).lower()}/{found['metadata']['name']}" for found in objects]
        if self.output in ("", "name"):
            click.echo("".join(f"{line}\n" for line in lines), nl=False)
        elif objects:
            click.echo(_document(self.output, objects), nl=False)


def _document(output: str, objects: Sequence[Json]) -> str:
    from supervisor.cli.printers.documents import DOCUMENTS, as_list

    return DOCUMENTS[output](objects[0] if len(objects) == 1 else as_list(objects))


def warn(result: ActionResult) -> None:
    """Tell what the agent has to say of a change, as kubectl tells a server's warnings."""
    for line in dict.fromkeys(result.warnings):
        click.echo(f"Warning: {line}", err=True)


def chosen(client: AgentClient, choice: Choice) -> list[Target]:
    """The objects that are meant. Raises Failure and click.UsageError."""
    if choice.files:
        if choice.words:
            raise click.UsageError("when files are given with -f or -k, no object may be named as well")
        found = read_manifests(choice.files, recursive=choice.recursive)
        namespace = choice.namespace or DEFAULT_NAMESPACE
        return [target for manifest in found for target in objects_in(manifest, namespace)]
    if not choice.words:
        raise click.UsageError(NO_TYPE)
    resources, named = types_and_objects(choice.words, choice.namespace)
    if named:
        return named
    if not (choice.selector or choice.everything):
        raise Failure(NO_NAME, prefix="error: ")
    found_targets = [target for resource in resources for target in _listed(client, resource, choice)]
    if not found_targets:
        raise Failure("no objects passed to it", prefix="error: ")
    return found_targets


def types_and_objects(words: Sequence[str], namespace: str) -> tuple[list[str], list[Target]]:
    """Types that are meant, and the objects that are named: ``pods``, ``pod,cm web db``, ``pod/web cm/app``. A word
    without a type is a type, never a pod. Raises Failure."""
    if "/" in words[0]:
        pairs = [_pair(word, namespace) for word in words]
        return [target.resource for target in pairs], pairs
    resources = [resource_named(word) for word in words[0].split(",")]
    return resources, [_target(resource, namespace, name) for resource in resources for name in words[1:]]


def resource_named(word: str) -> str:
    """Raises Failure for what cannot be applied."""
    if word not in ALIASES:
        raise Failure(
            f'the server doesn\'t have a resource type "{word}" that can be changed: only {", ".join(KINDS)}',
            prefix="error: ",
        )
    return ALIASES[word]


def _pair(word: str, namespace: str) -> Target:
    kind, slash, name = word.partition("/")
    if not slash or not name or "/" in name:
        raise Failure(f"{word!r}: name each object as TYPE/NAME", prefix="error: ")
    return _target(resource_named(kind), namespace, name)


def _target(resource: str, namespace: str, name: str) -> Target:
    return Target(resource, "" if resource in WITHOUT_NAMESPACE else namespace or DEFAULT_NAMESPACE, name)


def _listed(client: AgentClient, resource: str, choice: Choice) -> Iterator[Target]:
    namespace = None if choice.all_namespaces else choice.namespace or DEFAULT_NAMESPACE
    path = pods_path(namespace) if resource == PODS else config_objects_path(resource, namespace)
    for found in client.get(path, {"labelSelector": choice.selector or None})["items"]:
        metadata = found["metadata"]
        yield Target(resource, metadata.get("namespace", ""), metadata["name"])


def object_name(target: Target) -> str:
    """``pod/web``."""
    return f"{BY_PLURAL[target.resource].singular}/{target.name}"


def read_object(client: AgentClient, target: Target, *, values: bool = False) -> JsonObject:
    """An applied object as it is kept: what a patch of nothing would make of it. Raises RequestFailed."""
    result = client.patch(
        KINDS[target.resource],
        target.namespace,
        target.name,
        b"{}",
        patch_type="merge",
        dry_run=True,
        values=values,
    )
    return result.objects[0]


def patch_object(
    client: AgentClient, target: Target, patch: object, report: ChangeReport, *, patch_type: str = "strategic"
) -> ActionResult:
    """Change one applied object, or try to. Raises RequestFailed."""
    result = client.patch(
        KINDS[target.resource],
        target.namespace,
        target.name,
        msgspec.json.encode(patch),
        patch_type=patch_type,
        dry_run=report.is_dry,
    )
    warn(result)
    return result


def each(targets: Sequence[Target], act: Callable[[Target], None]) -> None:
    """Act on one after the other; what fails of one does not stop the others. Raises Failure with all errors."""
    problems = []
    for target in dict.fromkeys(targets):
        try:
            act(target)
        except RequestFailed as error:
            problems.append(str(error))
    if problems:
        raise Failure("\n".join(problems), prefix="")
