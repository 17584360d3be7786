"""A node's identity against an API server: bootstrap with a token, rotation, a certificate for its server."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import stat
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest
from cryptography import x509

from ipc.host.clock import SystemClock
from ipc.k8s.kubeconfig.encode import encode_bootstrap_kubeconfig
from ipc.k8s.kubeconfig.types import CLIENT_CERTIFICATE, SERVING_CERTIFICATE
from ipc.link.eventloop.backoff import Backoff
from ipc.link.eventloop.tasks import BackgroundTasks
from ipc.link.wire.cluster_settings import ClusterSettings
from tests.support.api_server import eventually
from tests.support.servers.kube_api.server import KubeApiServer
from workers.certificates import identity as identity_module
from workers.certificates import manager
from workers.certificates.identity import NodeIdentity
from workers.certificates.signing_request import SERVING_SIGNER
from workers.certificates.validity import read_validity
from workers.kubeclient.client import ApiClient
from workers.kubeclient.rate_limit import RateLimit

pytestmark = pytest.mark.timeout(60)

TOKEN: Final = "abcdef.0123456789abcdef"
NODE: Final = "/api/v1/nodes/n1"
REQUESTS: Final = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
DEADLINE_S: Final = 30.0


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manager, "TRIES", Backoff(0.05, 32.0))
    monkeypatch.setattr(manager, "LOOK_PERIOD_S", 0.05)
    monkeypatch.setattr(identity_module, "RETRY_S", 0.05)


def settings(directory: Path, **changed: object) -> ClusterSettings:
    return ClusterSettings(
        **{  # type: ignore[arg-type]
            "kubeconfig": str(directory / "kubelet.conf"),
            "bootstrap_kubeconfig": str(directory / "bootstrap-kubelet.conf"),
            "pki_dir": str(directory / "pki"),
            **changed,
        }
    )


def node(config: ClusterSettings) -> NodeIdentity:
    return NodeIdentity(config, "n1", SystemClock(), user_agent="rootlet/test", limit=RateLimit(0, 0))


@contextlib.asynccontextmanager
async def cluster(directory: Path) -> AsyncIterator[KubeApiServer]:
    """An API server, and the bootstrap kubeconfig for it."""
    async with KubeApiServer() as server:
        server.tokens.add_bootstrap(TOKEN)
        write_bootstrap(server, directory)
        yield server


def write_bootstrap(server: KubeApiServer, directory: Path) -> None:
    text = encode_bootstrap_kubeconfig(server.url, server.authority.pem, TOKEN)
    (directory / "bootstrap-kubelet.conf").write_bytes(text)


async def who(client: ApiClient, server: KubeApiServer) -> str:
    """As whom the server takes the client."""
    with contextlib.suppress(Exception):
        await client.request("GET", NODE)
    return server.requests[-1].user


def has_ended(file: Path) -> bool:
    return read_validity(file.read_bytes()).is_over(SystemClock().now().wall)


def serial(file: Path) -> int:
    return x509.load_pem_x509_certificate(file.read_bytes()).serial_number


async def test_a_token_becomes_a_certificate_and_a_kubeconfig(tmp_path: Path) -> None:
    async with cluster(tmp_path) as server:
        client = await asyncio.wait_for(node(settings(tmp_path)).client(), DEADLINE_S)
        assert await who(client, server) == "system:node:n1"
        posted = next(asked for asked in server.requests if asked.verb == "POST")
        assert posted.user == "system:bootstrap:abcdef"
        assert posted.path == REQUESTS
        client.close()

        again = await asyncio.wait_for(node(settings(tmp_path)).client(), DEADLINE_S)
        assert await who(again, server) == "system:node:n1"
        assert sum(asked.verb == "POST" for asked in server.requests) == 1, "the second start has its identity"
        again.close()
    for file in (tmp_path / "pki" / CLIENT_CERTIFICATE, tmp_path / "kubelet.conf"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert TOKEN not in (tmp_path / "kubelet.conf").read_text()


async def test_a_request_waits_for_its_approval_and_a_denied_one_is_made_anew(tmp_path: Path) -> None:
    async with cluster(tmp_path) as server:
        server.signing.approves.clear()
        asking = asyncio.create_task(node(settings(tmp_path)).client())
        await server.asked(lambda it: it.verb == "GET" and it.path == REQUESTS)
        (first,) = server.store.all("certificatesigningrequests")
        server.signing.deny(first["metadata"]["name"])
        await server.asked(lambda it: it.verb == "POST" and it.path == REQUESTS, times=2)
        await server.asked(lambda it: it.verb == "GET" and it.path == REQUESTS, times=2)
        assert not asking.done()
        (second,) = (
            it
            for it in server.store.all("certificatesigningrequests")
            if it["metadata"]["name"] != first["metadata"]["name"]
        )
        server.signing.approve(second["metadata"]["name"])
        client = await asyncio.wait_for(asking, DEADLINE_S)
        assert await who(client, server) == "system:node:n1"
        client.close()


async def test_a_node_without_a_way_into_the_cluster_waits_for_one(tmp_path: Path) -> None:
    asking = asyncio.create_task(node(settings(tmp_path)).client())
    async with KubeApiServer() as server:
        server.tokens.add_bootstrap(TOKEN)
        await asyncio.sleep(0.2)  # nothing says that it has found no way
        assert not asking.done()
        write_bootstrap(server, tmp_path)
        client = await asyncio.wait_for(asking, DEADLINE_S)
        assert await who(client, server) == "system:node:n1"
        client.close()


async def test_a_certificate_is_rotated_before_it_ends_and_shown_from_then_on(tmp_path: Path) -> None:
    file = tmp_path / "pki" / CLIENT_CERTIFICATE
    async with cluster(tmp_path) as server:
        server.signing.lifetime = timedelta(seconds=330)  # of which 300 are over: it is due at once
        identity = node(settings(tmp_path))
        client = await asyncio.wait_for(identity.client(), DEADLINE_S)
        first = serial(file)
        server.signing.lifetime = timedelta(days=1)
        tasks = BackgroundTasks()
        tasks.spawn(identity.run(client, tuple), name="identity")
        await eventually(lambda: serial(file) != first, "another certificate")
        posted = [asked for asked in server.requests if asked.verb == "POST"]
        assert [asked.user for asked in posted] == ["system:bootstrap:abcdef", "system:node:n1"]
        await asyncio.sleep(1.1)  # files are looked at once a second
        assert await who(client, server) == "system:node:n1"
        await tasks.close()
        client.close()


async def test_a_certificate_that_has_ended_is_asked_for_with_the_token(tmp_path: Path) -> None:
    async with cluster(tmp_path) as server:
        server.signing.lifetime = timedelta(seconds=1)
        (await asyncio.wait_for(node(settings(tmp_path)).client(), DEADLINE_S)).close()
        await eventually(lambda: has_ended(tmp_path / "pki" / CLIENT_CERTIFICATE), "its end")
        server.signing.lifetime = timedelta(days=1)
        client = await asyncio.wait_for(node(settings(tmp_path)).client(), DEADLINE_S)
        assert await who(client, server) == "system:node:n1"
        client.close()
        posted = [asked for asked in server.requests if asked.verb == "POST"]
        assert [asked.user for asked in posted] == ["system:bootstrap:abcdef"] * 2


async def test_nothing_is_rotated_where_that_is_said(tmp_path: Path) -> None:
    async with cluster(tmp_path) as server:
        server.signing.lifetime = timedelta(seconds=1)
        config = settings(tmp_path, rotate_certificates=False)
        identity = node(config)
        client = await asyncio.wait_for(identity.client(), DEADLINE_S)
        tasks = BackgroundTasks()
        tasks.spawn(identity.run(client, tuple), name="identity")
        await eventually(lambda: has_ended(tmp_path / "pki" / CLIENT_CERTIFICATE), "its end")
        await asyncio.sleep(0.2)  # time to ask, which nothing says that it lets pass
        assert sum(asked.verb == "POST" for asked in server.requests) == 1
        await tasks.close()
        client.close()


async def test_the_servers_certificate_follows_the_nodes_addresses(tmp_path: Path) -> None:
    file = tmp_path / "pki" / SERVING_CERTIFICATE
    names = [("n1", "192.0.2.2")]
    async with cluster(tmp_path) as server:
        server.signing.approves.add(SERVING_SIGNER)
        identity = node(settings(tmp_path, server_tls_bootstrap=True))
        client = await asyncio.wait_for(identity.client(), DEADLINE_S)
        tasks = BackgroundTasks()
        tasks.spawn(identity.run(client, lambda: names[0]), name="identity")
        await eventually(file.exists, "a certificate")
        assert alternative_names(file) == ["n1", "192.0.2.2"]
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(file)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        names[0] = ("n1", "2001:db8::2")
        await eventually(lambda: alternative_names(file) == ["n1", "2001:db8::2"], "one for the new address")
        await tasks.close()
        client.close()


def alternative_names(file: Path) -> list[str]:
    certificate = x509.load_pem_x509_certificate(file.read_bytes())
    found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return [str(each.value) for each in found]
