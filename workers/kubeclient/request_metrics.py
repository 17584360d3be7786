"""Counts of the client's requests, with client-go's names."""

from __future__ import annotations

from ipc.link.metrics import rest_client
from ipc.link.metrics.rest_client import HOST, code_label
from ipc.link.shm.metric_cells import METERS


class RequestMetrics:
    """`workers.kubeclient.client.Observer` of this process."""

    def answered(self, verb: str, code: str, seconds: float, sent_bytes: int, received_bytes: int) -> None:
        """Count one exchange; of one without an answer ``code`` is ``<error>``."""
        METERS.counter(rest_client.REQUESTS, code_label(code), HOST, verb).inc()
        METERS.histogram(rest_client.REQUEST_DURATION, HOST, verb).observe(seconds)
        METERS.histogram(rest_client.REQUEST_SIZE, HOST, verb).observe(float(sent_bytes))
        if received_bytes:
            METERS.histogram(rest_client.RESPONSE_SIZE, HOST, verb).observe(float(received_bytes))

    def repeated(self, verb: str, code: str) -> None:
        """Count a request that is sent again."""
        METERS.counter(rest_client.RETRIES, code_label(code), verb, HOST).inc()

    def throttled(self, verb: str, seconds: float) -> None:
        """Count what the rate limit took."""
        METERS.histogram(rest_client.RATE_LIMITER_DURATION, HOST, verb).observe(seconds)
