"""The key of labels on disk: made once, private, never made anew while it can be read."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from ipc.k8s.kubecontainer.label_key import SECRET_BYTES
from supervisor.state.label_key_file import load_or_make


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "label-key.json"


def test_it_is_made_once_and_is_private(path: Path) -> None:
    made = load_or_make(path, 1000.5)
    assert (len(made.secret), made.made_at) == (SECRET_BYTES, 1000.5)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert load_or_make(path, 2000.0) == made


def test_no_two_are_alike(tmp_path: Path) -> None:
    assert load_or_make(tmp_path / "a", 1.0).secret != load_or_make(tmp_path / "b", 1.0).secret


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[" * 4000,
        b"x" * 5000,
        json.dumps({"version": 2, "secret": "A" * 43 + "=", "made_at": 1.0}).encode(),
        json.dumps({"version": 1, "secret": "", "made_at": 1.0}).encode(),
        json.dumps({"version": 1, "secret": "A" * 43 + "=", "made_at": -1.0}).encode(),
        json.dumps({"version": 1, "secret": "A" * 43 + "=", "made_at": 1.0, "more": 1}).encode(),
        b'{"version":1,"secret":"\xff"}',
    ],
    ids=["empty", "cut", "nested", "large", "version", "short", "date", "more", "no text"],
)
def test_one_that_cannot_be_used_is_moved_aside_and_made_anew(
    path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path.write_bytes(content)
    made = load_or_make(path, 1000.0)
    assert made.made_at == 1000.0
    assert load_or_make(path, 2000.0) == made
    assert path.with_name("label-key.json.refused").read_bytes() == content
    assert "a new one is made" in caplog.text


def test_a_disk_that_does_not_take_it_stops_nobody(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.parent.chmod(0o500)
    with caplog.at_level(logging.ERROR):
        first, second = load_or_make(path, 1000.0), load_or_make(path, 2000.0)
    assert first.secret != second.secret
    assert (first.made_at, second.made_at) == (1000.0, 2000.0)
    assert first.secret.hex() not in caplog.text


def test_a_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    load_or_make(target, 1.0)
    path.symlink_to(target)
    assert load_or_make(path, 1000.0).made_at == 1000.0
    assert not path.is_symlink()
