"""A whole agent on the simulated Podman service, and a collector that it sends traces to."""

from __future__ import annotations

import contextlib
import http.server
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ipc.link.wire.boot import Role
from tests.bench.simulated import manifests, simulated_node
from tests.support.module_lists import DIRECTORY_VARIABLE, read_lists

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]

PODS = 2
DEADLINE_S = 60.0


class Collector(http.server.BaseHTTPRequestHandler):
    """Takes spans into its class's list."""

    spans: list[Any]

    def do_POST(self) -> None:
        sent = ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["Content-Length"])))
        self.spans += [
            span for resource in sent.resource_spans for scope in resource.scope_spans for span in scope.spans
        ]
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on stderr."""


@pytest.fixture
def collector() -> Iterator[tuple[str, list[Any]]]:
    """URL of a collector, and the spans that have come."""
    spans: list[Any] = []
    handler = type("Handler", (Collector,), {"spans": spans})
    with http.server.HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        with contextlib.ExitStack() as stack:
            stack.callback(thread.join)
            stack.callback(server.shutdown)
            yield f"http://127.0.0.1:{server.server_port}/v1/traces", spans


def test_the_start_of_each_pod_is_a_trace_and_one_process_pays_for_it(
    collector: tuple[str, list[Any]], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, spans = collector
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path))

    def starts() -> dict[bytes, set[str]]:
        """Names of the spans by trace, of traces in which a container was started."""
        names: dict[bytes, set[str]] = {}
        for span in list(spans):
            names.setdefault(span.trace_id, set()).add(span.name)
        return {trace: found for trace, found in names.items() if "start container" in found}

    settings = {"tracing": {"endpoint": url, "samplingRatePerMillion": 1_000_000}}
    with simulated_node(PODS, instant=True, settings=settings) as node:
        node.start(module="tests.support.module_lists")
        node.state_pods(manifests(PODS))
        node.until(lambda: len(starts()) >= PODS, DEADLINE_S)
        node.stop()
    assert all(found > {"syncPod", "create container"} for found in starts().values())
    modules = read_lists(tmp_path)
    assert modules.keys() >= {Role.POD_WORKER, Role.NODE_WORKER, Role.API_SERVER}
    assert {role for role, found in modules.items() if "opentelemetry" in found} == {Role.NODE_WORKER}
