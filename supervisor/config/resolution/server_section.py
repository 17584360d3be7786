"""The section ``server:`` of the configuration: its rules, and what the API server gets of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ipc.link.wire.server_settings import CIPHER_SUITES, Port, ServerSettings
from supervisor.config.resolution.cluster_section import configured_node_ips
from supervisor.config.resolution.node_files import PKI_DIR, node_kubeconfig
from supervisor.config.settings import ServerSection, Settings, SettingsError

SUBRESOURCES: Final = (
    "*",
    "checkpoint",
    "configz",
    "healthz",
    "log",
    "metrics",
    "pods",
    "proxy",
    "spec",
    "statusz",
    "stats",
)
"""Subresources of nodes that requests are authorized by, and a star for all of them."""
_NO_CLUSTER: Final = "Webhook asks a cluster, and this agent has none: use AlwaysAllow or Rules"
_NO_CLUSTER_FOR_TOKENS: Final = "asks a cluster, and this agent has none"
_NOBODY: Final = (
    "nobody could ask: set authentication.x509.clientCAFile, webhook.enabled, tokenFile or anonymous.enabled"
)


def check_server_section(settings: Settings, file: str) -> None:
    """Hold the section against its rules. Raises SettingsError."""
    for field, message in _problems(settings.server, settings.cluster.is_configured):
        raise SettingsError(file, f"server.{field}", message)


def _problems(server: ServerSection, has_cluster: bool) -> Iterator[tuple[str, str]]:
    """Find settings that contradict one another, though each is right for itself, and unknown names."""
    if bool(server.tls_cert_file) != bool(server.tls_private_key_file):
        yield "tlsCertFile", "a certificate and its key (tlsPrivateKeyFile) are set together, or neither"
    for suite in server.tls_cipher_suites:
        if suite not in CIPHER_SUITES:
            yield "tlsCipherSuites", f"{suite!r} is none of {', '.join(CIPHER_SUITES)}"
    authn, authz = server.authentication, server.authorization
    if authn.webhook.enabled and not has_cluster:
        yield "authentication.webhook.enabled", _NO_CLUSTER_FOR_TOKENS
    if authz.mode == "Webhook" and not has_cluster:
        yield "authorization.mode", _NO_CLUSTER
    if authz.rules and authz.mode != "Rules":
        yield "authorization.rules", "are for authorization.mode Rules only"
    for who, subresources in authz.rules.items():
        if unknown := [each for each in subresources if each not in SUBRESOURCES]:
            yield "authorization.rules", f"{who!r}: {unknown[0]!r} is none of {', '.join(SUBRESOURCES)}"
    ways = (authn.x509.client_ca_file, authn.webhook.enabled, authn.token_file, authn.anonymous.enabled)
    if server.port and not any(ways):
        yield "authentication", _NOBODY
    taken = [port for port in (server.port, server.read_only_port, server.healthz_port) if port]
    if len(taken) != len(set(taken)):
        yield "port", "each of port, readOnlyPort and healthzPort needs a number of its own"


def listening_addresses(server: ServerSection) -> dict[Port, tuple[str, int]]:
    """Address and number of each port that is on."""
    wanted = {
        Port.SECURE: (server.address, server.port),
        Port.READ_ONLY: (server.address, server.read_only_port),
        Port.HEALTHZ: (server.healthz_bind_address, server.healthz_port),
    }
    return {port: (address, number) for port, (address, number) in wanted.items() if number}


def server_settings(settings: Settings) -> ServerSettings:
    """The API server's part of resolved settings."""
    server = settings.server
    authn, authz = server.authentication, server.authorization
    return ServerSettings(
        ports=tuple(listening_addresses(server)),
        secure_port=server.port,
        addresses=_names(settings),
        pki_dir=str(settings.state_dir / PKI_DIR),
        cert_file=server.tls_cert_file,
        key_file=server.tls_private_key_file,
        tls_min_version=server.tls_min_version,
        tls_cipher_suites=server.tls_cipher_suites,
        client_ca_file=authn.x509.client_ca_file,
        token_file=authn.token_file,
        anonymous=authn.anonymous.enabled,
        rules=dict(authz.rules) if authz.mode == "Rules" else None,
        kubeconfig=node_kubeconfig(settings) if settings.cluster.is_configured else "",
        reviews_tokens=authn.webhook.enabled,
        reviews_access=authz.mode == "Webhook",
        debugging=server.enable_debugging_handlers,
        streaming_idle_timeout_s=float(server.streaming_connection_idle_timeout_s),
    )


def _names(settings: Settings) -> tuple[str, ...]:
    """Names for a certificate: the node's, the loopback's, the address unless it means all of them, and what nodeIP
    says."""
    address = settings.server.address
    own = () if re.fullmatch(r"[0:.]*", address) else (address,)
    return tuple(
        dict.fromkeys((settings.node_name, "localhost", "127.0.0.1", "::1", *own, *configured_node_ips(settings)))
    )
