"""The file of the audit log: its rotation, and requests that are no change."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from aiohttp.test_utils import make_mocked_request

from ipc.host.clock import SystemClock
from workers.api_server import audit
from workers.api_server.audit import MAX_FILES, Audit, is_change


@pytest.mark.parametrize(
    ("method", "path", "wanted"),
    [
        ("GET", "/api/v1/pods", False),
        ("GET", "/api/v1/namespaces/default/pods/web/log", False),
        ("GET", "/api/v1/namespaces/default/pods/web/exec", True),
        ("POST", "/api/v1/namespaces/default/pods/web/portforward", True),
        ("DELETE", "/api/v1/namespaces/default/pods/web", True),
        ("POST", "/rootlet/v1/apply", True),
    ],
)
def test_what_changes_something(method: str, path: str, wanted: bool) -> None:
    assert is_change(make_mocked_request(method, path)) is wanted


def test_a_full_file_makes_room_and_the_oldest_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "MAX_BYTES", 100)
    log = Audit(tmp_path / "audit.log", SystemClock())
    for number in range(20):
        log._write({"number": number, "result": "x" * 50})
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["audit.log", *(f"audit.log.{number}" for number in range(1, MAX_FILES))]
    newest = msgspec.json.decode((tmp_path / "audit.log").read_bytes().splitlines()[-1])
    assert newest["number"] == 19


def test_a_line_is_bounded_and_a_disk_that_refuses_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = Audit(tmp_path / "absent" / "audit.log", SystemClock())
    for _ in range(3):
        log._write({"result": "x"})
    assert len(caplog.records) == 1
    (tmp_path / "absent").mkdir()
    log._write({"result": "x" * 5000 + "\n"})
    text = (tmp_path / "absent" / "audit.log").read_text()
    assert len(text) < 1000
    assert text.count("\n") == 1
