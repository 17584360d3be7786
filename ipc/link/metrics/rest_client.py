"""Metrics of the client of a cluster's API server, with client-go's names (component-base/metrics/prometheus/
restclient, metrics.go). A node has one cluster: their label ``host`` has one value."""

from __future__ import annotations

from functools import partial
from typing import Final

from ipc.link.metrics.model import Metric, Source, Stability, counter, histogram, label
from ipc.link.metrics.reasons import OTHER

_SECONDS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_BYTES: Final = (64.0, 256.0, 512.0, *(float(1 << power) for power in (10, 12, 14, 16, 18, 20, 22, 24)))
HOST: Final = "cluster"
VERBS: Final = ("DELETE", "GET", "PATCH", "POST", "PUT")
NO_ANSWER: Final = "<error>"
CODES: Final = (
    *("200", "201", "202", "204"),
    *("400", "401", "403", "404", "405", "406", "409", "410", "413", "415", "422", "429"),
    *("500", "502", "503", "504", NO_ANSWER, OTHER),
)
_HOST: Final = label("host", HOST)
_VERB: Final = label("verb", *VERBS)
_CODE: Final = label("code", *CODES)


def code_label(code: str) -> str:
    """The value of ``code`` that stands for an answer's status."""
    return code if code in CODES else OTHER


_counter = partial(counter, stability=Stability.ALPHA)
_histogram = partial(histogram, stability=Stability.ALPHA)

REQUEST_DURATION: Final = _histogram(
    "rest_client_request_duration_seconds",
    "Time to an answer of the cluster's API server; of a watch, to its begin",
    Source.NODE_WORKER,
    _HOST,
    _VERB,
    buckets=_SECONDS,
)
RATE_LIMITER_DURATION: Final = _histogram(
    "rest_client_rate_limiter_duration_seconds",
    "Time that requests to the cluster have waited for the rate limit",
    Source.NODE_WORKER,
    _HOST,
    _VERB,
    buckets=_SECONDS,
)
REQUEST_SIZE: Final = _histogram(
    "rest_client_request_size_bytes",
    "Size of requests to the cluster",
    Source.NODE_WORKER,
    _HOST,
    _VERB,
    buckets=_BYTES,
)
RESPONSE_SIZE: Final = _histogram(
    "rest_client_response_size_bytes", "Size of the cluster's answers", Source.NODE_WORKER, _HOST, _VERB, buckets=_BYTES
)
REQUESTS: Final = _counter(
    "rest_client_requests_total",
    "Requests to the cluster by the status of their answer",
    Source.NODE_WORKER,
    _CODE,
    _HOST,
    label("method", *VERBS),
)
RETRIES: Final = _counter(
    "rest_client_request_retries_total",
    "Requests to the cluster that were sent again, by the answer before",
    Source.NODE_WORKER,
    _CODE,
    _VERB,
    _HOST,
)

METRICS: Final[tuple[Metric, ...]] = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
"""All of this module."""
