"""A real kube-apiserver with its etcd, where both are on PATH: children of the test, on free ports of the loopback."""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import sleep
from typing import Any, Final

from cryptography.hazmat.primitives import serialization

from ipc.host.clock import monotonic
from tests.support.servers.kube_api.authority import Authority, b64
from tests.support.servers.kube_api.kubeconfig import written_kubeconfig
from tests.support.servers.kube_api.requests import User
from tests.support.servers.local_servers import unused_port

PROGRAMS: Final = ("etcd", "kube-apiserver")
ADDRESS: Final = "127.0.0.1"
START_DEADLINE_S: Final = 90.0
ADMIN: Final = User("kubernetes-admin", ("system:masters",))


class RealApiServer:
    """The server, asked as its administrator."""

    def __init__(self, port: int, authority: Authority, directory: Path) -> None:
        self._port = port
        self._authority = authority
        self._context = ssl.create_default_context(cadata=authority.pem.decode())
        file = directory / "admin.pem"
        file.write_bytes(authority.issue(ADMIN))
        self._context.load_cert_chain(file)

    def ask(self, verb: str, path: str, body: Mapping[str, Any] | None = None) -> tuple[int, Any]:
        """Code and decoded answer. Raises OSError."""
        connection = http.client.HTTPSConnection(ADDRESS, self._port, timeout=30.0, context=self._context)
        with contextlib.closing(connection):
            text = None if body is None else json.dumps(body)
            connection.request(verb, path, text, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            content = answer.read()
        return answer.status, json.loads(content) if content.startswith(b"{") else content.decode()

    def kubeconfig(self, directory: Path, node: str) -> Path:
        """A file with a client certificate of a node."""
        pem = self._authority.issue(User(f"system:node:{node}", ("system:nodes",)))
        end = pem.index(b"-----BEGIN PRIVATE")
        secret = {"client-certificate-data": b64(pem[:end]), "client-key-data": b64(pem[end:])}
        return written_kubeconfig(directory, f"https://{ADDRESS}:{self._port}", self._authority, node, secret)


def missing_programs() -> list[str]:
    """Programs that are not on PATH."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


@contextlib.contextmanager
def real_api_server(directory: Path) -> Iterator[RealApiServer]:
    """A server of an empty cluster until the block ends; nothing of it is left."""
    authority, store, peer, port = Authority(), unused_port(), unused_port(), unused_port()
    with contextlib.ExitStack() as children:
        children.enter_context(_running(directory, "etcd", _etcd(directory, store, peer)))
        arguments = _server(directory, authority, store, port)
        program = children.enter_context(_running(directory, "kube-apiserver", arguments))
        server = RealApiServer(port, authority, directory)
        _until_ready(server, program, directory / "kube-apiserver.log")
        yield server


@contextlib.contextmanager
def _running(directory: Path, program: str, arguments: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    with (directory / f"{program}.log").open("wb") as log:
        child = subprocess.Popen([program, *arguments], cwd=directory, stdout=log, stderr=log)
        try:
            yield child
        finally:
            child.kill()
            child.wait()


def _etcd(directory: Path, port: int, peer: int) -> list[str]:
    url, peer_url = f"http://{ADDRESS}:{port}", f"http://{ADDRESS}:{peer}"
    return [
        f"--data-dir={directory / 'etcd'}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peer_url}",
        f"--initial-advertise-peer-urls={peer_url}",
        f"--initial-cluster=default={peer_url}",
        "--unsafe-no-fsync",
    ]


def _server(directory: Path, authority: Authority, store: int, port: int) -> list[str]:
    # The server reads the public half from the same file, which it does not find in a PKCS #8 key of this kind.
    certificate, ca, key = directory / "server.pem", directory / "ca.pem", directory / "accounts.pem"
    certificate.write_bytes(authority.issue(User("kube-apiserver"), addresses=[ADDRESS]))
    ca.write_bytes(authority.pem)
    key.write_bytes(
        authority.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
    return [
        f"--etcd-servers=http://{ADDRESS}:{store}",
        f"--bind-address={ADDRESS}",
        f"--secure-port={port}",
        f"--tls-cert-file={certificate}",
        f"--tls-private-key-file={certificate}",
        f"--client-ca-file={ca}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--disable-admission-plugins=ServiceAccount",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
    ]


def _until_ready(server: RealApiServer, program: subprocess.Popen[bytes], log: Path) -> None:
    """Raises AssertionError with the end of its log."""
    deadline = monotonic() + START_DEADLINE_S
    while monotonic() < deadline and program.poll() is None:
        with contextlib.suppress(OSError):
            if server.ask("GET", "/readyz")[0] == 200:
                return
        sleep(0.2)
    raise AssertionError(f"kube-apiserver is not ready: {log.read_text()[-2000:]}")
