"""Sends spans by OTLP over HTTP. The only file that imports OpenTelemetry, which is an extra: ``rootlet[otel]``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, TraceFlags

from workers.tracing.assemble import ExportedSpan

TIMEOUT_S: Final = 3.0
"""Deadline of one request, its repetitions included, in seconds."""
_NANOS: Final = 1_000_000_000
_SCOPE: Final = InstrumentationScope("rootlet")


class OtlpSender:
    """Sends to one endpoint; its calls block."""

    def __init__(self, endpoint: str, instance: str, node_name: str) -> None:
        self._exporter: SpanExporter = OTLPSpanExporter(endpoint=endpoint, timeout=TIMEOUT_S)
        self._resource = Resource.create(
            {"service.name": "rootlet", "service.instance.id": instance, "k8s.node.name": node_name}
        )

    def send(self, spans: Sequence[ExportedSpan], epoch: float) -> bool:
        """Whether the collector has taken them. ``epoch``: epoch seconds at monotonic zero."""
        made = [self._readable(span, epoch) for span in spans]
        return self._exporter.export(made) is SpanExportResult.SUCCESS

    def close(self) -> None:
        """Give a request under way up."""
        self._exporter.shutdown()

    def _readable(self, span: ExportedSpan, epoch: float) -> ReadableSpan:
        return ReadableSpan(
            name=span.name,
            context=_context(span.trace_id, span.span_id),
            parent=_context(span.trace_id, span.parent_id) if span.parent_id else None,
            resource=self._resource,
            attributes=span.attributes,
            start_time=round((span.begin + epoch) * _NANOS),
            end_time=round((span.end + epoch) * _NANOS),
            instrumentation_scope=_SCOPE,
        )


def _context(trace_id: int, span_id: int) -> SpanContext:
    return SpanContext(trace_id, span_id, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
