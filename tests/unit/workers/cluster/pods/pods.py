"""Pods of a server, for the tests of this room."""

from __future__ import annotations

import json
from typing import Any

from workers.cluster.pods.known_pod import KnownPod, decode_known_pod


def known(version: int = 1, uid: str = "u1", status: dict[str, Any] | None = None, **metadata: Any) -> KnownPod:
    """A pod with one container."""
    value = {
        "metadata": {"name": "web", "namespace": "default", "uid": uid, "resourceVersion": str(version), **metadata},
        "spec": {"containers": [{"name": "main", "image": "busybox"}], "nodeName": "n1"},
        "status": {"phase": "Pending"} if status is None else status,
    }
    return decode_known_pod(json.dumps(value).encode())
