"""The pods of a load test. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
import orjson

from ipc.host.text.json_types import JsonObject
from supervisor.sources.applied import MAX_APPLIED_OBJECTS

NAMESPACE: Final = "load-test"
"""Namespace of the pods: what happens to them pushes out nobody else's events (`supervisor.record.recorder`)."""
RUN_LABEL: Final = "rootlet.dev/load-test"
MAX_PODS: Final = MAX_APPLIED_OBJECTS
MAX_CONTAINERS: Final = 16
BATCH_PODS: Final = 25
"""How many pods one apply carries, as documents of one manifest."""
GRACE_PERIOD_S: Final = 5

_PROGRAM: Final = "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"
"""Idles and ends at once when told to, so that deletion measures us and not the workload."""


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters of the load."""

    run: str
    """Names this run: in the pods' names and in their label."""
    pods: int
    containers: int
    image: str
    namespace: str

    def names(self) -> list[str]:
        """Every pod's name."""
        return [f"load-{self.run}-{index}" for index in range(self.pods)]

    @property
    def selector(self) -> str:
        """Label selector of these pods and no others."""
        return f"{RUN_LABEL}={self.run}"


class Batch(msgspec.Struct, frozen=True):
    """One manifest and the pods in it."""

    names: tuple[str, ...]
    body: bytes


def batches(load: Load, batch_pods: int = BATCH_PODS) -> Iterator[Batch]:
    """Every pod once, as manifests of several documents."""
    names = load.names()
    for start in range(0, len(names), batch_pods):
        part = tuple(names[start : start + batch_pods])
        yield Batch(part, b"".join(b"---\n%b\n" % orjson.dumps(_pod(load, name)) for name in part))


def command(pod: str) -> list[str]:
    """Command of a container; it names its pod, so that the process can be told from others by its command line."""
    return ["/bin/sh", "-c", _PROGRAM, pod]


def _pod(load: Load, name: str) -> JsonObject:
    containers = [
        {
            "name": f"c{index}",
            "image": load.image,
            "imagePullPolicy": "IfNotPresent",
            "command": command(name),
        }
        for index in range(load.containers)
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": load.namespace, "labels": {RUN_LABEL: load.run}},
        "spec": {"terminationGracePeriodSeconds": GRACE_PERIOD_S, "containers": containers},
    }
