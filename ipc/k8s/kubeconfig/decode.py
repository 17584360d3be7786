"""From the text of a kubeconfig to one `ClusterAccess` (client-go tools/clientcmd: client_config.go, validation.go)."""

from __future__ import annotations

import base64
import binascii
import os
from typing import Final, TypeVar
from urllib.parse import urlsplit

import msgspec
import yaml

from ipc.k8s.kubeconfig.types import ClusterAccess, Credentials, ExecPlugin, KubeconfigError

MAX_BYTES: Final = 1 << 20
"""Largest file that is read. A kubeconfig with inline certificates has some 6 KiB."""
EXEC_API_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")

_REFUSED_OF_USER: Final = ("auth-provider", "as", "as-uid", "as-groups", "as-user-extra")
"""Ways to authenticate that the client does not know; upstream has dropped the first one's providers."""
_T = TypeVar("_T")


class _Struct(msgspec.Struct, frozen=True, rename="kebab"):
    """Names of the file: ``certificate-authority-data``."""


class _Cluster(_Struct, frozen=True):
    server: str = ""
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    tls_server_name: str | None = None
    insecure_skip_tls_verify: bool | None = None
    proxy_url: str | None = None


class _EnvVar(msgspec.Struct, frozen=True):
    name: str
    value: str = ""


