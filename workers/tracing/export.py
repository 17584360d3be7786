"""The one process that exports traces: it reads what all of them tell, and sends it in a thread.

An SDK in each worker would cost each its memory and a thread; here the others pay what a span costs in shared memory,
and only while tracing is on.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Sequence
from typing import Final, NoReturn, Protocol

from ipc.host.clock import Clock
from ipc.link.shm.trace import TraceBuffer, TraceReader
from ipc.link.wire.boot import TracingSettings
from workers.tracing.assemble import Assembler, ExportedSpan

PERIOD_S: Final = 5.0
"""How often spans are collected and sent, in seconds."""

log = logging.getLogger(__name__)


class Sender(Protocol):
    """Where spans go (`workers.tracing.otlp`)."""

    def send(self, spans: Sequence[ExportedSpan], epoch: float) -> bool: ...

    def close(self) -> None: ...


async def export_traces(
    buffer: TraceBuffer, settings: TracingSettings, instance: str, node_name: str, clock: Clock
) -> None:
    """Export for ever, or not at all when tracing is off or its extra is not installed, which is logged."""
    if not settings.sampling_rate_per_million:
        return
    buffer.export()  # pods start while the exporter is imported
    try:
        otlp = await asyncio.to_thread(importlib.import_module, "workers.tracing.otlp")
    except ImportError as error:
        buffer.stop_export()
        log.error("traces are not exported: %s; install rootlet[otel]", error)
        return
    await export_to(otlp.OtlpSender(settings.endpoint, instance, node_name), buffer, settings, clock)


async def export_to(
    sender: Sender, buffer: TraceBuffer, settings: TracingSettings, clock: Clock, period_s: float = PERIOD_S
) -> NoReturn:
    """Collect and send, every ``period_s`` seconds. Spans that the collector does not take are lost."""
    reader, assembler = TraceReader(buffer), Assembler(settings.sampling_rate_per_million)
    takes = True
    try:
        while True:
            buffer.export()
            await asyncio.sleep(period_s)
            took, takes = takes, await asyncio.to_thread(_send_news, sender, reader, assembler, clock, before=takes)
            if took and not takes:
                log.warning("the collector at %s takes no spans", settings.endpoint)
            elif takes and not took:
                log.info("the collector takes spans again")
    finally:
        sender.close()
        buffer.stop_export()


def _send_news(sender: Sender, reader: TraceReader, assembler: Assembler, clock: Clock, *, before: bool) -> bool:
    """Whether the collector takes spans; ``before`` when there are none. In a thread."""
    spans, now = assembler.take(reader.take()), clock.now()
    return sender.send(spans, now.wall - now.mono) if spans else before
