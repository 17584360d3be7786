"""The event log under a writer that is killed."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from supervisor.record.event_log import EventLog
from tests.support.podman_service import wait_until

TREE = Path(__file__).parents[4]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "events.jsonl"


WRITER = """
import sys
from pathlib import Path
from supervisor.record.event_log import EventLog
from tests.support.events import event
log = EventLog(Path(sys.argv[1]))
live = {e.metadata.name: e for e in log.load()}
while True:
    changed = [event(str(n), live[str(n)].count + 1 if str(n) in live else 1, "x" * 900) for n in range(50)]
    live = {e.metadata.name: e for e in changed}
    log.write(changed, changed)
"""


def test_a_killed_writer_leaves_what_can_be_read(path: Path) -> None:
    """Killed while it writes without a pause, three lives in a row."""
    count = 0
    for _ in range(3):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], cwd=TREE) as writer:
            try:
                wait_until(partial(has_more_than, path, count), 20.0, 0.01)
            finally:
                writer.kill()
        found = EventLog(path).load()
        assert len(found) == 50
        count = found[-1].count


def has_more_than(path: Path, count: int) -> bool:
    """The last whole line is of an event that happened more often."""
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return bool(lines) and json.loads(lines[-1]).get("count", 0) > count
