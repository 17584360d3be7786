"""Families of what the processes have counted in shared memory: all rows together, or each process for itself."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from ipc.k8s.api.pod_containers import every_container
from ipc.k8s.kubecontainer.probe_results import probes_of
from ipc.link.messages.api_server import PodChanged
from ipc.link.metrics import kubelet
from ipc.link.metrics.layout import combinations
from ipc.link.metrics.model import Endpoint, Metric, MetricType
from ipc.link.metrics.table import LAYOUT, METRICS
from ipc.link.shm.probe_cells import ProbeCells
from workers.api_server.metrics.exposition import Family, Format, Sample, histogram, label_text

Rows = Mapping[int, Sequence[float]]
"""Cells by slot, as `MetricCells.read` has them."""
HIDDEN: Final = frozenset({"rootlet_ended_processes_cpu_seconds_total"})
"""Part of another metric's value."""


def counted_families(
    rows: Rows, endpoint: Endpoint, form: Format, worker_name: Callable[[int], str]
) -> Iterator[Family]:
    """Every counted metric of that path."""
    # Numbers as Python has them would be 3 MiB for a moment.
    every = zip(*rows.values(), strict=True) if rows else ((0.0,) for _ in range(LAYOUT.size))
    together = array("d", map(sum, every))
    for metric in METRICS:
        if metric.counted and metric.endpoint is endpoint and metric.name not in HIDDEN:
            yield Family(metric, list(_samples(metric, rows, together, form, worker_name)))


def _samples(
    metric: Metric, rows: Rows, together: Sequence[float], form: Format, worker_name: Callable[[int], str]
) -> Iterator[Sample]:
    if not metric.per_process:
        yield from _series(metric, together, (), form)
        return
    for slot, cells in rows.items():
        yield from _series(metric, cells, (worker_name(slot),), form)


def _series(metric: Metric, cells: Sequence[float], before: tuple[str, ...], form: Format) -> Iterator[Sample]:
    at, width, names = LAYOUT.offset(metric), metric.width, metric.every_label
    if not metric.always and not any(cells[at : at + metric.series * width]):
        return
    for values in combinations(metric.labels):
        own = cells[at : at + width]
        at += width
        if not metric.always and not any(own):
            continue
        labels = label_text(names, (*before, *values))
        if metric.type is MetricType.HISTOGRAM:
            yield from histogram(labels, metric.buckets, own[:-1], own[-1], form)
        else:
            yield "", labels, own[0], 0.0


def probe_families(pods: Iterable[PodChanged], cells: ProbeCells, form: Format) -> list[Family]:
    """Probes of the pods that there are (pkg/kubelet/prober/prober_manager.go)."""
    rows = cells.rows_by_pod()
    totals: list[Sample] = []
    durations: list[Sample] = []
    for changed in pods:
        metadata = changed.pod.metadata
        for found in every_container(changed.pod.spec):
            for kind in probes_of(found.container):
                counts = cells.of(rows, metadata.uid, found.container.name, kind)
                if counts is None:
                    continue
                place = (found.container.name, metadata.namespace, metadata.name)
                type = kubelet.PROBE_TYPES[kind]
                for result, count in counts.results.items():
                    if count:
                        values = (*place, metadata.uid, type, result)
                        totals.append(("", label_text(kubelet.PROBES.label_names, values), count, 0.0))
                labels = label_text(kubelet.PROBE_DURATION.label_names, (*place, type))
                bounds = kubelet.PROBE_DURATION.buckets
                durations += histogram(labels, bounds, counts.buckets, counts.sum_s, form)
    return [Family(kubelet.PROBES, totals), Family(kubelet.PROBE_DURATION, durations)]