class _Exec(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    command: str = ""
    args: list[str] | None = None
    env: list[_EnvVar] | None = None
    install_hint: str | None = None
    provide_cluster_info: bool | None = None


class _User(_Struct, frozen=True):
    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    token: str | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    username: str | None = None
    password: str | None = None
    exec: _Exec | None = None


class _Context(_Struct, frozen=True):
    cluster: str = ""
    user: str = ""


class _File(_Struct, frozen=True):
    clusters: list[dict[str, object]] | None = None
    users: list[dict[str, object]] | None = None
    contexts: list[dict[str, object]] | None = None
    current_context: str | None = None


def decode_kubeconfig(data: bytes, directory: str = "") -> ClusterAccess:
    """Access of the file's current context. Paths in it are relative to ``directory``, the file's own.

    Credentials are dropped for a server without TLS, as upstream drops them. Raises KubeconfigError.
    """
    file = _convert(_parsed(data), _File, "kubeconfig")
    if not file.current_context:
        raise KubeconfigError("current-context: must name a context")
    context = _named(file.contexts, "contexts", file.current_context, "context", _Context)
    cluster = _named(file.clusters, "clusters", context.cluster, "cluster", _Cluster)
    server = _server(cluster, context.cluster)
    user = f"users[{context.user}]"
    credentials = Credentials()
    if context.user:
        raw = _entry(file.users, "users", context.user, "user")
        refused = [name for name in _REFUSED_OF_USER if raw.get(name)]
        if refused:
            raise KubeconfigError(f"{user}.{refused[0]}: is not supported")
        credentials = _credentials(_convert(raw, _User, user), user, directory)
    at = f"clusters[{context.cluster}]"
    access = ClusterAccess(
        server=server,
        ca_file="" if cluster.certificate_authority_data else _path(cluster.certificate_authority, directory),
        ca_pem=_base64(cluster.certificate_authority_data, f"{at}.certificate-authority-data"),
        tls_server_name=cluster.tls_server_name or "",
        insecure_skip_tls_verify=bool(cluster.insecure_skip_tls_verify),
        credentials=credentials,
    )
    if access.insecure_skip_tls_verify and (access.ca_file or access.ca_pem):
        raise KubeconfigError(f"{at}: certificate-authority and insecure-skip-tls-verify exclude each other")
    return access if access.is_tls else msgspec.structs.replace(access, credentials=Credentials())


def decode_published_cluster(data: bytes) -> ClusterAccess:
    """The one cluster of a kubeconfig that is published for everybody, without users and contexts: server and
    authorities. Raises KubeconfigError."""
    file = _convert(_parsed(data), _File, "kubeconfig")
    if len(file.clusters or ()) != 1 or not isinstance(file.clusters, list):
        raise KubeconfigError("clusters: must be one")
    cluster = _convert(file.clusters[0].get("cluster") or {}, _Cluster, "clusters[0]")
    ca_pem = _base64(cluster.certificate_authority_data, "clusters[0].certificate-authority-data")
    return ClusterAccess(server=_server(cluster, "0"), ca_pem=ca_pem, tls_server_name=cluster.tls_server_name or "")


def _parsed(data: bytes) -> object:
    if len(data) > MAX_BYTES:
        raise KubeconfigError(f"is larger than {MAX_BYTES} bytes")
    try:
        return yaml.load(data, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark is not None else ""
        raise KubeconfigError(f"is no YAML{where}") from None


def _convert(value: object, to: type[_T], what: str) -> _T:
    try:
        return msgspec.convert(value, to)
    except msgspec.ValidationError as error:
        raise KubeconfigError(f"{what}: {error}") from None


def _entry(entries: list[dict[str, object]] | None, field: str, name: str, key: str) -> dict[str, object]:
    """The entry of that name. A name that stands there twice is refused, as upstream refuses it."""
    found = [entry for entry in entries or () if entry.get("name") == name]
    if len(found) > 1:
        raise KubeconfigError(f"{field}: has {name!r} twice")
    for entry in found:
        value = entry.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise KubeconfigError(f"{field}[{name}].{key}: must be an object")
        return value
    raise KubeconfigError(f"{field}: has no {name!r}")


def _named(entries: list[dict[str, object]] | None, field: str, name: str, key: str, to: type[_T]) -> _T:
    return _convert(_entry(entries, field, name, key), to, f"{field}[{name}]")


def _server(cluster: _Cluster, name: str) -> str:
    at = f"clusters[{name}].server"
    if cluster.proxy_url:
        raise KubeconfigError(f"clusters[{name}].proxy-url: is not supported")
    server = cluster.server.rstrip("/")
    try:
        url = urlsplit(server)
        valid = url.scheme in ("https", "http") and bool(url.hostname) and (url.port is None or url.port > 0)
    except ValueError:
        valid = False
    if not valid or not server.isascii() or not server.isprintable() or " " in server:
        raise KubeconfigError(f"{at}: must be an https:// or http:// URL with a host")
    if url.username is not None or url.query or url.fragment:
        raise KubeconfigError(f"{at}: may have a host, a port and a path only")
    return server


def _credentials(user: _User, at: str, directory: str) -> Credentials:
    certificate_pem = _base64(user.client_certificate_data, f"{at}.client-certificate-data")
    key_pem = _base64(user.client_key_data, f"{at}.client-key-data")
    credentials = Credentials(
        certificate_file="" if certificate_pem else _path(user.client_certificate, directory),
        certificate_pem=certificate_pem,
        key_file="" if key_pem else _path(user.client_key, directory),
        key_pem=key_pem,
        token=_one_line(user.token, f"{at}.token"),
        token_file=_path(user.token_file, directory),
        username=_one_line(user.username, f"{at}.username"),
        password=_one_line(user.password, f"{at}.password"),
        exec_plugin=None if user.exec is None else _exec_plugin(user.exec, f"{at}.exec", directory),
    )
    has_certificate = bool(credentials.certificate_file or credentials.certificate_pem)
    if has_certificate != bool(credentials.key_file or credentials.key_pem):
        raise KubeconfigError(f"{at}: client-certificate and client-key are needed both")
    ways = [bool(credentials.token or credentials.token_file), bool(credentials.username), user.exec is not None]
    if sum(ways) > 1:
        raise KubeconfigError(f"{at}: more than one authentication method")
    return credentials


def _exec_plugin(plugin: _Exec, at: str, directory: str) -> ExecPlugin:
    if not plugin.command:
        raise KubeconfigError(f"{at}.command: must be set")
    if plugin.api_version not in EXEC_API_VERSIONS:
        raise KubeconfigError(f"{at}.apiVersion: must be one of {', '.join(EXEC_API_VERSIONS)}")
    # A command with a slash is a path, and one without is looked for in PATH (clientcmd, resolveLocalPaths).
    command = _path(plugin.command, directory) if "/" in plugin.command else plugin.command
    texts = (command, *(plugin.args or ()), *(text for each in plugin.env or () for text in (each.name, each.value)))
    if any("\0" in text for text in texts) or any("=" in each.name or not each.name for each in plugin.env or ()):
        raise KubeconfigError(f"{at}: has a text that no program can be given")
    return ExecPlugin(
        api_version=plugin.api_version,
        command=command,
        args=tuple(plugin.args or ()),
        env=tuple((each.name, each.value) for each in plugin.env or ()),
        install_hint=plugin.install_hint or "",
        provide_cluster_info=bool(plugin.provide_cluster_info),
    )


def _path(path: str | None, directory: str) -> str:
    return os.path.join(directory, path) if path else ""


def _base64(text: str | None, at: str) -> bytes:
    try:
        return base64.b64decode(text or "", validate=True)
    except (binascii.Error, ValueError):
        raise KubeconfigError(f"{at}: is no base64") from None


def _one_line(text: str | None, at: str) -> str:
    """A value that stands in a header: a line break in it would begin another one."""
    text = (text or "").strip()
    if not text.isprintable() or not text.isascii():
        raise KubeconfigError(f"{at}: has a character that no header can have")
    return text
