"""Counting in cells: where a value lands, and what is read of it."""

import math
from pathlib import Path

import pytest

from ipc.k8s.kubecontainer.probe_results import ProbeType
from ipc.link.metrics import kubelet, rootlet
from ipc.link.metrics.table import LAYOUT
from ipc.link.shm.metric_cells import Meters, MetricCells
from ipc.link.shm.probe_cells import MAX_PROBES, ProbeCells

SLOTS = 3


@pytest.fixture
def cells() -> MetricCells:
    return MetricCells(SLOTS)


def test_nobody_has_counted_yet(cells: MetricCells) -> None:
    assert cells.read() == {}


def test_a_slot_without_a_row_is_refused(cells: MetricCells) -> None:
    with pytest.raises(IndexError):
        cells.row(SLOTS)


def test_a_successor_goes_on_where_its_predecessor_was(cells: MetricCells) -> None:
    for _ in range(2):
        meters = Meters()
        meters.attach(cells, 1)
        meters.counter(kubelet.STARTED_PODS).inc()
    [(slot, row)] = cells.read().items()
    assert (slot, row[LAYOUT.cell(kubelet.STARTED_PODS)]) == (1, 2.0)


def test_rows_are_apart(cells: MetricCells) -> None:
    for slot in range(SLOTS):
        meters = Meters()
        meters.attach(cells, slot)
        meters.counter(rootlet.LINK_MESSAGES, "sent").inc(slot + 1)
    at = LAYOUT.cell(rootlet.LINK_MESSAGES, "sent")
    assert {slot: row[at] for slot, row in cells.read().items()} == {0: 1.0, 1: 2.0, 2: 3.0}


def test_what_is_counted_before_it_is_attached_is_its_own(cells: MetricCells) -> None:
    meters = Meters()
    counter = meters.counter(kubelet.STARTED_PODS)
    counter.inc(5)
    meters.attach(cells, 0)
    counter.inc()
    assert cells.row(0)[LAYOUT.cell(kubelet.STARTED_PODS)] == 1.0
    meters.detach()
    counter.inc()
    assert cells.row(0)[LAYOUT.cell(kubelet.STARTED_PODS)] == 1.0


@pytest.mark.parametrize(
    ("value", "bucket"),
    [(0.0, 0), (0.005, 0), (0.0050001, 1), (10.0, 10), (10.1, 11), (math.inf, 11)],
    ids=["nothing", "on the bound", "beyond it", "the last bound", "beyond all", "infinite"],
)
def test_a_value_is_in_the_first_bucket_that_holds_it(value: float, bucket: int) -> None:
    meters = Meters()
    meters.histogram(kubelet.PLEG_RELIST_DURATION).observe(value)
    at = LAYOUT.cell(kubelet.PLEG_RELIST_DURATION)
    assert list(meters.cells[at : at + 12]) == [float(number == bucket) for number in range(12)]
    assert meters.cells[at + 12] == value
    assert meters.value(kubelet.PLEG_RELIST_DURATION) == 1.0


# --- probes -------------------------------------------------------------------------------------------------------


def count(cells: ProbeCells, row: int, uid: str, container: str = "web", result: str = "successful") -> None:
    cells.count(row, uid, container, ProbeType.LIVENESS, result, 0.02)


def total(cells: ProbeCells, uid: str, container: str = "web") -> float | None:
    found = cells.of(cells.rows_by_pod(), uid, container, ProbeType.LIVENESS)
    return None if found is None else sum(found.results.values())


def test_probes_are_counted_by_result() -> None:
    cells = ProbeCells(4)
    count(cells, 2, "a")
    count(cells, 2, "a")
    count(cells, 2, "a", result="failed")
    found = cells.of(cells.rows_by_pod(), "a", "web", ProbeType.LIVENESS)
    assert found is not None
    assert found.results == {"successful": 2.0, "failed": 1.0, "unknown": 0.0}
    assert (sum(found.buckets), round(found.sum_s, 6)) == (3.0, 0.06)
    assert cells.of(cells.rows_by_pod(), "a", "web", ProbeType.READINESS) is None


def test_a_row_that_serves_another_pod_begins_anew() -> None:
    cells = ProbeCells(4)
    count(cells, 1, "a")
    count(cells, 1, "b")
    assert (total(cells, "a"), total(cells, "b")) == (None, 1.0)


def test_more_probes_than_there_is_room_for_are_not_counted() -> None:
    cells = ProbeCells(1)
    for number in range(MAX_PROBES + 3):
        count(cells, 0, "a", f"c{number}")
    counted = [total(cells, "a", f"c{number}") for number in range(MAX_PROBES + 3)]
    assert counted == [1.0] * MAX_PROBES + [None] * 3


@pytest.mark.parametrize("row", [-1, 4])
def test_a_pod_without_a_row_is_not_counted(row: int) -> None:
    cells = ProbeCells(4)
    count(cells, row, "a")
    assert cells.rows_by_pod() == {}


def test_rows_in_which_nobody_counts_are_no_memory_for_who_reads() -> None:
    cells = MetricCells(1000)
    Meters().attach(cells, 7)
    before = _shared_kib()
    assert list(cells.read()) == [7]
    assert _shared_kib() - before < 100


def _shared_kib() -> int:
    """Pages of mappings like this one that this process has touched (proc_pid_status(5), RssShmem)."""
    (line,) = (each for each in Path("/proc/self/status").read_text().splitlines() if each.startswith("RssShmem:"))
    return int(line.split()[1])
