"""`rootlet join`: the way into a cluster, found as kubeadm finds it (kubeadm discovery/token)."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from ipc.host.text.json_types import Json
from supervisor.cli.configuration import config_option, config_words, load_configuration
from supervisor.cli.options import Failure, duration_s

if TYPE_CHECKING:
    from ipc.k8s.kubeconfig.types import ClusterAccess
    from supervisor.client.bootstrap_token import BootstrapToken
    from supervisor.config.settings import Settings

CA_FILE: Final = "ca.crt"
"""In ``stateDir`` and its directory of certificates, unless the configuration names another. kubeadm's names."""
RETRY_S: Final = 2.0
"""Between two questions to a cluster that does not answer or has not signed, in seconds: nothing tells when it will."""
_SETTINGS: Final = """\
cluster:
  bootstrapKubeconfig: {kubeconfig}
  nodeIP: {node_ip}
server:
  port: 10250
  authentication:
    x509:
      clientCAFile: {ca_file}
    webhook:
      enabled: true
  authorization:
    mode: Webhook
"""


@click.command()
@click.argument("server", metavar="HOST:PORT")
@click.option("--token", default="", help="Bootstrap token, of `kubeadm token create`.")
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the token: other users of this host see a command's arguments.",
)
@click.option(
    "--discovery-token-ca-cert-hash",
    "pins",
    multiple=True,
    metavar="sha256:HASH",
    help="Hash of the public key of the cluster's authority. May be given more than once.",
)
@click.option(
    "--discovery-token-unsafe-skip-ca-verification",
    "unpinned",
    is_flag=True,
    help="Trust whoever knows the token, without a hash.",
)
@click.option("--timeout", callback=duration_s, default="5m", help="How long to wait for the cluster.")
@config_option
def join(
    server: str,
    token: str,
    token_file: Path | None,
    pins: tuple[str, ...],
    unpinned: bool,
    timeout: float,
    config_path: Path | None,
) -> None:
    """Make this host ready to be a node of a cluster: write a kubeconfig with the bootstrap token.

    The command that `kubeadm token create --print-join-command` prints can be used as it is, with rootlet in place of
    kubeadm. The agent asks for its certificate when it is started with the settings that are printed here.
    """
    given = _token(token, token_file)
    checked = _pins(pins, unpinned)
    settings = load_configuration(config_path)
    access = _until(timeout, lambda: _discovered(server, given, checked))
    _check_name(access, given, settings.node_name)
    kubeconfig, ca_file = _write(access, given, settings)
    click.echo(f"this host may join the cluster {access.server}")
    click.echo(f"put this into {config_words(config_path)}, and start or restart the agent:\n")
    text = _SETTINGS.format(kubeconfig=kubeconfig, ca_file=ca_file, node_ip=_own_address(access))
    click.echo(text, nl=False)


def _own_address(access: ClusterAccess) -> str:
    """Address of this host towards the cluster. Nothing is sent. Raises Failure."""
    from urllib.parse import urlsplit

    url = urlsplit(access.server)
    try:
        (family, kind, _, _, address), *_ = socket.getaddrinfo(url.hostname, url.port or 443, type=socket.SOCK_DGRAM)
        with socket.socket(family, kind) as asking:
            asking.connect(address)
            return str(asking.getsockname()[0])
    except OSError as error:
        raise Failure(f"{access.server}: {error.strerror or error}") from None


def _token(token: str, file: Path | None) -> BootstrapToken:
    from supervisor.client.bootstrap_token import parse_token

    if bool(token) == (file is not None):
        raise click.UsageError("one of --token and --token-file is needed")
    try:
        return parse_token(token or (file or Path()).read_text().strip())
    except (ValueError, OSError) as error:
        raise click.UsageError(str(error)) from None


def _pins(pins: tuple[str, ...], unpinned: bool) -> tuple[str, ...]:
    from supervisor.client.authority_pin import PinError, parse_pin

    if bool(pins) == unpinned:
        raise click.UsageError(
            "one of --discovery-token-ca-cert-hash and --discovery-token-unsafe-skip-ca-verification is needed"
        )
    try:
        return tuple(parse_pin(pin) for pin in pins)
    except PinError as error:
        raise click.UsageError(f"--discovery-token-ca-cert-hash: {error}") from None


