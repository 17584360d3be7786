"""Results of probes on their way to the disk."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from ipc.k8s.kubecontainer.probe_results import ProbeResult, ProbeResults
from supervisor.state.probe_checkpoint import WRITE_PERIOD_S, ProbeCheckpoint, load
from tests.fakes.clock import HandClock

SUCCESS, FAILURE = ProbeResult.SUCCESS, ProbeResult.FAILURE
READY = {"a": ProbeResults(startup=SUCCESS, readiness=SUCCESS)}


LOOKS = 1000


async def until_kept(path: Path, probe_results: dict[str, ProbeResults]) -> None:
    for _ in range(LOOKS):
        if load(path) == probe_results:
            return
        await asyncio.sleep(0.005)
    raise AssertionError(f"{load(path)} is kept, not {probe_results}")


async def test_changes_are_written_now_and_then_and_at_the_end(tmp_path: Path) -> None:
    path, clock = tmp_path / "probes.json", HandClock()
    memory, known = ProbeCheckpoint(path, clock), dict(READY)
    memory.keep(lambda: known)
    await until_kept(path, READY)
    known["b"] = ProbeResults(readiness=SUCCESS)
    await asyncio.sleep(0.05)
    memory.keep(lambda: known)
    await asyncio.sleep(0.05)
    assert load(path) == READY, "too soon"
    clock.mono += WRITE_PERIOD_S
    memory.keep(lambda: known)
    await until_kept(path, known)
    del known["a"]
    await memory.close(known)
    assert load(path) == known


async def test_a_disk_that_takes_nothing_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    clock = HandClock()
    memory = ProbeCheckpoint(tmp_path / "file" / "probes.json", clock)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            memory.keep(lambda: READY)
            await memory.settled()
            clock.mono += WRITE_PERIOD_S
        await memory.close(READY)
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "results of probes are not kept on disk, only in memory"
    ]
