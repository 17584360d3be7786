"""Bootstrap tokens, signatures, pins and answers of plugins."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from ipc.k8s.kubeconfig.exec_credential import PluginCredentials, PluginError, decode_credentials, exec_info
from ipc.k8s.kubeconfig.types import ClusterAccess, ExecPlugin
from supervisor.client.authority_pin import PinError, check_pinned, parse_pin
from supervisor.client.bootstrap_token import BootstrapToken, detached_signature, is_signed, parse_token
from supervisor.client.discovery import DiscoveryError, signed_kubeconfig
from tests.support.certificates import Authority

TOKEN = parse_token("abcdef.0123456789abcdef")


def test_a_token() -> None:
    assert (TOKEN.id, TOKEN.secret, TOKEN.text) == ("abcdef", "0123456789abcdef", "abcdef.0123456789abcdef")
    assert TOKEN.secret not in repr(TOKEN)


@pytest.mark.parametrize("text", ["", "abcdef", "ABCDEF.0123456789abcdef", "abcdef.0123456789abcde", "a" * 9999])
def test_what_is_no_token_is_not_repeated(text: str) -> None:
    with pytest.raises(ValueError, match="not of the form") as raised:
        parse_token(text)
    assert not text or text not in str(raised.value)


def test_a_signature_is_the_one_that_a_cluster_makes() -> None:
    """cluster-bootstrap token/jws/jws_test.go, TestComputeDetachedSig."""
    sung = b"Hello from the other side. I must have called a thousand times."
    upstreams = "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9..VShe2taLd-YTrmWuRkcL_8QTNDHYxQIEBsAYYiIj1_8"
    assert detached_signature(sung, BootstrapToken("joshua", "my voice is my passcode")) == upstreams
    token = parse_token("joshua.0123456789abcdef")
    signature = detached_signature(b"content", token)
    assert is_signed(b"content", signature, token)
    assert not is_signed(b"Content", signature, token)
    assert not is_signed(b"content", signature, parse_token("joshua.0123456789abcdee"))
    assert not is_signed(b"content", signature.replace("..", ".x."), token)
    assert not is_signed(b"content", "", token)


def config_map(**data: str) -> bytes:
    return json.dumps({"data": data}).encode()


def test_a_published_kubeconfig_is_believed_by_its_signature() -> None:
    signature = detached_signature(b"text", TOKEN)
    found = signed_kubeconfig(config_map(kubeconfig="text", **{"jws-kubeconfig-abcdef": signature}), TOKEN)
    assert found == b"text"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "no ConfigMap"),
        (b"{}", "no kubeconfig"),
        (config_map(kubeconfig="text"), "is invalid for this cluster"),
        (config_map(kubeconfig="text", **{"jws-kubeconfig-abcdef": "x..y"}), "failed to verify JWS"),
    ],
)
def test_what_nobody_vouches_for(body: bytes, words: str) -> None:
    with pytest.raises(DiscoveryError, match=words) as raised:
        signed_kubeconfig(body, TOKEN)
    assert TOKEN.secret not in str(raised.value)


def test_pins(tmp_path: Path) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    first, second = Authority(tmp_path, "a").file.read_bytes(), Authority(tmp_path, "b").file.read_bytes()
    key = x509.load_pem_x509_certificate(second).public_key()
    pin = f"sha256:{hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()}"
    check_pinned(first + second, (parse_pin(f"sha256:{pin.removeprefix('sha256:').upper()}"),))
    with pytest.raises(PinError, match="are not pinned"):
        check_pinned(first, (pin,))
    with pytest.raises(PinError, match="no certificate"):
        check_pinned(b"no", (pin,))


@pytest.mark.parametrize("text", ["", "sha256:", "md5:" + "0" * 64, "sha256:" + "0" * 63, "sha256:" + "g" * 64])
def test_what_is_no_pin(text: str) -> None:
    with pytest.raises(PinError):
        parse_pin(text)


# --- exec plugins -------------------------------------------------------------------------------------------------

PLUGIN = ExecPlugin(api_version="client.authentication.k8s.io/v1", command="p", provide_cluster_info=True)


def printed(status: Any, **changed: Any) -> bytes:
    return json.dumps(
        {"kind": "ExecCredential", "apiVersion": PLUGIN.api_version, "status": status, **changed}
    ).encode()


def test_what_a_plugin_is_told() -> None:
    access = ClusterAccess(server="https://a", ca_pem=b"CA", tls_server_name="n")
    assert json.loads(exec_info(PLUGIN, access)) == {
        "kind": "ExecCredential",
        "apiVersion": "client.authentication.k8s.io/v1",
        "spec": {
            "interactive": False,
            "cluster": {"server": "https://a", "tls-server-name": "n", "certificate-authority-data": "Q0E="},
        },
    }


def test_credentials_and_their_end() -> None:
    given = decode_credentials(printed({"token": "t", "expirationTimestamp": "1970-01-01T00:01:00Z"}), PLUGIN)
    assert given == PluginCredentials(token="t", expires_at=60.0)
    assert (given.is_expired(59.0), given.is_expired(60.0)) == (False, True)
    pair = decode_credentials(printed({"clientCertificateData": "C", "clientKeyData": "K"}), PLUGIN)
    assert (pair.certificate_pem, pair.key_pem, pair.is_expired(1e12)) == (b"C", b"K", False)
    assert "token" not in repr(given)


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (b"", "no ExecCredential"),
        (b"[" * 9000, "no ExecCredential"),
        (printed({"token": "secret"}, kind="Other"), "configured to use API version"),
        (printed({"token": "secret"}, apiVersion="v9"), "plugin returned version v9"),
        (printed(None), "didn't return a status field"),
        (printed({}), "didn't return a token or cert/key pair"),
        (printed({"token": "secret", "clientKeyData": "K"}), "only certificate or key"),
        (printed({"token": "secret\nX: y"}), "no header can have"),
        (printed({"token": "secret", "expirationTimestamp": "soon"}), "expirationTimestamp"),
    ],
)
def test_a_plugin_that_prints_something_else(output: bytes, words: str) -> None:
    with pytest.raises(PluginError, match=words) as raised:
        decode_credentials(output, PLUGIN)
    assert "secret" not in str(raised.value)
