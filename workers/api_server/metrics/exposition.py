"""Prometheus' text format and OpenMetrics, as bytes. Pure.

Written here rather than by prometheus-client, which takes 6 to 8 µs of CPU for a sample and 20 MiB to be imported; its
parsers read in the tests what is written here (docs/decisions/0037-metrics.md). A counter whose name does not end in
``_total``, as some of the kubelet's and cAdvisor's, keeps its name in text and gets the ending in OpenMetrics, which
knows no other counters.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final

import msgspec

from ipc.link.metrics.model import Metric, MetricType

Sample = tuple[str, str, float, float]
"""End of the name, labels as `label_text` writes them, value, time of its measurement (epoch seconds; 0.0 is now)."""

_TOTAL: Final = "_total"
_PLAIN: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_HELP: Final = str.maketrans({"\\": r"\\", "\n": r"\n"})


class Format(enum.Enum):
    """Format of an answer; the value is its Content-Type."""

    TEXT = "text/plain; version=0.0.4; charset=utf-8"
    OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


class Family(msgspec.Struct, frozen=True):
    """A metric and its samples; without any it is not shown."""

    metric: Metric
    samples: Sequence[Sample]


def negotiated(accept: str) -> Format:
    """Format for a request with that Accept header: OpenMetrics for whoever names it (expfmt.Negotiate)."""
    wanted = (part.split(";")[0].strip().lower() for part in accept.split(","))
    return Format.OPENMETRICS if "application/openmetrics-text" in wanted else Format.TEXT


def label_text(names: Iterable[str], values: Iterable[str]) -> str:
    """``a="b",c="d"``."""
    return ",".join(f'{name}="{value.translate(_PLAIN)}"' for name, value in zip(names, values, strict=True))


def histogram(
    labels: str, bounds: Sequence[float], buckets: Sequence[float], total: float, form: Format
) -> list[Sample]:
    """Samples of one series. ``buckets``: count of each, the one without a bound last; ``total``: sum of the values."""
    before = f"{labels}," if labels else ""
    counts = list(accumulate(buckets))
    names = [*(_bound(bound, form) for bound in bounds), "+Inf"]
    return [
        *(("_bucket", f'{before}le="{name}"', count, 0.0) for name, count in zip(names, counts, strict=True)),
        ("_sum", labels, total, 0.0),
        ("_count", labels, counts[-1], 0.0),
    ]


def render(families: Iterable[Family], form: Format) -> bytes:
    """The whole answer to a scrape."""
    lines = [line for family in families if family.samples for line in _lines(family, form)]
    end = "# EOF\n" if form is Format.OPENMETRICS else ""
    return ("".join(lines) + end).encode(errors="replace")


def _lines(family: Family, form: Format) -> Iterator[str]:
    metric = family.metric
    name, ending = metric.name, ""
    documentation = metric.documentation.translate(_HELP)
    if form is Format.OPENMETRICS:
        documentation = metric.documentation.translate(_PLAIN)
        if metric.type is MetricType.COUNTER:
            name, ending = name.removesuffix(_TOTAL), _TOTAL
    yield f"# HELP {name} {documentation}\n# TYPE {name} {metric.type}\n"
    for suffix, labels, value, time in family.samples:
        braces = f"{{{labels}}}" if labels else ""
        yield f"{name}{suffix}{ending}{braces} {number(value)}{_stamp(time, form) if time else ''}\n"


def number(value: float) -> str:
    """Write a number as Go does, but for exponents."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def _stamp(time: float, form: Format) -> str:
    return f" {time:.3f}" if form is Format.OPENMETRICS else f" {round(time * 1000)}"


def _bound(bound: float, form: Format) -> str:
    """A bucket's bound: OpenMetrics wants a float's spelling."""
    return repr(bound) if form is Format.OPENMETRICS else number(bound)
