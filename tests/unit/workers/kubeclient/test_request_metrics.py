"""Counts of requests to a cluster."""

from __future__ import annotations

from ipc.link.metrics import rest_client
from ipc.link.metrics.rest_client import HOST, NO_ANSWER
from ipc.link.shm.metric_cells import METERS
from workers.kubeclient.request_metrics import RequestMetrics


def test_requests_are_counted_by_verb_and_answer() -> None:
    METERS.detach()
    metrics = RequestMetrics()
    metrics.answered("GET", "200", 0.01, 100, 2000)
    metrics.answered("GET", NO_ANSWER, 1.0, 100, 0)
    metrics.answered("PATCH", "418", 1.0, 100, 50)
    metrics.repeated("POST", "429")
    metrics.throttled("POST", 0.2)
    assert METERS.value(rest_client.REQUESTS, "200", HOST, "GET") == 1
    assert METERS.value(rest_client.REQUESTS, NO_ANSWER, HOST, "GET") == 1
    assert METERS.value(rest_client.REQUESTS, "other", HOST, "PATCH") == 1
    assert METERS.value(rest_client.REQUEST_DURATION, HOST, "GET") == 2
    assert METERS.value(rest_client.REQUEST_SIZE, HOST, "GET") == 2
    assert METERS.value(rest_client.RESPONSE_SIZE, HOST, "GET") == 1
    assert METERS.value(rest_client.RETRIES, "429", "POST", HOST) == 1
    assert METERS.value(rest_client.RATE_LIMITER_DURATION, HOST, "POST") == 1
