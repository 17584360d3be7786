"""Events of the node about its start and its readiness."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipc.link.messages.event_reasons import EventReason
from supervisor.record.node_events import BOOT_ID, NodeEvents


class Heard:
    """Events of one agent's life."""

    def __init__(self, directory: Path) -> None:
        self.told: list[tuple[str, str]] = []
        self.events = NodeEvents("n", directory / "boot-id", self._tell)

    def _tell(self, reason: EventReason, message: str) -> None:
        self.told.append((str(reason), message))

    @property
    def reasons(self) -> list[str]:
        return [reason for reason, _ in self.told]


def started(directory: Path) -> list[tuple[str, str]]:
    heard = Heard(directory)
    heard.events.started()
    return heard.told


def test_a_start_is_told_and_a_reboot_once(tmp_path: Path) -> None:
    assert started(tmp_path) == [("Starting", "Starting rootlet.")]
    (tmp_path / "boot-id").write_text("0b8e4f2a-6232-455c-81ed-d1ad9e04d789\n")
    boot_id = BOOT_ID.read_text().strip()
    assert started(tmp_path)[1:] == [("Rebooted", f"Node n has been rebooted, boot id: {boot_id}")]
    assert started(tmp_path)[1:] == []
    assert (tmp_path / "boot-id").stat().st_mode & 0o077 == 0


def test_a_file_that_cannot_be_believed_or_written_is_no_reboot(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "boot-id").write_bytes(b"x" * 1000)
    assert len(started(tmp_path)) == 1
    assert len(started(tmp_path / "nowhere")) == 1
    assert "nowhere/boot-id cannot be written" in caplog.text


def test_readiness_is_told_when_it_changes(tmp_path: Path) -> None:
    heard = Heard(tmp_path)
    for is_ready in (False, True, True, False, True):
        heard.events.ready(is_ready=is_ready)
    assert heard.reasons == ["NodeReady", "NodeNotReady", "NodeReady"]
    assert heard.told[0][1] == "Node n status is now: NodeReady"
