"""Patches of pods' containers, as `rootlet set` makes them (kubectl pkg/cmd/set)."""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import click

from ipc.host.text.json_types import Json
from supervisor.cli.changing.changes import (
    PODS,
    ChangeReport,
    Choice,
    chosen,
    each,
    object_name,
    patch_object,
    read_object,
)
from supervisor.cli.changing.metadata import Changes, parse_changes, split_pairs
from supervisor.cli.manifests import Target
from supervisor.cli.options import CommandOptions, Failure, agent

ContainerPatch = Callable[[Json, Sequence[str], CommandOptions], Json]
"""From a container, the command's pairs and its options to the changes of the container; empty for none."""
PairsCheck = Callable[[Sequence[str], Json], None]
"""Holds the command's pairs against the pod's spec. Raises Failure."""
LISTS: Final = ("initContainers", "containers")

containers_option: Final = click.option(
    "-c", "--containers", "pattern", default="*", show_default=True, help="Names of the containers; * is any text."
)


def change_containers(
    ctx: click.Context,
    words: Sequence[str],
    options: CommandOptions,
    done: str,
    patch: ContainerPatch,
    *,
    check: PairsCheck = lambda pairs, spec: None,
) -> None:
    """Carry out the command; ``done`` is what was done, for the user. Raises Failure and click.UsageError."""
    named, pairs = split_pairs(words)
    fields = ("files", "recursive", "selector", "everything", "namespace", "all_namespaces")
    choice = Choice(words=named, **{name: options[name] for name in fields})
    report = ChangeReport(output=options["output"], dry_run=options["dry_run"])
    if not (pairs or options.get("listed") or options.get("limits") or options.get("requests")):
        raise click.UsageError("say what to change")
    with agent(ctx) as client:

        def act(target: Target) -> None:
            if target.resource != PODS:
                raise Failure(f"{object_name(target)} is no pod: it has no containers", prefix="error: ")
            spec = read_object(client, target)["spec"]
            if options.get("listed"):
                click.echo(_listed(target, spec, options["pattern"]), nl=False)
                return
            found = _spec_patch(spec, pairs, options, patch, check)
            result = patch_object(client, target, {"spec": found}, report)
            if not result.results[0].endswith(" unchanged"):
                report.show([report.line(object_name(target), done)], result.objects)

        each(chosen(client, choice), act)


def _spec_patch(
    spec: Json, pairs: Sequence[str], options: CommandOptions, patch: ContainerPatch, check: PairsCheck
) -> Json:
    """Raises Failure when no container is meant, and what ``check`` raises."""
    meant = [(name, each) for name in LISTS for each in spec.get(name, ()) if _is_meant(each, options)]
    if not meant:
        raise Failure(f'there are no containers that match "{options.get("pattern", "*")}"', prefix="error: ")
    check(pairs, spec)
    found: dict[str, list[Json]] = {}
    for name, container in meant:
        if changes := patch(container, pairs, options):
            found.setdefault(name, []).append({"name": container["name"], **changes})
    return found


def _is_meant(container: Json, options: CommandOptions) -> bool:
    return fnmatch.fnmatchcase(container["name"], options.get("pattern", "*"))


def check_containers_of_images(pairs: Sequence[str], spec: Json) -> None:
    """Images are of containers: each must be there. Raises Failure."""
    there = {each["name"] for name in LISTS for each in spec.get(name, ())} | {"*"}
    for key in parse_changes(pairs, "image").stated:
        if key not in there:
            raise Failure(f'unable to find container named "{key}"', prefix="error: ")


def image_patch(container: Json, pairs: Sequence[str], _options: CommandOptions) -> Json:
    """The image that is said for this container, or for all."""
    stated = parse_changes(pairs, "image").stated
    image = stated.get(container["name"], stated.get("*"))
    return {} if image is None else {"image": image}


def env_patch(container: Json, pairs: Sequence[str], options: CommandOptions) -> Json:
    """Variables that are set, and deletions of others. One that stands there several times is set once, where it
    stands first (pkg/cmd/set/helper.go, updateEnv). Raises Failure for one that must not be overwritten."""
    changes = parse_changes(pairs, "environment variable")
    there = Counter(each["name"] for each in container.get("env", ()))
    if not options["overwrite"]:
        _refuse_overwriting(there, changes)
    left = dict.fromkeys(key for key in (*there, *changes.stated) if key in changes.stated or key not in changes.gone)
    repeated = [key for key in changes.stated if there[key] > 1]
    values = changes.stated
    stated = [{"name": key, "value": values[key], "valueFrom": None} for key in left if key in values]
    gone = [{"name": key, "$patch": "delete"} for key in (*changes.gone, *repeated) if key in there]
    order = {"$setElementOrder/env": [{"name": key} for key in left]} if repeated else {}
    return {"env": stated + gone, **order} if stated or gone else {}


def _refuse_overwriting(there: Iterable[str], changes: Changes) -> None:
    for key in changes.stated:
        if key in there:
            raise Failure(f"'{key}' already has a value, and --overwrite is false", prefix="error: ")


def resources_patch(_container: Json, _pairs: Sequence[str], options: CommandOptions) -> Json:
    """Limits and requests that are said."""
    stated = {name: _amounts(options[name], name) for name in ("limits", "requests") if options[name]}
    return {"resources": stated}


def _amounts(text: str, option: str) -> dict[str, str | None]:
    """``cpu=1,memory=0``: 0 is none at all. Raises Failure."""
    found: dict[str, str | None] = {}
    for part in text.split(","):
        name, equals, amount = part.partition("=")
        if not (equals and name and amount):
            raise Failure(f"--{option}: {part!r} is not RESOURCE=AMOUNT", prefix="error: ")
        found[name] = None if amount == "0" else amount
    return found


def _listed(target: Target, spec: Json, pattern: str) -> str:
    lines = []
    for name in LISTS:
        for container in spec.get(name, ()):
            if fnmatch.fnmatchcase(container["name"], pattern):
                lines.append(f"# {object_name(target)}, container {container['name']}")
                lines += [_variable(each) for each in container.get("env", ())]
    return "".join(f"{line}\n" for line in lines)


def _variable(variable: Json) -> str:
    """``A=b``, or in words where its value comes from."""
    source = variable.get("valueFrom")
    if not source:
        return f"{variable['name']}={variable.get('value', '')}"
    kind, reference = next(iter(source.items()))
    where = reference.get("key") or reference.get("fieldPath") or reference.get("resource") or ""
    of = f" of {reference['name']}" if "name" in reference else ""
    return f"# {variable['name']} from {kind}: {where}{of}"
