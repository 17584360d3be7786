"""A credential provider that gives the login of a registry of tests."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from tests.support.registry import PASSWORD, USER

V1 = "credentialprovider.kubelet.k8s.io/v1"
ANSWER = "answer"
"""The file with what it has to say."""
CONFIG = "config.yaml"


def install_provider(
    directory: Path, registry: str, script: str, *, cache_key_type: str, images: str, **stated: object
) -> None:
    """The program in that directory, its answer, and the configuration that names it for ``images``."""
    answer = {
        "kind": "CredentialProviderResponse",
        "apiVersion": V1,
        "cacheKeyType": cache_key_type,
        "auth": {registry: {"username": USER, "password": PASSWORD}},
    }
    (directory / ANSWER).write_text(json.dumps(answer))
    program = directory / "shop-login"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    provider = {
        "name": program.name,
        "apiVersion": V1,
        "matchImages": [images],
        "defaultCacheDuration": "1h",
        **stated,
    }
    config = {"apiVersion": "kubelet.config.k8s.io/v1", "kind": "CredentialProviderConfig", "providers": [provider]}
    (directory / CONFIG).write_text(yaml.safe_dump(config))
