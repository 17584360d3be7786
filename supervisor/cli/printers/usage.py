"""Tables of what pods, containers, the node and the agent's processes use (kubectl pkg/metricsutil).

A figure that is not known is ``<unknown>``, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from ipc.host.text.json_types import Json
from ipc.k8s.resources.times import NONE, UNKNOWN

POD_HEADER: Final = ("NAME", "CPU(cores)", "MEMORY(bytes)")
CONTAINER_HEADER: Final = ("POD", *POD_HEADER)
NODE_HEADER: Final = ("NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)")
WORKER_HEADER: Final = ("NAME", "PID", "CPU(cores)", "MEMORY(bytes)")
STATS_HEADER: Final = (
    *("NAME", "CPU(cores)", "WORKING SET", "RSS", "SWAP", "RECEIVED", "SENT", "PROCESSES", "DISK", "SOURCE"),
)
MIB: Final = 1024 * 1024
NANO: Final = 1_000_000_000
_NOT_SORTED: Final = -1.0
_RULE: Final = "________"


def why_missing(names: Collection[str], pods: Iterable[Json]) -> str:
    """Why pods of these names have no statistics. ``pods``: those that there are, as v1 Pods."""
    running = {pod["metadata"]["name"] for pod in pods if pod["status"].get("phase") == "Running"}
    words = "it was not measured yet" if running >= set(names) else "it is not there or runs nothing"
    return f"no statistics of pod {', '.join(sorted(names))}: {words}"


def cores(nano_cores: float | None) -> str:
    """Thousandths of a CPU, rounded up as Quantity.MilliValue does: ``12m``."""
    return UNKNOWN if nano_cores is None else f"{math.ceil(nano_cores / 1_000_000)}m"


def mebibytes(size: int | None) -> str:
    """``12Mi``, rounded down as kubectl does."""
    return UNKNOWN if size is None else f"{size // MIB}Mi"


def share(part: float | None, whole: float | None) -> str:
    """Whole per cent."""
    return UNKNOWN if part is None or not whole else f"{int(100 * part / whole)}%"


def rate_of(sample: Json) -> int | None:
    """CPU use of a container, pod or node, in 10^-9 CPUs."""
    found: int | None = sample.get("cpu", {}).get("nano_cores")
    return found


def working_set_of(sample: Json) -> int | None:
    """Memory that is needed, in bytes."""
    found: int | None = sample.get("memory", {}).get("working_set")
    return found


SORTS: Final[Mapping[str, Callable[[Json], float | None]]] = {"cpu": rate_of, "memory": working_set_of}
"""Columns that a table can be sorted by, the largest first."""


def in_order(samples: Iterable[Json], sort_by: str) -> list[Json]:
    """Order samples by a column of `SORTS`, what is not known last; else by namespace and name."""
    by_name = sorted(samples, key=lambda sample: (sample.get("namespace", ""), sample["name"]))
    if not sort_by:
        return by_name
    figure = SORTS[sort_by]

    def descending(sample: Json) -> float:
        found = figure(sample)
        return _NOT_SORTED if found is None else float(found)

    return sorted(by_name, key=descending, reverse=True)


def pod_row(pod: Json) -> tuple[str, ...]:
    """One row under POD_HEADER; of a container too."""
    return pod["name"], cores(rate_of(pod)), mebibytes(working_set_of(pod))


def sum_rows(pods: Sequence[Json], columns: int) -> Sequence[tuple[str, ...]]:
    """Two rows below those of pods or their containers: a line, and the sum of what is known."""
    rate, size = sum(rate_of(pod) or 0 for pod in pods), sum(working_set_of(pod) or 0 for pod in pods)
    empty = ("",) * (columns - 2)
    return (*empty, _RULE, _RULE), (*empty, cores(rate), mebibytes(size))


def node_row(node: Json, cpus: int | None) -> tuple[str, ...]:
    """One row under NODE_HEADER. ``cpus``: how many the node has."""
    rate, memory = rate_of(node), working_set_of(node)
    whole = node.get("memory", {}).get("limit")
    return (
        node["name"],
        cores(rate),
        share(rate, cpus * NANO if cpus else None),
        mebibytes(memory),
        share(memory, whole),
    )


def worker_rows(before: Sequence[Json], after: Sequence[Json], seconds: float) -> list[Json]:
    """The agent's processes with their CPU use between two readings, as samples that can be sorted."""
    known = {(worker["name"], worker["pid"]): worker for worker in before}
    rows: list[Json] = []
    for worker in after:
        resources = worker.get("resources") or {}
        earlier = (known.get((worker["name"], worker["pid"])) or {}).get("resources") or {}
        used, had = resources.get("cpuSeconds"), earlier.get("cpuSeconds")
        rate = (used - had) / seconds * NANO if used is not None and had is not None and seconds > 0 else None
        memory = resources.get("pssBytes") or resources.get("rssBytes")
        row = {"name": worker["name"], "pid": worker["pid"]}
        rows.append({**row, "cpu": {"nano_cores": rate}, "memory": {"working_set": memory}})
    return rows


def worker_row(worker: Json) -> tuple[str, ...]:
    """One row under WORKER_HEADER, of `worker_rows`."""
    return worker["name"], str(worker["pid"] or NONE), cores(rate_of(worker)), mebibytes(working_set_of(worker))


def stats_row(pod: Json) -> tuple[str, ...]:
    """One row under STATS_HEADER. The source is that of its containers' CPU time and memory."""
    memory, disk = pod.get("memory", {}), pod.get("ephemeral_storage", {})
    network = pod.get("network", {})
    counted = [one for one in network.get("interfaces", ()) if one["name"] == network.get("default")]
    interface = counted[0] if counted else {}
    parts = [part["source"] for c in pod.get("containers", ()) for part in (c.get("cpu"), c.get("memory")) if part]
    return (
        pod["name"],
        cores(rate_of(pod)),
        mebibytes(working_set_of(pod)),
        mebibytes(memory.get("rss")),
        mebibytes(memory.get("swap")),
        *(sized(interface.get(name)) for name in ("rx_bytes", "tx_bytes")),
        str(pod.get("processes", {}).get("count", UNKNOWN)),
        sized(disk.get("used")),
        ",".join(dict.fromkeys(parts)) or UNKNOWN,
    )


def sized(size: int | None) -> str:
    """``3.2Mi``: of sizes that may be small."""
    if size is None:
        return UNKNOWN
    for unit, letter in ((1024**3, "Gi"), (MIB, "Mi"), (1024, "Ki")):
        if size >= unit:
            return f"{size / unit:.1f}{letter}"
    return str(size)
