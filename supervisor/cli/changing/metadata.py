"""Labels and annotations as `rootlet label` and `annotate` change them (kubectl pkg/cmd/label, pkg/cmd/annotate)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

import click
import msgspec

from supervisor.cli.changing.changes import (
    ChangeReport,
    Choice,
    changing_options,
    chosen,
    each,
    object_name,
    patch_object,
    read_object,
)
from supervisor.cli.manifests import Target
from supervisor.cli.options import CommandOptions, Failure, agent
from supervisor.client.http import AgentClient

F = TypeVar("F", bound=Callable[..., object])

_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "labels": ("label", "labeled"),
    "annotations": ("annotation", "annotated"),
}
"""Singular of the field, and what was done to an object."""


class Changes(msgspec.Struct, frozen=True):
    """Keys to set and to take away."""

    stated: Mapping[str, str]
    gone: tuple[str, ...]


def metadata_options(command: F) -> F:
    """Words and options of both commands."""
    words = click.argument("words", nargs=-1, metavar="(TYPE NAME | TYPE/NAME)... KEY=VALUE... KEY-...")
    overwrite = click.option("--overwrite", is_flag=True, help="Change values that are there already.")
    listed = click.option("--list", "listed", is_flag=True, help="Show them, after all changes.")
    return words(overwrite(listed(changing_options(command))))


def change_metadata(ctx: click.Context, field: str, words: Sequence[str], options: CommandOptions) -> None:
    """Carry out the command. Raises Failure and click.UsageError."""
    noun = _WORDS[field][0]
    named, pairs = split_pairs(words)
    changes = parse_changes(pairs, noun)
    if not pairs and not options["listed"]:
        raise click.UsageError(f"at least one {noun} update is required")
    choice = Choice(
        words=named,
        **{
            name: options[name]
            for name in ("files", "recursive", "selector", "everything", "namespace", "all_namespaces")
        },
    )
    report = ChangeReport(output=options["output"], dry_run=options["dry_run"])
    with agent(ctx) as client:

        def act(target: Target) -> None:
            _change(client, target, field, changes, report, overwrite=options["overwrite"], listed=options["listed"])

        each(chosen(client, choice), act)


def split_pairs(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Objects first, then all from the first change on (cmd/util, GetResourcesAndPairs)."""
    first = next((index for index, word in enumerate(words) if "=" in word or word.endswith("-")), len(words))
    return tuple(words[:first]), tuple(words[first:])


def parse_changes(pairs: Sequence[str], noun: str) -> Changes:
    """``a=b`` and ``c-``. Raises Failure."""
    stated: dict[str, str] = {}
    gone: dict[str, None] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if equals and key:
            stated[key] = value
        elif not equals and pair.endswith("-") and pair != "-":
            gone[pair[:-1]] = None
        else:
            raise Failure(f"unknown {noun} spec: {pair}", prefix="error: ")
    if both := sorted(stated.keys() & gone.keys()):
        raise Failure(f"cannot modify and remove the same {noun}: {', '.join(both)}", prefix="error: ")
    return Changes(stated, tuple(gone))


def _change(
    client: AgentClient,
    target: Target,
    field: str,
    changes: Changes,
    report: ChangeReport,
    *,
    overwrite: bool,
    listed: bool,
) -> None:
    noun, done = _WORDS[field]
    before: Mapping[str, str] = read_object(client, target)["metadata"].get(field, {})
    if not overwrite:
        _refuse_other_values(before, changes)
    for key in changes.gone:
        if key not in before:
            click.echo(f'{noun} "{key}" not found.')
    patch = {"metadata": {field: {**changes.stated, **dict.fromkeys(key for key in changes.gone if key in before)}}}
    after = {key: value for key, value in {**before, **changes.stated}.items() if key not in changes.gone}
    if after == before:
        done = f"not {done}" if field == "labels" else done
    elif field == "labels" and not changes.stated:
        done = "unlabeled"
    result = patch_object(client, target, patch, report, patch_type="merge")
    if listed:
        click.echo("".join(f"{key}={value}\n" for key, value in sorted(after.items())), nl=False)
    else:
        report.show([report.line(object_name(target), done)], result.objects)


def _refuse_other_values(before: Mapping[str, str], changes: Changes) -> None:
    wrong = [
        f"'{key}' already has a value ({before[key]}), and --overwrite is false"
        for key, value in changes.stated.items()
        if before.get(key, value) != value
    ]
    if wrong:
        raise Failure("; ".join(wrong), prefix="error: ")
