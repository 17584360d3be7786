"""`rootlet leave`: this host is no node of its cluster any more."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from supervisor.cli.changing.draining import end_all_pods
from supervisor.cli.configuration import config_file, config_option, config_words, load_configuration, own_socket
from supervisor.cli.options import FOREVER_S, Failure, agent, agent_options, duration_s

if TYPE_CHECKING:
    from ipc.k8s.kubeconfig.types import ClusterAccess
    from ipc.link.wire.cluster_settings import ClusterSettings
    from supervisor.client.http import AgentClient


@click.command()
@click.option("--timeout", callback=duration_s, default="0s", help="How long to wait for the pods' ends; 0s: for ever.")
@click.option("--force", is_flag=True, help="Go on where the agent or the cluster does not answer, or refuses.")
@click.option(
    "--kubeconfig", type=config_file, help="Of somebody who may delete nodes.  [default: the node's own identity]"
)
@config_option
@agent_options
@click.pass_context
def leave(ctx: click.Context, timeout: float, force: bool, kubeconfig: Path | None, config_path: Path | None) -> None:
    """Cordon this node in its cluster, end its pods in order, delete its Node, and remove its identity.

    A cluster need not let a node delete itself: then name the kubeconfig of an administrator. Pods of your own files
    run again after the section cluster is taken out of the configuration, and `rootlet uncordon`.
    """
    from supervisor.config.resolution.cluster_section import cluster_settings

    settings = load_configuration(config_path)
    cluster = cluster_settings(settings)
    if cluster is None:
        raise Failure("the configuration has no cluster to leave")
    name = settings.node_name
    socket = own_socket(ctx, settings)
    # Before anything is changed.
    with _step(force), agent(ctx, socket) as client:
        _check_name(client, name)
    with _step(force):
        access = _access(kubeconfig or Path(cluster.kubeconfig))
        _asked(access, "PATCH", f"/api/v1/nodes/{name}", b'{"spec":{"unschedulable":true}}')
    with _step(force), agent(ctx, socket) as client:
        _check_name(client, name)
        end_all_pods(client, timeout or FOREVER_S)
    with _step(force):
        access = _access(kubeconfig or Path(cluster.kubeconfig))
        if _asked(access, "DELETE", f"/api/v1/nodes/{name}"):
            click.echo(f"node/{name} deleted")
    for file in _identity_files(cluster):
        with _step(force):
            _remove(file)
    click.echo(f"take the section cluster out of {config_words(config_path)}, and restart the agent")


@contextlib.contextmanager
def _step(force: bool) -> Iterator[None]:
    """A step whose failure is told and no more, with ``force``."""
    try:
        yield
    except Failure as error:
        if not force:
            raise
        click.echo(f"{error}; going on", err=True)


def _check_name(client: AgentClient, name: str) -> None:
    """Raises Failure where the agent runs as another node: its configuration is older than the file, or is another."""
    if (found := client.get("/version")["nodeName"]) != name:
        raise Failure(
            f"the agent on {client.socket} runs as the node {found}, and the configuration says {name}: restart it, or "
            f"name its own file with --config"
        )


def _access(kubeconfig: Path) -> ClusterAccess:
    from ipc.k8s.kubeconfig.client_tls import read_file
    from ipc.k8s.kubeconfig.decode import decode_kubeconfig
    from ipc.k8s.kubeconfig.types import KubeconfigError

    try:
        return decode_kubeconfig(read_file(str(kubeconfig)), str(kubeconfig.parent))
    except (OSError, KubeconfigError) as error:
        words = error.strerror if isinstance(error, OSError) else str(error)
        raise Failure(f"{kubeconfig}: {words}") from None


def _asked(access: ClusterAccess, method: str, path: str, body: bytes | None = None) -> bool:
    """False when the Node is not there. Raises Failure."""
    from supervisor.client.cluster import ClusterUnreachable, ask

    try:
        answer = ask(access, method, path, body=body, content_type="application/merge-patch+json")
    except ClusterUnreachable as error:
        raise Failure(str(error)) from None
    if answer.status == 403:
        raise Failure(f"{answer.message}: name another --kubeconfig")
    if answer.status >= 400 and answer.status != 404:
        raise Failure(answer.message)
    return answer.status != 404


def _identity_files(cluster: ClusterSettings) -> tuple[Path, ...]:
    """Kubeconfigs of the node and certificates that the cluster has signed for it."""
    from ipc.k8s.kubeconfig.types import CLIENT_CERTIFICATE, SERVING_CERTIFICATE

    pki = Path(cluster.pki_dir)
    kubeconfigs = [Path(each) for each in (cluster.kubeconfig, cluster.bootstrap_kubeconfig) if each]
    return (*kubeconfigs, pki / CLIENT_CERTIFICATE, pki / SERVING_CERTIFICATE)


def _remove(file: Path) -> None:
    try:
        file.unlink()
    except FileNotFoundError:
        return
    except OSError as error:
        raise Failure(f"{file}: {error.strerror}") from None
    click.echo(f"removed {file}")
