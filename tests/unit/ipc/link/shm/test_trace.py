from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

import pytest

from ipc.link.shm.trace import (
    EXPORTED_LANE_BYTES,
    LANE_BYTES,
    MAX_NAME_BYTES,
    Span,
    Trace,
    TraceBuffer,
    Tracer,
    TraceReader,
)

Made = tuple[TraceBuffer, Tracer]


@pytest.fixture
def made() -> Iterator[Made]:
    """A buffer, and a tracer that is attached to its lane 1."""
    buffer, tracer = TraceBuffer(2), Tracer()
    tracer.attach(buffer, 1, "pods-4")
    yield buffer, tracer
    buffer.stop()


def span(number: int) -> Span:
    return Span(f"step {number}", "uid", 1.0, 2.0, 0.5, "pods-4", 7)


def names(trace: Trace) -> list[str]:
    return [span.name for span in trace.spans]


def test_nothing_is_told_while_no_trace_is_under_way(made: Made) -> None:
    buffer, tracer = made
    assert not tracer.on
    assert tracer.span("a", "uid") is tracer.span("b")
    tracer.instant("c")
    tracer.begin("d", "uid")
    buffer.start()
    tracer.end("d", "uid")
    assert buffer.read() == Trace((), 0)


def test_a_span_has_its_pod_its_times_and_its_process(made: Made) -> None:
    buffer, tracer = made
    buffer.start()
    assert tracer.on
    with tracer.span("computes", "uid", cpu=True):
        sum(range(10_000))
    (found,) = buffer.read().spans
    assert (found.name, found.pod, found.process) == ("computes", "uid", "pods-4")
    assert 0 < found.begin <= found.end
    assert found.cpu_s > 0


def test_a_span_that_fails_is_told_too(made: Made) -> None:
    buffer, tracer = made
    buffer.start()
    with contextlib.suppress(ValueError), tracer.span("fails", "uid"):
        raise ValueError
    assert names(buffer.read()) == ["fails"]


def test_a_span_may_end_elsewhere_and_the_first_begin_counts(made: Made) -> None:
    buffer, tracer = made
    buffer.start()
    tracer.begin("waits", "one")
    tracer.begin("waits", "one")
    tracer.end("waits", "other")
    tracer.end("waits", "one")
    tracer.end("waits", "one")
    assert [(found.name, found.pod) for found in buffer.read().spans] == [("waits", "one")]


def test_what_was_begun_in_an_earlier_trace_does_not_end_in_this_one(made: Made) -> None:
    buffer, tracer = made
    buffer.start()
    tracer.begin("waits", "one")
    buffer.start()
    tracer.end("waits", "one")
    tracer.begin("waits", "two")
    tracer.end("waits", "one")
    tracer.end("waits", "two")
    assert [found.pod for found in buffer.read().spans] == ["two"]


async def test_tasks_inherit_the_pod(made: Made) -> None:
    buffer, tracer = made
    buffer.start()

    async def call() -> None:
        with tracer.span("call"):
            await asyncio.sleep(0)

    async def sync(pod: str) -> None:
        tracer.of(pod)
        await asyncio.gather(call(), call())

    await asyncio.gather(sync("one"), sync("two"))
    assert sorted(found.pod for found in buffer.read().spans) == ["one", "one", "two", "two"]


def test_every_trace_begins_empty(made: Made) -> None:
    buffer, tracer = made
    buffer.start()
    tracer.instant("old")
    buffer.start()
    assert names(buffer.read()) == []
    tracer.instant("new")
    assert names(buffer.read()) == ["new"]
    buffer.stop()
    assert buffer.read() == Trace((), 0)
    assert not tracer.on


def test_a_full_lane_counts_what_it_drops_and_leaves_the_others_alone(made: Made) -> None:
    buffer, tracer = made
    buffer.start()
    lane = buffer.lane(0)
    fitting = LANE_BYTES // 16
    for number in range(fitting):
        lane.append(buffer.switch[0], span(number))
    tracer.instant("of another")
    found = buffer.read()
    assert found.dropped > 0
    assert len(found.spans) - 1 + found.dropped == fitting
    assert names(found)[-1] == "of another"
    assert names(found)[:2] == ["step 0", "step 1"]


def test_a_writer_that_dies_loses_the_span_that_it_was_writing_and_no_other(made: Made) -> None:
    buffer, _ = made
    buffer.start()
    first = buffer.lane(0)
    first.append(buffer.switch[0], span(0))
    end = first.head[1]
    first.append(buffer.switch[0], span(1))
    first.head[1] = end  # as if it had died before it moved the end
    successor = buffer.lane(0)
    successor.append(buffer.switch[0], span(2))
    assert names(buffer.read()) == ["step 0", "step 2"]


def test_names_are_bounded_and_a_lane_is_one_that_there_is(made: Made) -> None:
    buffer, tracer = made
    buffer.start()
    tracer.instant("ä" * 1000, "\ud800" * 1000)
    (found,) = buffer.read().spans
    assert len(found.name.encode()) == MAX_NAME_BYTES
    assert len(found.pod.encode()) == MAX_NAME_BYTES
    for number in (-1, 2):
        with pytest.raises(IndexError):
            buffer.lane(number)


def test_a_tracer_that_is_detached_tells_nothing(made: Made) -> None:
    buffer, tracer = made
    buffer.start()
    tracer.detach()
    tracer.instant("late")
    assert buffer.read().spans == ()


def test_a_reader_takes_each_span_once(made: Made) -> None:
    buffer, tracer = made
    reader = TraceReader(buffer)
    assert reader.take() == []
    buffer.export()
    for name in ("a", "b"):
        tracer.instant(name, "uid")
        assert [span.name for span in reader.take()] == [name]
    assert reader.take() == []


def test_an_exported_trace_begins_anew_before_its_memory_grows(made: Made) -> None:
    buffer, tracer = made
    reader, told, found = TraceReader(buffer), 0, 0
    buffer.export()
    first = buffer.switch[0]
    while buffer.switch[0] == first:
        for _ in range(500):
            tracer.instant("x" * MAX_NAME_BYTES, "uid")
            told += 1
        found += len(reader.take())
        buffer.export()
    tracer.instant("y", "uid")
    assert (found, [span.name for span in reader.take()]) == (told, ["y"])
    assert told * MAX_NAME_BYTES < 2 * EXPORTED_LANE_BYTES


def test_a_trace_of_a_client_comes_first_and_the_export_goes_on_after_it(made: Made) -> None:
    buffer, tracer = made
    reader = TraceReader(buffer)
    buffer.export()
    tracer.instant("a", "uid")
    buffer.start()
    tracer.instant("b", "uid")
    buffer.export()
    assert [span.name for span in reader.take()] == names(buffer.read()) == ["b"], "it is not begun anew"
    buffer.stop_export()
    assert tracer.on, "it is the client's"
    buffer.stop()
    assert not tracer.on
    buffer.export()
    buffer.stop()
    assert tracer.on, "it is not the client's"
    buffer.stop_export()
    assert not tracer.on
