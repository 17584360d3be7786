"""`rootlet create`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

import click
import msgspec

from ipc.host.text.json_types import Json
from supervisor.cli.changing.applying import apply_manifests
from supervisor.cli.changing.changes import (
    CLIENT,
    ChangeReport,
    dry_run_option,
    output_option,
    stated_namespace_option,
)
from supervisor.cli.manifests import Manifest, manifest_options, read_manifests, recursive_option, with_generated_names
from supervisor.cli.options import agent, agent_options

F = TypeVar("F", bound=Callable[..., object])
_ALIASES: Final[Mapping[str, str]] = {"cm": "configmap", "pc": "priorityclass"}


class _Group(click.Group):
    """Short names of kinds are names of commands, too."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, _ALIASES.get(cmd_name, cmd_name))


def _object_options(command: F) -> F:
    for option in (stated_namespace_option, dry_run_option, output_option, agent_options):
        command = option(command)
    return command


def _data_options(command: F) -> F:
    for option in (
        click.option("--from-literal", "literals", multiple=True, metavar="KEY=VALUE", help="A key and its value."),
        click.option(
            "--from-file", "files", multiple=True, metavar="[KEY=]FILE", help="A file, or all of a directory."
        ),
        click.option("--from-env-file", "env_files", multiple=True, metavar="FILE", help="Lines KEY=VALUE."),
    ):
        command = option(command)
    return command


@click.group(cls=_Group, invoke_without_command=True)
@manifest_options
@recursive_option
@_object_options
@click.pass_context
def create(
    ctx: click.Context, files: tuple[str, ...], recursive: bool, namespace: str, dry_run: str, output: str
) -> None:
    """Create objects that are not there yet: those of a manifest, or one whose content is said here.

    \b
    rootlet create -f web.yaml
    rootlet create configmap app --from-literal=mode=fast --from-file=app.conf
    rootlet create secret generic login --from-env-file=login.env --dry-run=client -o yaml
    """
    if ctx.invoked_subcommand is not None:
        return
    if not files:
        raise click.UsageError("must specify one of -f, -k and a kind")
    report = ChangeReport(output=output, dry_run=dry_run)
    with agent(ctx) as client:
        manifests = map(with_generated_names, read_manifests(files, recursive=recursive))
        apply_manifests(client, manifests, report, verb="create", namespace=namespace)


@create.command()
@click.argument("name")
@_data_options
@_object_options
@click.pass_context
def configmap(
    ctx: click.Context,
    /,
    name: str,
    literals: tuple[str, ...],
    files: tuple[str, ...],
    env_files: tuple[str, ...],
    **options: str,
) -> None:
    """Create a ConfigMap of files, literal values or lines KEY=VALUE."""
    from supervisor.cli.changing.data import config_map, read_data

    _create(ctx, config_map(name, read_data(literals, files, env_files)), options)


@create.group()
def secret() -> None:
    """Create a Secret."""


@secret.command()
@click.argument("name")
@click.option("--type", "secret_type", default="Opaque", show_default=True, help="Meaning of its keys.")
@_data_options
@_object_options
@click.pass_context
def generic(
    ctx: click.Context,
    /,
    name: str,
    secret_type: str,
    literals: tuple[str, ...],
    files: tuple[str, ...],
    env_files: tuple[str, ...],
    **options: str,
) -> None:
    """Create a Secret of files, literal values or lines KEY=VALUE."""
    from supervisor.cli.changing.data import read_data, secret_of

    _create(ctx, secret_of(name, secret_type, read_data(literals, files, env_files)), options)


@secret.command("docker-registry")
@click.argument("name")
@click.option("--docker-server", "server", default="https://index.docker.io/v1/", show_default=True, help="Registry.")
@click.option("--docker-username", "user", required=True, help="User of the registry.")
@click.option("--docker-password", "password", required=True, help="Password of that user.")
@click.option("--docker-email", "email", default="", help="Mail address of that user.")
@_object_options
@click.pass_context
def docker_registry(
    ctx: click.Context, /, name: str, server: str, user: str, password: str, email: str, **options: str
) -> None:
    """Create a Secret with which images of a private registry are pulled."""
    from supervisor.cli.changing.data import registry_secret

    _create(ctx, registry_secret(name, server, user, password, email), options)


@secret.command()
@click.argument("name")
@click.option("--cert", required=True, metavar="FILE", help="The certificate, PEM.")
@click.option("--key", required=True, metavar="FILE", help="Its private key, PEM.")
@_object_options
@click.pass_context
def tls(ctx: click.Context, /, name: str, cert: str, key: str, **options: str) -> None:
    """Create a Secret with a certificate and its private key."""
    from supervisor.cli.changing.data import read_data, secret_of

    _create(
        ctx, secret_of(name, "kubernetes.io/tls", read_data((), (f"tls.crt={cert}", f"tls.key={key}"), ())), options
    )


@create.command()
@click.argument("name")
@click.option("--value", type=int, default=0, show_default=True, help="Priority of its pods.")
@click.option("--description", default="", help="When to use it.")
@click.option("--global-default", is_flag=True, help="The class of pods that name none.")
@click.option(
    "--preemption-policy",
    type=click.Choice(["PreemptLowerPriority", "Never"]),
    default="PreemptLowerPriority",
    show_default=True,
    help="Whether others give way to its pods.",
)
@_object_options
@click.pass_context
def priorityclass(
    ctx: click.Context,
    /,
    name: str,
    value: int,
    description: str,
    global_default: bool,
    preemption_policy: str,
    **options: str,
) -> None:
    """Create a PriorityClass."""
    stated = {"value": value, "globalDefault": global_default, "preemptionPolicy": preemption_policy}
    found = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, **stated}
    _create(ctx, {**found, "description": description} if description else found, options)


def _create(ctx: click.Context, found: Json, options: Mapping[str, str]) -> None:
    report = ChangeReport(output=options["output"], dry_run=options["dry_run"])
    if options["namespace"]:
        found = {**found, "metadata": {**found["metadata"], "namespace": options["namespace"]}}
    if report.dry_run == CLIENT:
        report.show([report.line(f"{found['kind'].lower()}/{found['metadata']['name']}", "created")], [found])
        return
    manifest = Manifest("-", msgspec.json.encode(found))
    with agent(ctx) as client:
        apply_manifests(client, [manifest], report, verb="create", namespace=options["namespace"])
