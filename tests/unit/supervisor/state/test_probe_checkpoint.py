"""Readiness stays over a restart of the agent: what is kept, and when."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from ipc.k8s.kubecontainer.probe_results import ProbeResult, ProbeResults
from supervisor.state.probe_checkpoint import load, save, worth_keeping

SUCCESS, FAILURE = ProbeResult.SUCCESS, ProbeResult.FAILURE
READY = {"a": ProbeResults(startup=SUCCESS, readiness=SUCCESS)}


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "state" / "probes.json"
    assert load(path) == {}
    save(path, READY)
    assert load(path) == READY
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_format_is_what_its_version_says(tmp_path: Path) -> None:
    """A file that an agent has written is read by every later one."""
    path = tmp_path / "probes.json"
    path.write_text('{"version":1,"verdicts":{"a":{"startup":"success","readiness":"success"}}}')
    assert load(path) == READY


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
