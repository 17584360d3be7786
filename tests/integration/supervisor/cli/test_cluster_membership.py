"""`rootlet join` and `rootlet leave` against an API server."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from ipc.k8s.kubeconfig.decode import decode_kubeconfig
from supervisor.cli.commands.operating import join as join_module
from supervisor.client.bootstrap_token import detached_signature, parse_token
from tests.support.api_server import Master, api_server, listen_at
from tests.support.cli import Outcome, run_here
from tests.support.servers.kube_api.authority import Authority
from tests.support.servers.kube_api.server import KubeApiServer

pytestmark = pytest.mark.timeout(60)

TOKEN: Final = "abcdef.0123456789abcdef"
SECRET: Final = TOKEN.partition(".")[2]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_module, "RETRY_S", 0.05)


def pin(authority: Authority) -> str:
    key = x509.load_pem_x509_certificate(authority.pem).public_key()
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return f"sha256:{hashlib.sha256(der).hexdigest()}"


def publish(server: KubeApiServer, *, signer: str = TOKEN, authority: Authority | None = None) -> None:
    """The ConfigMap that kubeadm puts there for everybody, and what signs it."""
    ca = base64.b64encode((authority or server.authority).pem).decode()
    text = yaml.safe_dump(
        {"clusters": [{"name": "", "cluster": {"server": server.url, "certificate-authority-data": ca}}]}
    )
    token = parse_token(signer)
    data = {"kubeconfig": text, f"jws-kubeconfig-{token.id}": detached_signature(text.encode(), token)}
    metadata = {"name": "cluster-info", "namespace": "kube-public"}
    server.store.create({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": data})
    server.access.allow("system:anonymous", "get", "configmaps")
    server.tokens.add_bootstrap(TOKEN)


def configuration(directory: Path, **cluster: Any) -> Path:
    file = directory / "rootlet.yaml"
    content = {
        "apiVersion": "rootlet.dev/v1alpha1",
        "kind": "RootletConfiguration",
        "nodeName": "n1",
        "stateDir": str(directory / "state"),
        "instanceName": "conf",
        "adminSocket": str(directory / "conf.sock"),
    }
    file.write_text(yaml.safe_dump(content | ({"cluster": cluster} if cluster else {})))
    return file


async def run(*arguments: str) -> Outcome:
    return await asyncio.to_thread(run_here, *arguments)


def join(server: KubeApiServer, directory: Path, *more: str) -> tuple[str, ...]:
    address = server.url.removeprefix("https://")
    return ("join", address, "--token", TOKEN, "--config", str(configuration(directory)), "--timeout", "1s", *more)


def pinned(server: KubeApiServer) -> tuple[str, str]:
    return "--discovery-token-ca-cert-hash", pin(server.authority)


async def test_a_host_gets_a_kubeconfig_with_the_token(tmp_path: Path) -> None:
    async with KubeApiServer() as server:
        publish(server)
        outcome = await run(*join(server, tmp_path, *pinned(server)))
        assert outcome.code == 0, outcome.err
        file = tmp_path / "state" / "bootstrap-kubelet.conf"
        access = decode_kubeconfig(file.read_bytes())
        assert (access.server, access.ca_pem, access.credentials.token) == (server.url, server.authority.pem, TOKEN)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (tmp_path / "state" / "pki" / "ca.crt").read_bytes() == server.authority.pem
    assert f"bootstrapKubeconfig: {file}\n  nodeIP: 127.0.0.1\n" in outcome.out
    assert SECRET not in outcome.out + outcome.err


async def test_a_token_of_a_file_and_an_authority_that_nobody_pins(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    async with KubeApiServer() as server:
        publish(server)
        outcome = await run(
            *("join", server.url.removeprefix("https://"), "--token-file", str(tmp_path / "token")),
            *("--config", str(configuration(tmp_path)), "--discovery-token-unsafe-skip-ca-verification"),
        )
    assert outcome.code == 0, outcome.err


async def refused(server: KubeApiServer, directory: Path, *more: str) -> str:
    outcome = await run(*join(server, directory, *more))
    assert outcome.code != 0
    assert not (directory / "state" / "bootstrap-kubelet.conf").exists()
    assert SECRET not in outcome.out + outcome.err
    return outcome.err


async def test_an_authority_that_is_not_pinned(tmp_path: Path) -> None:
    async with KubeApiServer() as server:
        publish(server)
        words = await refused(server, tmp_path, "--discovery-token-ca-cert-hash", "sha256:" + "0" * 64)
    assert "not pinned" in words


async def test_a_kubeconfig_that_somebody_else_has_signed(tmp_path: Path) -> None:
    async with KubeApiServer() as server:
        publish(server, signer="abcdef.fedcba9876543210")
        assert "failed to verify JWS signature" in await refused(server, tmp_path, *pinned(server))


async def test_a_token_that_has_signed_nothing(tmp_path: Path) -> None:
    async with KubeApiServer() as server:
        publish(server, signer="zzzzzz.0123456789abcdef")
        assert "token id 'abcdef' is invalid" in await refused(server, tmp_path, *pinned(server))


async def test_authorities_that_do_not_vouch_for_the_server(tmp_path: Path) -> None:
    other = Authority("other")
    async with KubeApiServer() as server:
        publish(server, authority=other)
        words = await refused(server, tmp_path, "--discovery-token-ca-cert-hash", pin(other))
    assert "failed to verify certificate" in words


async def test_a_node_of_the_same_name_that_is_ready(tmp_path: Path) -> None:
    async with KubeApiServer() as server:
        publish(server)
        server.access.allow("system:bootstrap:abcdef", "get", "nodes")
        status = {"conditions": [{"type": "Ready", "status": "True"}]}
        server.store.create({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"}, "status": status})
        assert 'a Node with name "n1" and status "Ready" already exists' in await refused(
            server, tmp_path, *pinned(server)
        )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--token", "no-token", "--discovery-token-unsafe-skip-ca-verification"), "not of the form"),
        (("--token", TOKEN), "ca-cert-hash"),
        (("--token", TOKEN, "--discovery-token-ca-cert-hash", "md5:00"), "invalid public key hash"),
        (("--discovery-token-unsafe-skip-ca-verification",), "one of --token and --token-file"),
    ],
)
def test_wrong_usage(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    outcome = run_here("join", "127.0.0.1:1", "--config", str(configuration(tmp_path)), *arguments)
    assert outcome.code != 0
    assert words in outcome.err
    assert SECRET not in outcome.err


# --- leave --------------------------------------------------------------------------------------------------------


def member(server: KubeApiServer, directory: Path) -> Path:
    """A node of the cluster; its configuration."""
    server.kubeconfig(directory)
    (directory / "state" / "pki").mkdir(parents=True)
    (directory / "state" / "pki" / "kubelet-client-current.pem").write_text("key")
    server.store.create({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"}, "spec": {}})
    return configuration(directory, kubeconfig=str(directory / "kubeconfig"))


@pytest.fixture
def default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Directory of the default instance's socket."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "rootlet").mkdir()
    return tmp_path / "rootlet"


@contextlib.asynccontextmanager
async def an_agent(directory: Path, name: str) -> AsyncIterator[Master]:
    """One that answers at that socket, as the node node-1."""
    with contextlib.closing(listen_at(directory / name)) as listening:
        async with api_server(directory, listening) as master:
            master.socket_path = directory / name
            master.ready()
            yield master


async def test_leaving_ends_all_that_the_node_was(tmp_path: Path) -> None:
    async with KubeApiServer() as server:
        config = member(server, tmp_path)
        admin = tmp_path / "admin"
        admin.mkdir()
        server.access.allow("admin", "*", "*")
        kubeconfig = server.kubeconfig(admin, user="admin")
        arguments = ("leave", "--config", str(config), "--kubeconfig", str(kubeconfig), "--force")
        outcome = await run(*arguments)
        assert outcome.code == 0, outcome.err
        assert server.store.all("nodes") == []
    assert "node/n1 deleted" in outcome.out
    assert not (tmp_path / "kubeconfig").exists()
    assert list((tmp_path / "state" / "pki").iterdir()) == []


@pytest.mark.parametrize("named", [(), ("--socket", "default.sock")], ids=["nothing", "the default's socket"])
async def test_an_agent_of_another_instance_is_left_alone(
    tmp_path: Path, default: Path, monkeypatch: pytest.MonkeyPatch, named: tuple[str, ...]
) -> None:
    """The default one answers, that of the file does not: nobody is asked to end pods, the cluster is not changed."""
    monkeypatch.chdir(tmp_path)
    async with KubeApiServer() as server, an_agent(default, "rootlet.sock") as stranger:
        (tmp_path / "default.sock").symlink_to(stranger.socket_path)
        config = member(server, tmp_path)
        outcome = await run(*named, "leave", "--config", str(config))
        (node,) = server.store.all("nodes")
        assert server.requests == []
    assert outcome.code == 1
    assert str(tmp_path / "conf.sock") in outcome.err
    assert "unschedulable" not in node["spec"]
    assert stranger.requests == []
    assert (tmp_path / "kubeconfig").exists()


async def test_an_agent_that_runs_as_another_node_is_not_drained(tmp_path: Path) -> None:
    """The file has another nodeName now than when the agent was started."""
    async with KubeApiServer() as server, an_agent(tmp_path, "conf.sock") as agent:
        config = member(server, tmp_path)
        outcome = await run("leave", "--config", str(config))
        (node,) = server.store.all("nodes")
    assert outcome.code == 1
    assert "runs as the node node-1, and the configuration says n1" in outcome.err
    assert "unschedulable" not in node["spec"]
    assert agent.requests == []


async def test_a_cluster_that_is_away_is_left_by_force_alone(tmp_path: Path) -> None:
    async with KubeApiServer() as server:
        config = member(server, tmp_path)
    arguments = ("leave", "--config", str(config))
    assert (await run(*arguments)).code != 0
    assert (tmp_path / "kubeconfig").exists()
    assert (await run(*arguments, "--force")).code == 0
    assert not (tmp_path / "kubeconfig").exists()


def test_there_is_nothing_to_leave(tmp_path: Path) -> None:
    outcome = run_here("leave", "--config", str(configuration(tmp_path)))
    assert outcome.code != 0
    assert "no cluster" in outcome.err
