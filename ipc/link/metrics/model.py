"""Declaration of a metric: name, type, labels with the values that they may have, and which process counts it."""

from __future__ import annotations

import enum
import math
from typing import Final, TypedDict, Unpack

import msgspec

DEFAULT_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds in seconds (prometheus.DefBuckets)."""


class MetricType(enum.StrEnum):
    """Prometheus' types. Summaries are not used."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Stability(enum.StrEnum):
    """Kubernetes' levels (component-base/metrics, opts.go); in brackets at the beginning of a help text."""

    NONE = ""
    """cAdvisor's, the process' and our own."""
    INTERNAL = "INTERNAL"
    ALPHA = "ALPHA"
    BETA = "BETA"
    STABLE = "STABLE"


class Source(enum.StrEnum):
    """Where a value comes from."""

    MASTER = "master"
    POD_WORKER = "pod workers"
    MASTER_AND_POD_WORKERS = "master, pod workers"
    NODE_WORKER = "node worker"
    WORKERS = "pod workers, node worker, API server"
    EVERY_PROCESS = "every process"
    ZYGOTE = "zygote"
    API_SERVER = "API server"
    SCRAPE = "read at the scrape"


class Endpoint(enum.StrEnum):
    """Paths on which metrics are served."""

    METRICS = "/metrics"
    PROBES = "/metrics/probes"
    SLIS = "/metrics/slis"
    RESOURCE = "/metrics/resource"
    CADVISOR = "/metrics/cadvisor"


class Labels(msgspec.Struct, frozen=True):
    """Labels whose values belong together, and every combination of values that there is."""

    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def label(name: str, *values: str) -> Labels:
    """One label with its values."""
    return Labels((name,), tuple((value,) for value in values))


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric family. Counted ones have a place in shared memory for each combination of their labels' rows."""

    name: str
    type: MetricType
    help: str
    stability: Stability = Stability.NONE
    source: Source
    endpoint: Endpoint = Endpoint.METRICS
    labels: tuple[Labels, ...] = ()
    """Labels of a counted metric, with their values."""
    label_names: tuple[str, ...] = ()
    """Labels of a metric that is read at the scrape: their values are what is there then."""
    buckets: tuple[float, ...] = ()
    """Upper bounds of a histogram's buckets, but for the last one, which has none."""
    per_process: bool = False
    """Every process has a series of its own, with the label ``worker``."""
    always: bool = False
    """Whether series are shown from the start, with 0. Those of other metrics appear when they are first counted."""

    @property
    def counted(self) -> bool:
        """Whether the metric has cells."""
        return self.source is not Source.SCRAPE

    @property
    def every_label(self) -> tuple[str, ...]:
        """Names of its labels in the order of their values; a bucket's bound comes besides."""
        own = tuple(name for labels in self.labels for name in labels.names) if self.labels else self.label_names
        return ("worker", *own) if self.per_process else own

    @property
    def width(self) -> int:
        """Cells of one series: a histogram's buckets, the one without a bound among them, and its sum."""
        return len(self.buckets) + 2 if self.type is MetricType.HISTOGRAM else 1

    @property
    def series(self) -> int:
        """Number of combinations of label values."""
        return math.prod(len(labels.rows) for labels in self.labels)

    @property
    def documentation(self) -> str:
        """Help text with its level, as the kubelet writes it."""
        return f"[{self.stability}] {self.help}" if self.stability else self.help


class Options(TypedDict, total=False):
    """Fields of a `Metric` that few metrics have."""

    stability: Stability
    endpoint: Endpoint
    buckets: tuple[float, ...]
    per_process: bool
    always: bool


def counter(name: str, help: str, source: Source, *labels: Labels | str, **options: Unpack[Options]) -> Metric:
    """A value that only rises. ``labels``: names alone where the values are what is there at the scrape."""
    return _metric(MetricType.COUNTER, name, help, source, labels, options)


def gauge(name: str, help: str, source: Source, *labels: Labels | str, **options: Unpack[Options]) -> Metric:
    """A value that rises and falls. Labels as of a `counter`."""
    return _metric(MetricType.GAUGE, name, help, source, labels, options)


def histogram(name: str, help: str, source: Source, *labels: Labels | str, **options: Unpack[Options]) -> Metric:
    """Values by their size, most often seconds. Labels as of a `counter`."""
    return _metric(MetricType.HISTOGRAM, name, help, source, labels, {"buckets": DEFAULT_BUCKETS, **options})


def _metric(
    type: MetricType, name: str, help: str, source: Source, labels: tuple[Labels | str, ...], options: Options
) -> Metric:
    known = tuple(each for each in labels if isinstance(each, Labels))
    names = tuple(each for each in labels if isinstance(each, str))
    return Metric(name=name, type=type, help=help, source=source, labels=known, label_names=names, **options)
