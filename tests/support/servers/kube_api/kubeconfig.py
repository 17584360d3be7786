"""Writes a kubeconfig as kubeadm does: cluster, user and context, everything inline."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from tests.support.servers.kube_api.authority import Authority, b64
from tests.support.servers.kube_api.requests import User

if TYPE_CHECKING:
    from tests.support.servers.kube_api.server import KubeApiServer


def write_kubeconfig(server: KubeApiServer, directory: Path, user: User, credential: str) -> Path:
    """The file's path; it is readable by its owner alone."""
    if credential == "token":
        secret = {"token": server.tokens.add(User(user.name, (*user.groups, "system:authenticated")))}
    elif credential != "certificate":
        secret = {"token": credential}
    else:
        pem = server.authority.issue(user)
        end = pem.index(b"-----BEGIN PRIVATE")
        secret = {"client-certificate-data": b64(pem[:end]), "client-key-data": b64(pem[end:])}
    return written_kubeconfig(directory, server.url, server.authority, user.name, secret)


def written_kubeconfig(directory: Path, url: str, authority: Authority, user: str, secret: Mapping[str, str]) -> Path:
    """The file's path; `secret` is what the user has."""
    cluster = {"server": url, "certificate-authority-data": b64(authority.pem)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "kubernetes", "cluster": cluster}],
        "users": [{"name": user, "user": dict(secret)}],
        "contexts": [{"name": "default", "context": {"cluster": "kubernetes", "user": user}}],
        "current-context": "default",
    }
    path = directory / "kubeconfig"
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config))
    return path
