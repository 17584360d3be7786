"""Families of a snapshot of statistics: resource metrics, cAdvisor's, and the sizes of logs and claims. Pure.

Every sample has the time of its measurement, as the kubelet's have. cAdvisor's ``id`` is a cgroup; here it is the
container's own id, below ``/``, because a rootless container need not have a cgroup.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from ipc.link.metrics.model import Metric
from workers.api_server.metrics.exposition import Family, Sample, label_text
from workers.statsapi import metrics as table
from workers.statsapi.metrics import Figure
from workers.statsapi.values import ContainerSample, FileSystem, PodSample, Snapshot

S = TypeVar("S")
Measured = tuple[S, str, float]
"""A sample, its labels, and the time of its measurement."""


def resource_families(snapshot: Snapshot) -> Iterator[Family]:
    """pkg/kubelet/metrics/collectors/resource_metrics.go."""
    node: list[Measured[table.Sampled]] = [(snapshot.node, "", snapshot.time)]
    pods: list[Measured[table.Sampled]] = []
    containers: list[Measured[ContainerSample]] = []
    for pod in snapshot.pods:
        pods.append((pod, f"namespace={_value(pod.namespace)},pod={_value(pod.name)}", snapshot.time))
        for container in pod.containers:
            labels = label_text(("container", "namespace", "pod"), (container.name, pod.namespace, pod.name))
            containers.append((container, labels, snapshot.time))
    yield from _figures(table.NODE_FIGURES, node)
    yield from _figures(table.POD_FIGURES, pods)
    yield from _figures(table.CONTAINER_FIGURES, containers)
    yield _error(table.SCRAPE_ERROR)


def cadvisor_families(snapshot: Snapshot) -> Iterator[Family]:
    """vendor/github.com/google/cadvisor/metrics/prometheus.go."""
    containers = [
        (container, _cadvisor_labels(pod, container), snapshot.time)
        for pod in snapshot.pods
        for container in _with_infra(pod)
    ]
    yield Family(
        table.CPU_USAGE,
        [
            ("", f'{labels},cpu="total"', value, time)
            for sample, labels, time in containers
            if (value := table.cpu_seconds(sample)) is not None
        ],
    )
    yield from _figures(table.CADVISOR_FIGURES, containers)
    yield Family(table.LAST_SEEN, [("", labels, time, time) for _, labels, time in containers])
    yield Family(table.MEMORY_FAILURES, list(_failures(containers)))
    yield from _figures(
        table.DEVICE_FIGURES,
        [
            (sample, f"{labels},device={_value(sample.rootfs.device)}", time)
            for sample, labels, time in containers
            if sample.rootfs is not None
        ],
    )
    yield from _figures(
        table.IO_FIGURES,
        [(sample.io, f'{labels},device=""', time) for sample, labels, time in containers if sample.io is not None],
    )
    yield from _figures(
        table.INTERFACE_FIGURES,
        [
            (interface, f"{_pod_labels(pod)},interface={_value(interface.name)}", snapshot.time)
            for pod in snapshot.pods
            if pod.network is not None
            for interface in pod.network.interfaces
        ],
    )
    yield _error(table.CADVISOR_ERROR)


def log_family(snapshot: Snapshot) -> Family:
    """pkg/kubelet/metrics/collectors/log_metrics.go."""
    names = table.LOG_BYTES.label_names
    return Family(
        table.LOG_BYTES,
        [
            ("", label_text(names, (container.name, pod.namespace, pod.name, pod.uid)), container.logs.used, 0.0)
            for pod in snapshot.pods
            for container in pod.containers
            if container.logs is not None and container.logs.used is not None
        ],
    )


def claim_families(snapshot: Snapshot) -> Iterator[Family]:
    """pkg/kubelet/metrics/collectors/volume_stats.go. A claim that several pods have mounted counts once."""
    claims: dict[tuple[str, str], FileSystem] = {}
    for pod in snapshot.pods:
        for volume in pod.volumes:
            if volume.claim:
                claims.setdefault((pod.namespace, volume.claim), volume.fs)
    for figure in table.CLAIM_FIGURES:
        names, of = figure.metric.label_names, figure.of
        values = ((key, of(fs)) for key, fs in claims.items())
        samples: list[Sample] = [("", label_text(names, key), value, 0.0) for key, value in values if value is not None]
        yield Family(figure.metric, samples)


def no_statistics(metric: Metric) -> list[Family]:
    """The answer of a path whose statistics could not be had."""
    return [_error(metric, 1.0)]


def _error(metric: Metric, value: float = 0.0) -> Family:
    return Family(metric, [("", "", value, 0.0)])


def _figures(figures: Iterable[Figure[S]], measured: Sequence[Measured[S]]) -> Iterator[Family]:
    for figure in figures:
        of = figure.of
        values = ((labels, of(sample), time) for sample, labels, time in measured)
        samples: list[Sample] = [("", labels, value, time) for labels, value, time in values if value is not None]
        yield Family(figure.metric, samples)


def _failures(containers: Iterable[Measured[ContainerSample]]) -> Iterator[Sample]:
    for sample, labels, time in containers:
        if sample.memory is not None:
            faults = {"pgfault": sample.memory.page_faults, "pgmajfault": sample.memory.major_page_faults}
            for kind, count in faults.items():
                if count is not None:
                    yield "", f'{labels},failure_type="{kind}",scope="container"', count, time


def _with_infra(pod: PodSample) -> tuple[ContainerSample, ...]:
    return pod.containers if pod.infra is None else (*pod.containers, pod.infra)


def _cadvisor_labels(pod: PodSample, container: ContainerSample) -> str:
    name = "POD" if container is pod.infra else container.name
    values = (name, f"/{container.id}", container.image, container.id, pod.namespace, pod.name)
    return label_text(table.CADVISOR_LABELS, values)


def _pod_labels(pod: PodSample) -> str:
    """Labels of figures that belong to the pod's network namespace."""
    infra = pod.infra
    values = ("", f"/{infra.id}" if infra else "/", infra.image if infra else "", infra.id if infra else "")
    return label_text(table.CADVISOR_LABELS, (*values, pod.namespace, pod.name))


def _value(text: str) -> str:
    """A label's value in quotes."""
    return label_text(("",), (text,))[1:]
