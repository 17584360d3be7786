"""A metrics-server, as far as a node notices it: requests for `/metrics/resource`, the parser, the last two batches and
the rules by which it leaves containers and pods out of `kubectl top` (kubernetes-sigs/metrics-server 0.9, pkg/scraper
and pkg/storage). Nothing here is more patient than that."""

from __future__ import annotations

import gzip
import math
import re
import ssl
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from time import time
from typing import Any, Final

ADDRESS_TYPES: Final = ("InternalIP", "ExternalIP", "Hostname")
"""--kubelet-preferred-address-types of its manifest."""
RESOLUTION_S: Final = 15.0
"""--metric-resolution of its manifest: how often it asks."""
FRESH_S: Final = 10.0
"""Age from which on a container's first point counts from its start (freshContainerMinMetricsResolution)."""
TIMEOUT_S: Final = 10.0
"""Timeout of a request (--kubelet-request-timeout)."""
_SERIES: Final = re.compile(r"^(?P<name>[a-zA-Z_:]+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)(?: (?P<time>-?\d+))?$")
_FIELDS: Final = {
    "container_cpu_usage_seconds_total": "cpu_ns",
    "container_memory_working_set_bytes": "memory",
    "container_start_time_seconds": "started_at",
}


@dataclass(frozen=True)
class Point:
    """MetricsPoint: a container or a node at one moment."""

    started_at: float = 0.0
    at: float = 0.0
    cpu_ns: int = 0
    memory: int = 0


@dataclass(frozen=True)
class Usage:
    """One line of `kubectl top`: cores, bytes, and the seconds over which the cores were measured."""

    cores: float
    memory: int
    window_s: float


Pods = Mapping[tuple[str, str], Mapping[str, Point]]
"""By namespace and name, then by container."""


@dataclass
class Batch:
    """One scrape."""

    node: Point | None = None
    pods: dict[tuple[str, str], dict[str, Point]] = field(default_factory=dict)


def endpoint(node: Mapping[str, Any]) -> str:
    """URL of a Node's resource metrics (--kubelet-use-node-status-port). Raises LookupError for one without an address
    or port."""
    found = {each["type"]: each["address"] for each in reversed(node["status"]["addresses"])}
    address = next(found[each] for each in ADDRESS_TYPES if each in found)
    port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
    path = node["metadata"].get("annotations", {}).get("metrics.k8s.io/resource-metrics-path", "/metrics/resource")
    return f"https://{f'[{address}]' if ':' in address else address}:{port}{path}"


def read(url: str, token: str, authority: str) -> str:
    """The text that a client with that token gets; ``authority``: PEM of the one that has signed for the node
    (--kubelet-certificate-authority). Raises HTTPError for any code but 200, URLError for a server of another one."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}", "Accept-Encoding": "gzip"})
    context = ssl.create_default_context(cadata=authority)
    with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=context) as answer:
        body: bytes = answer.read()
        return (gzip.decompress(body) if answer.headers["Content-Encoding"] == "gzip" else body).decode()


def decode(text: str, asked_at: float) -> Batch:
    """decodeBatch. A node without CPU, memory or a time is left out, and so is a pod of which one container has used no
    CPU or no memory. Raises ValueError for a line that is none."""
    node, pods = Point(), dict[tuple[str, str], dict[str, Point]]()
    for name, labels, value, at in _series(text, asked_at):
        if name == "node_cpu_usage_seconds_total":
            node = replace(node, cpu_ns=int(value * 1e9), at=at)
        elif name == "node_memory_working_set_bytes":
            node = replace(node, memory=int(value), at=at)
        elif name in _FIELDS:
            where = (_label(labels, "namespace"), _label(labels, "pod"))
            containers = pods.setdefault(where, {})
            container = _label(labels, "container")
            point = containers.get(container, Point())
            containers[container] = _with(point, _FIELDS[name], value, at)
    return Batch(
        node if node.at and node.cpu_ns and node.memory else None,
        {where: found for where, found in pods.items() if all(each.cpu_ns and each.memory for each in found.values())},
    )


def _with(point: Point, name: str, value: float, at: float) -> Point:
    match name:
        case "cpu_ns":
            return replace(point, cpu_ns=int(value * 1e9), at=at)
        case "memory":
            return replace(point, memory=int(value), at=at)
    return replace(point, started_at=value)


def _series(text: str, asked_at: float) -> Iterator[tuple[str, str, float, float]]:
    """Name, labels, value and time of each sample."""
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        found = _SERIES.match(line)
        if found is None:
            raise ValueError(f"failed parsing metrics: {line!r}")
        at = int(found["time"]) / 1000 if found["time"] else asked_at
        yield found["name"], found["labels"] or "", float(found["value"]), at


def _label(labels: str, name: str) -> str:
    """parseContainerLabels: the text from the first mention of that name up to the next quote."""
    before, mention, after = labels.partition(f'{name}="')
    return after.partition('"')[0] if mention else before


class MetricsServer:
    """The last point of each container and node, and the one before (pkg/storage)."""

    def __init__(self, read: Callable[[], str]) -> None:
        """``read``: the text of one scrape."""
        self._read = read
        self._last, self._prev = Batch(), Batch()

    def scrape(self) -> None:
        """Raises what reading and `decode` raise."""
        asked_at = time()
        self.store(decode(self._read(), asked_at))

    def store(self, batch: Batch) -> None:
        """storage.Store"""
        prev = Batch(_node_before(batch.node, self._last.node, self._prev.node))
        for where, containers in batch.pods.items():
            last, older = self._last.pods.get(where, {}), self._prev.pods.get(where, {})
            found = {
                name: before
                for name, point in containers.items()
                if (before := _container_before(point, last.get(name), older.get(name))) is not None
            }
            if found:
                prev.pods[where] = found
        self._last, self._prev = batch, prev

    def node(self) -> Usage | None:
        """`kubectl top node`; None while there is nothing to tell."""
        last, prev = self._last.node, self._prev.node
        return _usage(last, prev) if last is not None and prev is not None else None

    def pods(self) -> dict[str, dict[str, Usage]]:
        """`kubectl top pod --containers`: by the names of pod and container. A pod that lacks one is not told."""
        told = {}
        for (namespace, name), containers in self._last.pods.items():
            before = self._prev.pods.get((namespace, name), {})
            if containers.keys() <= before.keys():
                found = {each: _usage(point, before[each]) for each, point in containers.items()}
                told[name] = {each: usage for each, usage in found.items() if usage is not None}
        return told


def _node_before(new: Point | None, last: Point | None, prev: Point | None) -> Point | None:
    if new is None or last is None:
        return None
    if new.at > last.at:
        return last
    return prev if prev is not None and prev.at < new.at else None


def _container_before(new: Point, last: Point | None, prev: Point | None) -> Point | None:
    if FRESH_S <= new.at - new.started_at < RESOLUTION_S:
        return replace(new, at=new.started_at, cpu_ns=0)
    if last is None or new.started_at >= last.at:
        return None
    return _node_before(new, last, prev)


def _usage(last: Point, prev: Point) -> Usage | None:
    """resourceUsage. None for what it calls an error: a counter or a start that falls."""
    if last.started_at < prev.started_at or last.cpu_ns < prev.cpu_ns:
        return None
    window_s = last.at - prev.at
    cores = (last.cpu_ns - prev.cpu_ns) / window_s / 1e9
    assert math.isfinite(cores)
    return Usage(cores, last.memory, window_s)
