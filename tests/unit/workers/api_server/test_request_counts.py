"""Labels of requests: of a fixed set, whatever is asked for."""

import pytest

from ipc.link.metrics import kubelet
from ipc.link.metrics.table import LAYOUT
from workers.api_server.handlers.request_counts import labels_of


@pytest.mark.parametrize(
    ("path", "long_running", "bucket"),
    [
        ("/pods", "false", "pods"),
        ("/allocatedPods/default/web", "false", "allocatedPods"),
        ("/metrics", "false", "metrics"),
        ("/metrics/cadvisor", "false", "metrics/cadvisor"),
        ("/metrics/nosuch", "false", "metrics"),
        ("/exec/default/web/app", "true", "exec"),
        ("/containerLogs/default/web/app", "false", "containerLogs"),
        ("/api/v1/pods", "false", "api"),
        ("/", "false", "other"),
        ("//x", "false", "other"),
        ("/../../etc/passwd", "false", "other"),
        ("/" + "a" * 10_000, "false", "other"),
    ],
)
def test_paths(path: str, long_running: str, bucket: str) -> None:
    labels = labels_of(path, "GET", "admin")
    assert labels == (long_running, bucket, "GET", "admin")
    assert LAYOUT.cell(kubelet.HTTP_REQUESTS, *labels)


@pytest.mark.parametrize(("method", "value"), [("GET", "GET"), ("get", "other"), ("BREW", "other")])
def test_methods(method: str, value: str) -> None:
    assert labels_of("/pods", method, "readonly")[2] == value