def _until(timeout_s: float, find: Callable[[], ClusterAccess]) -> ClusterAccess:
    """Ask again while the cluster does not answer or has not signed yet. Raises Failure."""
    from ipc.host.clock import monotonic
    from supervisor.client.cluster import ClusterUnreachable
    from supervisor.client.discovery import DiscoveryError

    ends_at = monotonic() + timeout_s
    while True:
        try:
            return find()
        except (ClusterUnreachable, DiscoveryError) as error:
            if monotonic() + RETRY_S >= ends_at:
                raise Failure(f"couldn't validate the identity of the API Server: {error}") from None
        time.sleep(RETRY_S)


def _discovered(server: str, token: BootstrapToken, pins: tuple[str, ...]) -> ClusterAccess:
    """Server and authorities of the published kubeconfig: read without trust, believed by the token's signature and
    the pin, and read once more from a server that these authorities vouch for."""
    from ipc.k8s.kubeconfig.decode import decode_published_cluster
    from ipc.k8s.kubeconfig.types import ClusterAccess, KubeconfigError
    from supervisor.client.authority_pin import PinError, check_pinned
    from supervisor.client.discovery import DiscoveryError

    url = f"https://{server}"
    first = _published(ClusterAccess(server=url, insecure_skip_tls_verify=True), token)
    try:
        access = decode_published_cluster(first)
        if pins:
            check_pinned(access.ca_pem, pins)
    except (KubeconfigError, PinError) as error:
        raise Failure(f"the cluster's published kubeconfig: {error}") from None
    if not access.ca_pem or not access.is_tls:
        raise Failure("the cluster's published kubeconfig has no certificate authority")
    if _published(ClusterAccess(server=url, ca_pem=access.ca_pem), token) != first:
        raise DiscoveryError("the second kubeconfig from the cluster-info ConfigMap is different from the first")
    return access


def _published(access: ClusterAccess, token: BootstrapToken) -> bytes:
    from supervisor.client.cluster import ask
    from supervisor.client.discovery import CLUSTER_INFO_PATH, DiscoveryError, signed_kubeconfig

    answer = ask(access, "GET", CLUSTER_INFO_PATH)
    if answer.status != 200:
        raise DiscoveryError(f"failed to request the cluster-info ConfigMap: {answer.message}")
    return signed_kubeconfig(answer.body, token)


def _check_name(access: ClusterAccess, token: BootstrapToken, name: str) -> None:
    """Two nodes of one name would fight for one object (kubeadm cmd/phases/join/kubelet.go). Tokens that may not look
    are not asked for more. Raises Failure."""
    import msgspec

    from ipc.k8s.kubeconfig.types import Credentials
    from supervisor.client.cluster import ClusterUnreachable, ask

    user = msgspec.structs.replace(access, credentials=Credentials(token=token.text))
    try:
        answer = ask(user, "GET", f"/api/v1/nodes/{name}")
    except ClusterUnreachable as error:
        raise Failure(str(error)) from None
    if answer.status == 401:
        raise Failure(f"the cluster does not take the token: {answer.message}")
    if answer.status == 200 and _is_ready(msgspec.json.decode(answer.body)):
        raise Failure(
            f'a Node with name "{name}" and status "Ready" already exists in the cluster. You must delete the existing'
            " Node or change the name of this new joining Node (nodeName)"
        )


def _is_ready(node: Json) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _write(access: ClusterAccess, token: BootstrapToken, settings: Settings) -> tuple[Path, Path]:
    """Kubeconfig and authorities, readable for nobody else. Raises Failure."""
    from ipc.host.atomic_file import write_atomically
    from ipc.host.private_directories import make_private
    from ipc.k8s.kubeconfig.encode import encode_bootstrap_kubeconfig
    from supervisor.config.resolution.node_files import BOOTSTRAP_KUBECONFIG, PKI_DIR

    stated = settings.cluster.bootstrap_kubeconfig
    kubeconfig = Path(stated) if stated else settings.state_dir / BOOTSTRAP_KUBECONFIG
    ca_file = settings.state_dir / PKI_DIR / CA_FILE
    text = encode_bootstrap_kubeconfig(access.server, access.ca_pem, token.text)
    try:
        for file, data in ((ca_file, access.ca_pem), (kubeconfig, text)):
            make_private(file.parent)
            write_atomically(file, data)
    except OSError as error:
        raise Failure(f"{error.filename}: {error.strerror}") from None
    return kubeconfig, ca_file
