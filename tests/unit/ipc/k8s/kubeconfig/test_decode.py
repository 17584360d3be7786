"""Kubeconfigs as clientcmd reads them, and in which words wrong ones are refused."""

from __future__ import annotations

import base64
from typing import Any, Final

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ipc.k8s.kubeconfig.decode import MAX_BYTES, decode_kubeconfig, decode_published_cluster
from ipc.k8s.kubeconfig.encode import encode_bootstrap_kubeconfig, encode_node_kubeconfig
from ipc.k8s.kubeconfig.types import ClusterAccess, Credentials, ExecPlugin, KubeconfigError

SECRET: Final = "hunter2"
SERVER: Final = "https://192.0.2.1:6443"


def kubeconfig(cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, **changed: Any) -> bytes:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {},
        "clusters": [{"name": "c", "cluster": {"server": SERVER, **(cluster or {})}}],
        "users": [{"name": "other", "user": {"token": "no"}}, {"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "a"}}],
        "current-context": "x",
    }
    return yaml.safe_dump(content | changed).encode()


OTHER_CONTEXT: Final[dict[str, Any]] = {"current-context": "y"}


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("user", "credentials"),
    [
        ({}, Credentials()),
        ({"token": f"{SECRET}\n"}, Credentials(token=SECRET)),
        ({"tokenFile": "token"}, Credentials(token_file="/etc/k/token")),
        ({"token": "t", "tokenFile": "/token"}, Credentials(token="t", token_file="/token")),
        ({"username": "u", "password": "p"}, Credentials(username="u", password="p")),
        (
            {"client-certificate": "c.pem", "client-key": "/k.pem"},
            Credentials(certificate_file="/etc/k/c.pem", key_file="/k.pem"),
        ),
        (
            {"client-certificate": "no", "client-certificate-data": b64("C"), "client-key-data": b64("K")},
            Credentials(certificate_pem=b"C", key_pem=b"K"),
        ),
        (
            {
                "exec": {
                    "apiVersion": "client.authentication.k8s.io/v1",
                    "command": "./plugin",
                    "args": ["a"],
                    "env": [{"name": "A", "value": "b"}],
                    "interactiveMode": "Never",
                    "provideClusterInfo": True,
                }
            },
            Credentials(
                exec_plugin=ExecPlugin(
                    api_version="client.authentication.k8s.io/v1",
                    command="/etc/k/./plugin",
                    args=("a",),
                    env=(("A", "b"),),
                    provide_cluster_info=True,
                )
            ),
        ),
    ],
)
def test_credentials(user: dict[str, Any], credentials: Credentials) -> None:
    assert decode_kubeconfig(kubeconfig(user=user), "/etc/k").credentials == credentials


def test_a_cluster() -> None:
    cluster = {"server": f"{SERVER}/", "certificate-authority": "ca.crt", "tls-server-name": "kubernetes"}
    assert decode_kubeconfig(kubeconfig(cluster), "/etc/k") == ClusterAccess(
        server=SERVER, ca_file="/etc/k/ca.crt", tls_server_name="kubernetes"
    )
    inline = decode_kubeconfig(kubeconfig({"certificate-authority": "ca", "certificate-authority-data": b64("CA")}))
    assert (inline.ca_file, inline.ca_pem) == ("", b"CA")


def test_json_is_taken_too() -> None:
    text = b'{"clusters":[{"name":"c","cluster":{"server":"https://a"}}],"contexts":[{"name":"x","context":{"cluster":"c"}}],"current-context":"x"}'
    assert decode_kubeconfig(text) == ClusterAccess(server="https://a")


