"""Pods with volumes for the end-to-end tests, and what their containers say of them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from tests.e2e.agent import Agent, Json
from tests.e2e.manifests import container, pod

UNSHARE_DEADLINE_S = 60


def empty_dir(name: str, **source: Any) -> Json:
    return {"name": name, "emptyDir": source}


def ephemeral(name: str) -> Json:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    return {"name": name, "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}


def host_path(name: str, path: Path, type: str = "") -> Json:
    return {"name": name, "hostPath": {"path": str(path), "type": type}}


def claim(name: str, of: str, **source: Any) -> Json:
    return {"name": name, "persistentVolumeClaim": {"claimName": of, **source}}


def mount(name: str, path: str, **fields: Any) -> Json:
    return {"name": name, "mountPath": path, **fields}


def mounting(name: str, volumes: list[Json], *mounts: Json, **spec: Any) -> Json:
    """A pod of one container that stays."""
    return pod(name, container(volumeMounts=list(mounts)), volumes=volumes, **spec)


def pod_directory(agent: Agent, name: str) -> Path:
    return agent.state / "pods" / str(agent.pods()[name]["metadata"]["uid"])


def unshare(*command: str) -> str:
    """Run in Podman's user and mount namespace, as its root."""
    words = ("podman", "unshare", *command)
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=UNSHARE_DEADLINE_S).stdout
