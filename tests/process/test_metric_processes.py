"""Counts of a process that is killed."""

from __future__ import annotations

import os
import signal

import pytest

from ipc.link.metrics import kubelet
from ipc.link.metrics.table import LAYOUT
from ipc.link.shm.metric_cells import METERS, MetricCells

pytestmark = pytest.mark.process

COUNTS = 1000
INCARNATIONS = 3


def test_what_a_killed_process_has_counted_is_there_and_its_successor_goes_on() -> None:
    cells, at, seen = MetricCells(2), LAYOUT.cell(kubelet.STARTED_PODS), [0.0]
    for _ in range(INCARNATIONS):
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                METERS.attach(cells, 1)
                for _ in range(COUNTS):
                    METERS.counter(kubelet.STARTED_PODS).inc()
                os.write(writer, b"counted")
                signal.pause()
            finally:
                os._exit(1)
        assert os.read(reader, 7) == b"counted"
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(reader)
        os.close(writer)
        seen.append(cells.read()[1][at])
    assert seen == [float(number * COUNTS) for number in range(INCARNATIONS + 1)]
