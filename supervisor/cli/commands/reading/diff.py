"""`rootlet diff`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import click

from ipc.host.text.json_types import Json
from supervisor.cli.changing.changes import read_object, stated_namespace_option
from supervisor.cli.manifests import Manifest, Target, manifest_options, objects_in, read_manifests, recursive_option
from supervisor.cli.messages import EXIT_TROUBLE, file_words
from supervisor.cli.options import DEFAULT_NAMESPACE, Failure, agent, agent_options
from supervisor.client.errors import RequestFailed
from supervisor.client.http import AgentClient

_NOT_FOUND: Final = 404
_PROGRAM_VARIABLE: Final = "KUBECTL_EXTERNAL_DIFF"
_ARGUMENT: Final = re.compile(r"[a-zA-Z0-9-=]+")
"""kubectl's own rule of what may be an argument of the program (pkg/cmd/diff)."""
_MASKS: Final = ("*** (before)", "*** (after)")


class _Comparison(click.Command):
    """A wrong use is told with this command, which has an exit code of its own for it, whoever finds it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise


@click.command(cls=_Comparison)
@manifest_options
@recursive_option
@stated_namespace_option
@agent_options
@click.pass_context
def diff(ctx: click.Context, files: tuple[str, ...], recursive: bool, namespace: str) -> int:
    """Show what `apply` would change. KUBECTL_EXTERNAL_DIFF is the program that compares; it is `diff -u -N` otherwise.

    Exits with 0 when nothing would change, with 1 when something would, and with more after an error. Values of Secrets
    are not shown.

    \b
    rootlet diff -f web.yaml
    KUBECTL_EXTERNAL_DIFF='meld' rootlet diff -f web.yaml
    """
    if not files:
        raise click.UsageError("must specify one of -f and -k")
    try:
        manifests = list(read_manifests(files, recursive=recursive))
        with agent(ctx) as client, tempfile.TemporaryDirectory(prefix="rootlet-diff-") as directory:
            live, merged = Path(directory) / "LIVE", Path(directory) / "MERGED"
            live.mkdir()
            merged.mkdir()
            for manifest in manifests:
                _write(client, manifest, namespace, live, merged)
            return _compare(live, merged)
    except Failure as error:
        raise Failure(str(error), EXIT_TROUBLE, prefix="") from None
    except OSError as error:
        raise Failure(file_words(error), EXIT_TROUBLE, prefix="error: ") from None


def _write(client: AgentClient, manifest: Manifest, namespace: str, live: Path, merged: Path) -> None:
    """Each object as it is and as it would be, in a file of one name. Raises Failure."""
    from supervisor.cli.printers.yaml_document import as_yaml

    result = client.apply(manifest.body, manifest.name, namespace=namespace, dry_run=True, show=True)
    if result.failed:
        raise Failure(result.message, prefix="error: ")
    targets = objects_in(manifest, namespace or DEFAULT_NAMESPACE)
    for target, after, line in zip(targets, result.objects, result.results, strict=True):
        name = ".".join(part for part in (after["apiVersion"].replace("/", "."), after["kind"]) if part)
        file = f"{name}.{target.namespace}.{target.name}"
        before = _present(client, target)
        changed = " unchanged" not in line
        if before is not None:
            (live / file).write_text(as_yaml(_masked(before, changed, _MASKS[0])))
        (merged / file).write_text(as_yaml(_masked(after, changed, _MASKS[1])))


def _present(client: AgentClient, target: Target) -> Json | None:
    try:
        return read_object(client, target)
    except RequestFailed as error:
        if error.code == _NOT_FOUND:
            return None
        raise


def _masked(found: Json, changed: bool, mask: str) -> Json:
    """A Secret is shown without values: whether they differ is said instead."""
    sizes = found.get("dataSizes")
    return found if sizes is None or not changed else {**found, "data": dict.fromkeys(sizes, mask)}


def _compare(live: Path, merged: Path) -> int:
    """The program's exit code. Raises Failure when it cannot be run."""
    stated = os.environ.get(_PROGRAM_VARIABLE, "").split(" ")
    program, arguments = stated[0], [word for word in stated[1:] if _ARGUMENT.fullmatch(word)]
    command = [program, *arguments] if program else ["diff", "-u", "-N"]
    sys.stdout.flush()
    try:
        done = subprocess.run([*command, str(live), str(merged)], capture_output=True, check=False)
    except OSError as error:
        raise Failure(f"failed to run {command[0]!r}: {error.strerror}", prefix="error: ") from None
    click.echo(done.stdout.decode(errors="replace"), nl=False)
    click.echo(done.stderr.decode(errors="replace"), nl=False, err=True)
    return done.returncode
