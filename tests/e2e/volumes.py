"""Pods with volumes for the end-to-end tests, and what their containers say of them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from tests.e2e.agent import Agent, Json
from tests.e2e.manifests import container, pod

UNSHARE_DEADLINE_S = 60
HERE = {
    "required": {
        "nodeSelectorTerms": [
            {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]}
        ]
    }
}
"""Node affinity of a local volume: this host."""


def empty_dir(name: str, **source: Any) -> Json:
    return {"name": name, "emptyDir": source}


def ephemeral(name: str) -> Json:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    return {"name": name, "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}


def host_path(name: str, path: Path, type: str = "") -> Json:
    return {"name": name, "hostPath": {"path": str(path), "type": type}}


def claim(name: str, of: str, **source: Any) -> Json:
    return {"name": name, "persistentVolumeClaim": {"claimName": of, **source}}


def volume(name: str, size: str = "1Gi", modes: tuple[str, ...] = ("ReadWriteOnce",), **spec: Any) -> Json:
    """PersistentVolume."""
    of = {"capacity": {"storage": size}, "accessModes": list(modes), **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": of}


def wish(name: str, size: str = "1Gi", modes: tuple[str, ...] = ("ReadWriteOnce",), **spec: Any) -> Json:
    """PersistentVolumeClaim."""
    of = {"accessModes": list(modes), "resources": {"requests": {"storage": size}}, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": of}


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
