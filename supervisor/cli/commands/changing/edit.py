"""`rootlet edit`."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Final

import click

from ipc.k8s.resources import registry
from supervisor.cli.changing.changes import (
    ChangeReport,
    Choice,
    chosen,
    each,
    object_name,
    output_option,
    patch_object,
    read_object,
    stated_namespace_option,
)
from supervisor.cli.manifests import Target, manifest_options, parse_document, recursive_option
from supervisor.cli.options import Failure, agent, agent_options
from supervisor.client.errors import RequestFailed
from supervisor.client.http import AgentClient

_EDITORS: Final = ("KUBE_EDITOR", "EDITOR")
_DEFAULT_EDITOR: Final = "vi"
_HEADER: Final = """\
# Please edit the object below. Lines beginning with a '#' will be ignored,
# and an empty file will abort the edit. If an error occurs while saving this file will be
# reopened with the relevant failures.
#
"""


@click.command()
@click.argument("words", nargs=-1, metavar="(TYPE NAME | TYPE/NAME)")
@manifest_options
@recursive_option
@click.option("--show-secrets", "show_values", is_flag=True, help="Put the values of a Secret before the editor.")
@stated_namespace_option
@output_option
@agent_options
@click.pass_context
def edit(
    ctx: click.Context,
    words: tuple[str, ...],
    files: tuple[str, ...],
    recursive: bool,
    show_values: bool,
    namespace: str,
    output: str,
) -> None:
    """Edit applied objects in $EDITOR. What is refused is opened again, with the reason as a comment.

    \b
    rootlet edit pod web
    EDITOR='code --wait' rootlet edit cm/app
    """
    with agent(ctx) as client:
        report = ChangeReport(output=output)
        choice = Choice(words=words, files=files, recursive=recursive, namespace=namespace)
        each(chosen(client, choice), lambda target: _edit(client, target, report, show_values))


def _edit(client: AgentClient, target: Target, report: ChangeReport, show_values: bool) -> None:
    from supervisor.cli.printers.yaml_document import as_yaml
    from supervisor.patching.json_merge import json_merge_patch

    if target.resource == registry.SECRETS.plural and not show_values:
        raise Failure(f"{object_name(target)}: its values are shown to nobody who does not ask: give --show-secrets")
    before = read_object(client, target, values=show_values)
    clean = as_yaml(before)
    text, why = clean, ""
    while True:
        edited = _in_editor(_HEADER + why + text)
        body = "".join(line for line in edited.splitlines(keepends=True) if not line.startswith("#"))
        if why and body == text:
            raise Failure(f"Edit cancelled, no valid changes were saved.\n{_kept(edited)}", prefix="error: ")
        if not body.strip() or body == clean:
            click.echo("Edit cancelled, no changes made.")
            return
        text = body
        try:
            after = parse_document(object_name(target), body.encode())
            if not isinstance(after, dict):
                raise Failure("not an object")
            found = json_merge_patch(before, after)
            if not found:
                click.echo("Edit cancelled, no changes made.")
                return
            result = patch_object(client, target, found, report, patch_type="merge")
        except (Failure, RequestFailed) as error:
            why = _as_comment(target, str(error))
            click.echo(f"error: {object_name(target)} is invalid", err=True)
            continue
        report.show([report.line(object_name(target), "edited")], result.objects)
        return


def _in_editor(text: str) -> str:
    """Raises Failure when the editor cannot be started or ends with an error."""
    command = next((os.environ[name] for name in _EDITORS if os.environ.get(name)), _DEFAULT_EDITOR)
    with tempfile.TemporaryDirectory(prefix="rootlet-edit-") as directory:
        file = Path(directory) / "object.yaml"
        file.write_text(text)
        try:
            done = subprocess.run([*shlex.split(command), str(file)], check=False)
        except (OSError, ValueError) as error:
            raise Failure(f"unable to launch the editor {command!r}: {_why(error)}", prefix="error: ") from None
        if done.returncode:
            raise Failure(f"there was a problem with the editor {command!r}", prefix="error: ")
        return file.read_text()


def _as_comment(target: Target, why: str) -> str:
    lines = [f"# {object_name(target)} was not valid:", *(f"# * {line}" for line in why.splitlines()), "#"]
    return "".join(f"{line}\n" for line in lines)


def _kept(text: str) -> str:
    """Words on where the edit lies."""
    handle, path = tempfile.mkstemp(prefix="rootlet-edit-", suffix=".yaml")
    with os.fdopen(handle, "w") as file:
        file.write(text)
    return f'A copy of your changes has been stored to "{path}"'


def _why(error: OSError | ValueError) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)
