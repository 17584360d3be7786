"""Manifests of the pods that the end-to-end tests run."""

from __future__ import annotations

from typing import Any, Final

from tests.support.podman_service import IMAGE

Json = dict[str, Any]

STAY: Final = "trap 'exit 0' TERM; while true; do sleep 3600 & wait $!; done"
"""Runs until it is asked to stop, then ends at once."""
IGNORE_TERM: Final = "trap '' TERM; while true; do sleep 1; done"
"""Has to be killed."""


def container(name: str = "main", script: str = STAY, **fields: Any) -> Json:
    """A container that runs a shell script."""
    return {"name": name, "image": IMAGE, "imagePullPolicy": "Never", "command": ["sh", "-c", script], **fields}


def pod(name: str, *containers: Json, labels: dict[str, str] | None = None, **spec: Any) -> Json:
    """A pod; without containers it has one that stays."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"terminationGracePeriodSeconds": 5, "containers": list(containers) or [container()], **spec},
    }


def config_map(name: str, **data: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def secret(name: str, **data: str) -> Json:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


def pods(prefix: str, count: int, *containers: Json) -> dict[str, Json]:
    """By name."""
    return {name: pod(name, *containers) for name in (f"{prefix}-{number:03}" for number in range(count))}
