"""Tables of use: what is not known is said not to be."""

from __future__ import annotations

from typing import Any

import pytest

from supervisor.cli.printers import usage

UNKNOWN = "<unknown>"


def sample(name: str, nano_cores: int | None = None, memory: int | None = None) -> dict[str, Any]:
    figures: dict[str, Any] = {"name": name, "namespace": "default"}
    if nano_cores is not None:
        figures["cpu"] = {"source": "cgroup", "nano_cores": nano_cores}
    if memory is not None:
        figures["memory"] = {"source": "processes", "working_set": memory}
    return figures


@pytest.mark.parametrize(
    ("rate", "expected"), [(None, UNKNOWN), (0, "0m"), (1, "1m"), (1_000_000, "1m"), (1_500_000_001, "1501m")]
)
def test_cores(rate: int | None, expected: str) -> None:
    assert usage.cores(rate) == expected


@pytest.mark.parametrize(("size", "expected"), [(None, UNKNOWN), (0, "0Mi"), (3 * 1024**2 - 1, "2Mi")])
def test_mebibytes(size: int | None, expected: str) -> None:
    assert usage.mebibytes(size) == expected


@pytest.mark.parametrize(
    ("size", "expected"), [(None, UNKNOWN), (0, "0"), (1023, "1023"), (1536, "1.5Ki"), (5 * 1024**3, "5.0Gi")]
)
def test_sizes(size: int | None, expected: str) -> None:
    assert usage.sized(size) == expected


@pytest.mark.parametrize(
    ("part", "whole", "expected"), [(1, 3, "33%"), (None, 3, UNKNOWN), (1, None, UNKNOWN), (1, 0, UNKNOWN)]
)
def test_shares(part: int | None, whole: int | None, expected: str) -> None:
    assert usage.share(part, whole) == expected


def test_order() -> None:
    samples = [sample("c", 1), sample("b"), sample("a", 5), sample("d", 5, 9)]
    assert [s["name"] for s in usage.in_order(samples, "")] == ["a", "b", "c", "d"]
    assert [s["name"] for s in usage.in_order(samples, "cpu")] == ["a", "d", "c", "b"]
    assert next(s["name"] for s in usage.in_order(samples, "memory")) == "d"


def test_a_sum_leaves_out_what_is_not_known() -> None:
    line, summed = usage.sum_rows([sample("a", 2_000_000, 3 * 1024**2), sample("b", 1), sample("c")], 4)
    assert line == ("", "", "________", "________")
    assert summed == ("", "", "3m", "3Mi")


def test_rows() -> None:
    assert usage.pod_row(sample("web")) == ("web", UNKNOWN, UNKNOWN)
    node = {**sample("n", 500_000_000, 10), "memory": {"working_set": 10, "limit": 40}}
    assert usage.node_row(node, 2) == ("n", "500m", "25%", "0Mi", "25%")
    assert usage.node_row(sample("n"), None) == ("n", *[UNKNOWN] * 4)


def worker(pid: int, cpu_s: float | None) -> dict[str, Any]:
    resources = {"cpuSeconds": cpu_s, "rssBytes": 3 * 1024**2, "pssBytes": None} if cpu_s is not None else None
    return {"name": "api", "pid": pid, "resources": resources}


def test_workers() -> None:
    (row,) = usage.worker_rows([worker(1, 2.0)], [worker(1, 2.5)], 1.0)
    assert usage.worker_row(row) == ("api", "1", "500m", "3Mi")
    (row,) = usage.worker_rows([worker(1, 2.0)], [worker(2, 2.5)], 1.0)
    assert usage.worker_row(row) == ("api", "2", UNKNOWN, "3Mi"), "another process by now"
    (row,) = usage.worker_rows([], [worker(0, None)], 1.0)
    assert usage.worker_row(row) == ("api", "<none>", UNKNOWN, UNKNOWN)


def test_everything_of_a_pod() -> None:
    pod = {
        **sample("web", 1_000_000, 5 * 1024**2),
        "containers": [sample("main", 1, 1)],
        "network": {"default": "eth0", "interfaces": [{"name": "eth0", "rx_bytes": 2048, "tx_bytes": 0}]},
        "processes": {"count": 2},
    }
    expected = ("web", "1m", "5Mi", UNKNOWN, UNKNOWN, "2.0Ki", "0", "2", UNKNOWN, "cgroup,processes")
    assert usage.stats_row(pod) == expected
    assert usage.stats_row(sample("bare"))[1:] == (UNKNOWN,) * 9


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ({"new"}, "no statistics of pod new: it was not measured yet"),
        ({"done"}, "no statistics of pod done: it is not there or runs nothing"),
        ({"new", "none"}, "no statistics of pod new, none: it is not there or runs nothing"),
    ],
)
def test_a_pod_without_statistics_runs_nothing_or_was_not_measured(names: set[str], words: str) -> None:
    pods = [
        {"metadata": {"name": "new"}, "status": {"phase": "Running"}},
        {"metadata": {"name": "done"}, "status": {"phase": "Succeeded"}},
    ]
    assert usage.why_missing(names, pods) == words
