"""Traces as a collector receives them by OTLP over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import types
from collections.abc import AsyncIterator
from typing import Any, NoReturn

import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ipc.host.clock import SystemClock, wall
from ipc.link.shm.trace import TraceBuffer, Tracer
from ipc.link.wire.boot import TracingSettings
from workers.tracing import export
from workers.tracing.export import export_to, export_traces
from workers.tracing.otlp import OtlpSender

DEADLINE_S = 20.0


class Collector:
    """Takes spans, or refuses them."""

    def __init__(self) -> None:
        self.url = ""
        self.code = 200
        self.requests = 0
        self.resources: list[dict[str, str]] = []
        self.spans: list[Any] = []
        self.came = asyncio.Event()

    async def take(self, request: web.Request) -> web.Response:
        self.requests += 1
        assert request.content_type == "application/x-protobuf"
        sent = ExportTraceServiceRequest.FromString(await request.read())
        if self.code == 200:
            for resource in sent.resource_spans:
                self.resources.append({each.key: each.value.string_value for each in resource.resource.attributes})
                self.spans += [span for scope in resource.scope_spans for span in scope.spans]
        self.came.set()
        return web.Response(status=self.code)

    async def until(self, number: int) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while len(self.spans) < number:
                self.came.clear()
                await self.came.wait()


@pytest.fixture
async def collector() -> AsyncIterator[Collector]:
    made, app = Collector(), web.Application()
    app.router.add_post("/v1/traces", made.take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1/traces"
    yield made
    await runner.cleanup()


@contextlib.asynccontextmanager
async def exporting(collector: Collector, buffer: TraceBuffer) -> AsyncIterator[asyncio.Task[Any]]:
    settings = TracingSettings(endpoint=collector.url, sampling_rate_per_million=1_000_000)
    sender = OtlpSender(collector.url, "rootlet", "node-1")
    task: asyncio.Task[Any] = asyncio.create_task(export_to(sender, buffer, settings, SystemClock(), 0.01))
    await asyncio.sleep(0)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def tell_a_sync(tracer: Tracer, pod: str) -> None:
    with tracer.span("sync: sync", pod):
        for name in ("pull: busybox", "Podman: create container", "Podman: start container"):
            with tracer.span(name, pod):
                pass


async def test_a_collector_gets_the_spans_of_all_processes(collector: Collector) -> None:
    buffer = TraceBuffer(2)
    pods, others = Tracer(), Tracer()
    pods.attach(buffer, 0, "pods-4")
    others.attach(buffer, 1, "pods-5")
    began = wall()
    async with exporting(collector, buffer):
        tell_a_sync(pods, "u-1")
        with others.span("probe: readiness", "u-2"):
            pass
        await collector.until(5)
    assert collector.resources[0].items() >= {
        ("service.name", "rootlet"),
        ("service.instance.id", "rootlet"),
        ("k8s.node.name", "node-1"),
    }
    by_name = {span.name: span for span in collector.spans}
    assert by_name.keys() == {"syncPod", "pull busybox", "create container", "start container", "probe readiness"}
    sync = by_name["syncPod"]
    for name in ("pull busybox", "create container", "start container"):
        child = by_name[name]
        assert (child.trace_id, child.parent_span_id) == (sync.trace_id, sync.span_id)
        assert sync.start_time_unix_nano <= child.start_time_unix_nano <= child.end_time_unix_nano
    assert sync.parent_span_id == by_name["probe readiness"].parent_span_id == b""
    assert by_name["probe readiness"].trace_id != sync.trace_id
    assert began - 1 < sync.start_time_unix_nano / 1e9 < wall() + 1
    attributes = {each.key: each.value.string_value for each in sync.attributes}
    assert (attributes["k8s.pod.uid"], attributes["rootlet.process"]) == ("u-1", "pods-4")
    assert not pods.on, "the trace ends with its export"


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == export.__name__]


async def test_a_collector_that_is_away_costs_spans_and_one_line(
    collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    buffer, tracer = TraceBuffer(1), Tracer()
    tracer.attach(buffer, 0, "pods-4")
    collector.code = 400  # is not repeated, unlike 503
    with caplog.at_level(logging.INFO, export.__name__):
        async with exporting(collector, buffer) as task:
            async with asyncio.timeout(DEADLINE_S):
                while collector.requests < 3:
                    tell_a_sync(tracer, "u-1")
                    collector.came.clear()
                    await collector.came.wait()
            collector.code = 200
            async with asyncio.timeout(DEADLINE_S):
                while len(told(caplog)) < 2:
                    tell_a_sync(tracer, "u-2")
                    await asyncio.sleep(0.01)
            assert not task.done()
            assert collector.spans
    assert told(caplog) == [f"the collector at {collector.url} takes no spans", "the collector takes spans again"]


async def test_off_it_ends_at_once_and_nothing_is_traced() -> None:
    buffer = TraceBuffer(1)
    await export_traces(buffer, TracingSettings(), "rootlet", "node", SystemClock())
    assert not buffer.switch[0]


async def test_without_the_extra_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "workers.tracing.otlp", None)
    buffer = TraceBuffer(1)
    await export_traces(buffer, TracingSettings(sampling_rate_per_million=1), "rootlet", "node", SystemClock())
    assert "install rootlet[otel]" in caplog.text
    assert not buffer.switch[0]


async def test_what_happens_while_the_exporter_is_imported_is_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent starts its pods meanwhile."""
    buffer = TraceBuffer(1)
    traced = list[bool]()

    def sender(*_: object) -> NoReturn:
        traced.append(bool(buffer.switch[0]))
        raise EndOfTest

    monkeypatch.setitem(sys.modules, "workers.tracing.otlp", types.SimpleNamespace(OtlpSender=sender))
    with pytest.raises(EndOfTest):
        await export_traces(buffer, TracingSettings(sampling_rate_per_million=1), "rootlet", "node", SystemClock())
    assert traced == [True]


class EndOfTest(Exception):
    """Raised where the test has seen enough."""
