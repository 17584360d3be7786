"""One way into a cluster, as a kubeconfig states it: server, authorities and credentials. Values."""

from __future__ import annotations

from typing import Final

import msgspec

CLIENT_CERTIFICATE: Final = "kubelet-client-current.pem"
SERVING_CERTIFICATE: Final = "kubelet-server-signed.pem"
"""Certificates that a cluster has signed for its node, each with its key, in the node's directory of certificates. The
first is upstream's name."""


class KubeconfigError(Exception):
    """A kubeconfig that cannot be used; its text names the field and repeats no credential."""


class ExecPlugin(msgspec.Struct, frozen=True):
    """A program that gives credentials (clientcmd v1 ExecConfig)."""

    api_version: str
    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    """Variables beside the agent's own."""
    install_hint: str = ""
    provide_cluster_info: bool = False


class Credentials(msgspec.Struct, frozen=True):
    """How the client shows who it is. Of a file and inline data the data count, as upstream; of a token and a token's
    file the file does, as it is read again."""

    certificate_file: str = ""
    certificate_pem: bytes = b""
    key_file: str = ""
    key_pem: bytes = b""
    token: str = ""
    token_file: str = ""
    username: str = ""
    password: str = ""
    exec_plugin: ExecPlugin | None = None

    def __repr__(self) -> str:
        """Without the credentials: a traceback or a log may show it."""
        return "Credentials(…)"

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show: the server takes the client for anonymous."""
        return self == Credentials()


class ClusterAccess(msgspec.Struct, frozen=True):
    """The cluster and the user of a kubeconfig's context."""

    server: str
    """URL without a slash at its end: ``https://host:port`` or with a path."""
    ca_file: str = ""
    ca_pem: bytes = b""
    tls_server_name: str = ""
    """Name that the server's certificate must have; empty: the URL's host."""
    insecure_skip_tls_verify: bool = False
    credentials: Credentials = Credentials()

    @property
    def is_tls(self) -> bool:
        """Whether the server is asked over TLS."""
        return self.server.startswith("https://")
