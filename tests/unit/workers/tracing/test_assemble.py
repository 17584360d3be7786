"""Traces out of what the processes have told."""

from __future__ import annotations

import pytest

from ipc.link.shm.trace import Span
from workers.tracing.assemble import MAX_WAITING, MILLION, Assembler, ExportedSpan

PROCESS = "pods-4"


def span(name: str, begin: float, end: float, *, pod: str = "u", pid: int = 7, cpu_s: float = 0.0) -> Span:
    return Span(name, pod, begin, end, cpu_s, PROCESS, pid)


def shape(spans: list[ExportedSpan]) -> list[tuple[str, str]]:
    """Each span's name, and its parent's."""
    names = {each.span_id: each.name for each in spans}
    return [(each.name, names.get(each.parent_id, "")) for each in spans]


def all_of_them() -> Assembler:
    return Assembler(MILLION)


def test_a_sync_is_a_trace_with_the_calls_within_it() -> None:
    found = all_of_them().take(
        [
            span("pull: busybox", 1.0, 1.5),
            span("Podman: create container", 2.0, 2.1, cpu_s=0.01),
            span("Podman: start container", 2.1, 2.2),
            span("files: etc", 2.2, 2.3),
            span("sync: sync", 0.5, 3.0),
        ]
    )
    assert shape(found) == [
        ("syncPod", ""),
        ("pull busybox", "syncPod"),
        ("create container", "syncPod"),
        ("start container", "syncPod"),
        ("files etc", "syncPod"),
    ]
    assert len({each.trace_id for each in found}) == 1
    assert len({each.span_id for each in found}) == 5
    assert found[2].attributes == {
        "k8s.pod.uid": "u",
        "process.pid": 7,
        "rootlet.process": PROCESS,
        "rootlet.cpu_s": 0.01,
    }


def test_calls_and_their_sync_may_come_one_after_the_other() -> None:
    assembler = all_of_them()
    assert assembler.take([span("Podman: create container", 2.0, 2.1)]) == []
    assert shape(assembler.take([span("sync: terminating", 1.0, 3.0)])) == [
        ("syncTerminatingPod", ""),
        ("create container", "syncTerminatingPod"),
    ]


@pytest.mark.parametrize(
    "other",
    [
        span("Podman: create container", 2.0, 2.1, pod="v"),
        span("Podman: create container", 2.0, 2.1, pid=8),
        span("Podman: create container", 0.1, 0.2),
        span("Podman: ping", 2.0, 2.1, pod=""),
        span("handles SyncDone", 2.0, 2.1),
    ],
)
def test_the_calls_of_others_are_no_part_of_it(other: Span) -> None:
    assert shape(all_of_them().take([other, span("sync: sync", 1.0, 3.0)])) == [("syncPod", "")]


def test_a_probe_is_a_trace_and_takes_no_calls_from_the_sync_around_it() -> None:
    spans = [
        span("Podman: start container", 2.0, 2.1),
        span("probe: readiness", 2.0, 2.2),
        span("sync: sync", 1.0, 3.0),
    ]
    assert shape(all_of_them().take(spans)) == [
        ("probe readiness", ""),
        ("syncPod", ""),
        ("start container", "syncPod"),
    ]


def test_an_observation_is_not_exported_and_its_calls_do_not_wait() -> None:
    assembler = all_of_them()
    assert assembler.take([span("Podman: inspect container", 2.0, 2.1), span("observes", 1.0, 3.0)]) == []
    assert shape(assembler.take([span("sync: sync", 1.0, 3.0)])) == [("syncPod", "")]


def test_the_rate_decides_of_each_trace_as_a_whole() -> None:
    def sampled(rate: int) -> set[str]:
        pairs = [
            (span("Podman: start container", 1.0, 2.0, pod=f"u-{n}"), span("sync: sync", 0.5, 2.5, pod=f"u-{n}"))
            for n in range(2000)
        ]
        found = Assembler(rate).take([each for pair in pairs for each in pair])
        assert len(found) % 2 == 0
        return {str(each.attributes["k8s.pod.uid"]) for each in found}

    assert sampled(0) == set()
    assert 300 < len(sampled(250_000)) < 700
    assert sampled(250_000) <= sampled(500_000), "a trace that is sampled is so at each higher rate"
    assert len(sampled(MILLION)) == 2000


def test_calls_whose_sync_never_ends_are_bounded() -> None:
    assembler = all_of_them()
    assembler.take(span("Podman: ping", 1.0, 2.0, pod=f"u-{n}") for n in range(MAX_WAITING + 10))
    oldest, newest = span("sync: sync", 0.5, 2.5, pod="u-0"), span("sync: sync", 0.5, 2.5, pod=f"u-{MAX_WAITING + 9}")
    assert [len(assembler.take([each])) for each in (oldest, newest)] == [1, 2]


def test_the_same_span_read_twice_has_the_same_ids() -> None:
    spans = [span("Podman: start container", 2.0, 2.1), span("sync: sync", 1.0, 3.0)]
    assert all_of_them().take(spans) == all_of_them().take(spans)