def test_a_server_without_tls_is_shown_no_credentials() -> None:
    access = decode_kubeconfig(kubeconfig({"server": "http://a:8080"}, {"token": SECRET}))
    assert access.credentials.is_empty


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{}", "current-context: must name a context"),
        (b"", "kubeconfig: Expected"),
        (b"a: [\n", "is no YAML in line 2"),
        (b"\x00", "is no YAML"),
        (b"[]", "kubeconfig: Expected"),
        (b"x" * (MAX_BYTES + 1), "is larger than"),
        (kubeconfig(**OTHER_CONTEXT), "contexts: has no 'y'"),
        (kubeconfig(contexts=[{"name": "x", "context": {"cluster": "d"}}]), "clusters: has no 'd'"),
        (kubeconfig(clusters=[{"name": "c", "cluster": {"server": "https://a"}}] * 2), "clusters: has 'c' twice"),
        (kubeconfig(clusters=[{"name": "c", "cluster": 1}]), r"clusters\[c\].cluster: must be an object"),
        (kubeconfig({"server": "192.0.2.1"}), "must be an https:// or http:// URL"),
        (kubeconfig({"server": "https://a:99999999"}), "must be an https:// or http:// URL"),
        (kubeconfig({"server": "https://a b"}), "must be an https:// or http:// URL"),
        (kubeconfig({"server": "https://u:p@a"}), "may have a host, a port and a path only"),
        (kubeconfig({"proxy-url": "http://p"}), "proxy-url: is not supported"),
        (kubeconfig({"certificate-authority-data": "!"}), "certificate-authority-data: is no base64"),
        (kubeconfig({"certificate-authority": "c", "insecure-skip-tls-verify": True}), "exclude each other"),
        (kubeconfig(user={"client-certificate": "a"}), "client-certificate and client-key are needed both"),
        (kubeconfig(user={"token": SECRET, "username": "u"}), "more than one authentication method"),
        (kubeconfig(user={"token": f"{SECRET}\r\nX: y"}), "a character that no header can have"),
        (kubeconfig(user={"token": 7}), "Expected"),
        (kubeconfig(user={"auth-provider": {"name": "gcp"}}), "auth-provider: is not supported"),
        (kubeconfig(user={"as": "admin"}), "as: is not supported"),
        (kubeconfig(user={"exec": {"command": "a", "apiVersion": "v9"}}), "apiVersion: must be one of"),
        (kubeconfig(user={"exec": {"apiVersion": "client.authentication.k8s.io/v1"}}), "command: must be set"),
    ],
)
def test_wrong_ones(data: bytes, words: str) -> None:
    with pytest.raises(KubeconfigError, match=words) as raised:
        decode_kubeconfig(data)
    assert SECRET not in str(raised.value)


@given(st.binary(max_size=200) | st.text("{}[]:-&*\n ab'\"", max_size=200).map(str.encode))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    with pytest.raises(KubeconfigError):
        decode_kubeconfig(data)
    with pytest.raises(KubeconfigError):
        decode_published_cluster(data)


def test_values_do_not_show_their_secrets() -> None:
    access = decode_kubeconfig(kubeconfig(user={"token": SECRET}))
    assert SECRET not in f"{access!r} {access}"


def test_a_bootstrap_kubeconfig_as_kubeadm_writes_it() -> None:
    text = encode_bootstrap_kubeconfig(SERVER, b"CA", "abcdef.0123456789abcdef")
    assert yaml.safe_load(text) == {
        "apiVersion": "v1",
        "clusters": [{"cluster": {"certificate-authority-data": b64("CA"), "server": SERVER}, "name": "kubernetes"}],
        "contexts": [
            {
                "context": {"cluster": "kubernetes", "user": "tls-bootstrap-token-user"},
                "name": "tls-bootstrap-token-user@kubernetes",
            }
        ],
        "current-context": "tls-bootstrap-token-user@kubernetes",
        "kind": "Config",
        "users": [{"name": "tls-bootstrap-token-user", "user": {"token": "abcdef.0123456789abcdef"}}],
    }


@pytest.mark.parametrize(
    "access",
    [
        ClusterAccess(server=SERVER, ca_pem=b"CA", tls_server_name="k"),
        ClusterAccess(server=SERVER, ca_file="/ca"),
        ClusterAccess(server=SERVER, insecure_skip_tls_verify=True),
    ],
)
def test_a_nodes_kubeconfig_has_its_bootstraps_cluster_and_its_certificate(access: ClusterAccess) -> None:
    found = decode_kubeconfig(encode_node_kubeconfig(access, "/pki/current.pem"))
    assert found.credentials == Credentials(certificate_file="/pki/current.pem", key_file="/pki/current.pem")
    assert (found.server, found.ca_file, found.ca_pem) == (access.server, access.ca_file, access.ca_pem)
    assert found.tls_server_name == access.tls_server_name
    assert found.insecure_skip_tls_verify == access.insecure_skip_tls_verify
