"""Places of counted metrics among the cells of a process: the same in every process, and a function of the table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ipc.link.metrics.model import Labels, Metric, Source


class Layout:
    """Offset of each counted metric. Metrics that the API server alone counts come last: they are many, and no other
    process' cells are read so far."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        counted = sorted(
            (metric for metric in metrics if metric.counted), key=lambda metric: metric.source is Source.API_SERVER
        )
        self.metrics: tuple[Metric, ...] = tuple(counted)
        self._offsets: dict[str, int] = {}
        at = shared = 0
        for metric in counted:
            self._offsets[metric.name] = at
            at += metric.series * metric.width
            if metric.source is not Source.API_SERVER:
                shared = at
        self.size = at
        """Cells of a process."""
        self.shared = shared
        """Cells that others than the API server use."""

    def offset(self, metric: Metric) -> int:
        """The first cell. Raises KeyError for a metric without cells."""
        return self._offsets[metric.name]

    def cell(self, metric: Metric, *values: str) -> int:
        """First cell of the series with these label values, in the order of `Metric.labels`. Raises KeyError for a
        metric without cells, ValueError for values that the table does not know."""
        number = 0
        rest = values
        for labels in metric.labels:
            row, rest = rest[: len(labels.names)], rest[len(labels.names) :]
            number = number * len(labels.rows) + labels.rows.index(row)
        if rest:
            raise ValueError(f"{metric.name} has no labels for {rest}")
        return self.offset(metric) + number * metric.width


def combinations(labels: tuple[Labels, ...]) -> Iterator[tuple[str, ...]]:
    """Label values of every series, in the order of their cells."""
    if not labels:
        yield ()
        return
    for row in labels[0].rows:
        for rest in combinations(labels[1:]):
            yield (*row, *rest)
