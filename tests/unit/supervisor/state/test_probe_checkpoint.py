"""What was ready stays ready over a restart of the agent: what is kept, and when."""

from __future__ import annotations

import asyncio
import logging
import stat
from pathlib import Path

import pytest

from ipc.host.clock import Instant
from ipc.kubecontainer.probe_results import ProbeResult, ProbeResults
from supervisor.state.probe_checkpoint import WRITE_PERIOD_S, ProbeCheckpoint, load, save, worth_keeping

SUCCESS, FAILURE = ProbeResult.SUCCESS, ProbeResult.FAILURE
READY = {"a": ProbeResults(startup=SUCCESS, readiness=SUCCESS)}


LOOKS = 1000


class HandClock:
    """Stands still until it is moved."""

    mono = 1000.0

    def now(self) -> Instant:
        return Instant(mono=self.mono, wall=0.0)


async def until_kept(path: Path, probe_results: dict[str, ProbeResults]) -> None:
    for _ in range(LOOKS):
        if load(path) == probe_results:
            return
        await asyncio.sleep(0.005)
    raise AssertionError(f"{load(path)} is kept, not {probe_results}")


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "state" / "probes.json"
    assert load(path) == {}
    save(path, READY)
    assert load(path) == READY
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_only_successes_that_keep_a_pod_as_it_was_are_kept() -> None:
    said = {
        "a": ProbeResults(startup=SUCCESS, liveness=FAILURE, readiness=FAILURE),
        "b": ProbeResults(liveness=SUCCESS, readiness=FAILURE),
        "c": ProbeResults(startup=FAILURE, readiness=SUCCESS),
    }
    assert worth_keeping(said) == {"a": ProbeResults(startup=SUCCESS), "c": ProbeResults(readiness=SUCCESS)}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b'{"version":2,"verdicts":{}}',
        b'{"version":1,"verdicts":{"a":{"readiness":"perhaps"}}}',
        b'{"version":1,"verdicts":{},"more":1}',
    ],
)
def test_a_file_that_is_not_ours_is_moved_aside(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "probes.json"
    path.write_bytes(data)
    assert load(path) == {}
    assert (tmp_path / "probes.json.refused").read_bytes() == data
    assert not path.exists()


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
