"""Conversation with an exec plugin: its orders, and the credentials that it prints (client-go plugin/pkg/client/auth/
exec, and pkg/apis/clientauthentication). Pure."""

from __future__ import annotations

import base64
from typing import Final

import msgspec

from ipc.host.clock import parse_rfc3339
from ipc.host.text.json_types import UNDECODABLE
from ipc.k8s.kubeconfig.types import ClusterAccess, ExecPlugin

KIND: Final = "ExecCredential"
VARIABLE: Final = "KUBERNETES_EXEC_INFO"
"""Environment variable in which the plugin finds its ExecCredential."""
MAX_OUTPUT_BYTES: Final = 1 << 20
"""Largest output of a plugin that is read."""


class PluginError(Exception):
    """A plugin that gave no credentials; its text repeats none of its output but its kind and version."""


class PluginCredentials(msgspec.Struct, frozen=True):
    """Credentials that a plugin gave."""

    token: str = ""
    certificate_pem: bytes = b""
    key_pem: bytes = b""
    expires_at: float | None = None
    """Epoch seconds; None: for as long as the server takes them."""

    def __repr__(self) -> str:
        """Without the credentials."""
        return "PluginCredentials(…)"

    def is_expired(self, now: float) -> bool:
        """Whether the plugin has to be asked again; ``now`` in epoch seconds."""
        return self.expires_at is not None and now >= self.expires_at


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    expiration_timestamp: str | None = None
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None


class _Printed(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


_DECODER: Final = msgspec.json.Decoder(_Printed)


def exec_info(plugin: ExecPlugin, access: ClusterAccess) -> str:
    """Value of `VARIABLE`: no terminal, and the cluster where the plugin wants to know it."""
    spec: dict[str, object] = {"interactive": False}
    if plugin.provide_cluster_info:
        cluster: dict[str, str | bool] = {"server": access.server}
        if access.tls_server_name:
            cluster["tls-server-name"] = access.tls_server_name
        if access.insecure_skip_tls_verify:
            cluster["insecure-skip-tls-verify"] = True
        if access.ca_pem:
            cluster["certificate-authority-data"] = base64.b64encode(access.ca_pem).decode()
        spec["cluster"] = cluster
    info = {"kind": KIND, "apiVersion": plugin.api_version, "spec": spec}
    return msgspec.json.encode(info).decode()


def decode_credentials(output: bytes, plugin: ExecPlugin) -> PluginCredentials:
    """Credentials of what the plugin has printed (exec.go, refreshCredsLocked). Raises PluginError."""
    try:
        printed = _DECODER.decode(output)
    except UNDECODABLE:
        raise PluginError("decoding stdout: is no ExecCredential") from None
    if printed.kind != KIND or printed.api_version != plugin.api_version:
        raise PluginError(
            f"exec plugin is configured to use API version {plugin.api_version}, plugin returned version"
            f" {printed.api_version[:64]}"
        )
    status = printed.status
    if status is None:
        raise PluginError("exec plugin didn't return a status field")
    token = status.token or ""
    if not (token or (status.client_certificate_data and status.client_key_data)):
        raise PluginError("exec plugin didn't return a token or cert/key pair")
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise PluginError("exec plugin returned only certificate or key, not both")
    if not token.isprintable() or not token.isascii():
        raise PluginError("exec plugin returned a token that no header can have")
    try:
        expires_at = parse_rfc3339(status.expiration_timestamp) if status.expiration_timestamp else None
    except ValueError:
        raise PluginError("exec plugin returned an expirationTimestamp that is none") from None
    return PluginCredentials(
        token=token,
        certificate_pem=(status.client_certificate_data or "").encode(),
        key_pem=(status.client_key_data or "").encode(),
        expires_at=expires_at,
    )
