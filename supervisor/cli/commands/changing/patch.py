"""`rootlet patch`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from supervisor.cli.changing.changes import (
    ChangeReport,
    Choice,
    chosen,
    dry_run_option,
    each,
    object_name,
    output_option,
    patch_object,
    stated_namespace_option,
)
from supervisor.cli.manifests import Target, manifest_options, parse_document, read_manifests, recursive_option
from supervisor.cli.options import agent, agent_options

_TYPES: Final = ("json", "merge", "strategic")


@click.command()
@click.argument("words", nargs=-1, metavar="(TYPE NAME | TYPE/NAME)")
@click.option("-p", "--patch", "text", metavar="PATCH", help="The patch, as JSON or YAML.")
@click.option("--patch-file", type=click.Path(path_type=Path, dir_okay=False), help="A file with the patch.")
@click.option(
    "--type", "patch_type", type=click.Choice(_TYPES), default="strategic", show_default=True, help="Its type."
)
@manifest_options
@recursive_option
@stated_namespace_option
@dry_run_option
@output_option
@agent_options
@click.pass_context
def patch(
    ctx: click.Context,
    words: tuple[str, ...],
    text: str | None,
    patch_file: Path | None,
    patch_type: str,
    files: tuple[str, ...],
    recursive: bool,
    namespace: str,
    dry_run: str,
    output: str,
) -> None:
    """Change fields of applied objects by a strategic merge patch, a JSON merge patch or a JSON patch.

    \b
    rootlet patch pod web -p '{"spec": {"containers": [{"name": "app", "image": "web:2"}]}}'
    rootlet patch cm app --type=merge -p '{"data": {"mode": "fast"}}'
    rootlet patch pod web --type=json -p '[{"op": "remove", "path": "/metadata/labels/tier"}]'
    """
    if (text is None) == (patch_file is None):
        raise click.UsageError("must specify --patch or --patch-file containing the contents of the patch")
    content = _content(text, patch_file)
    report = ChangeReport(output=output, dry_run=dry_run)
    with agent(ctx) as client:

        def act(target: Target) -> None:
            result = patch_object(client, target, content, report, patch_type=patch_type)
            done = "patched (no change)" if result.results[0].endswith(" unchanged") else "patched"
            report.show([report.line(object_name(target), done)], result.objects)

        each(chosen(client, Choice(words=words, files=files, recursive=recursive, namespace=namespace)), act)


def _content(text: str | None, file: Path | None) -> object:
    """Raises Failure for what is neither JSON nor YAML."""
    if file is None:
        return parse_document("the patch", (text or "").encode())
    (manifest,) = read_manifests((str(file),))
    return parse_document(manifest.name, manifest.body)
