from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from workers.libpod.auth import HEADER, MAX_FILE_BYTES, LoginsError, read_logins


def auth(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def sent(headers: dict[str, str]) -> object:
    return json.loads(base64.urlsafe_b64decode(headers[HEADER]))


def test_all_logins_go_along(tmp_path: Path) -> None:
    path = tmp_path / "auth.json"
    auths = {
        "quay.io": {"auth": auth("me:a:b")},
        "quay.io/team": {"auth": auth("padded:hush\0\0")},
        "ghcr.io": {"identitytoken": "t"},
    }
    path.write_text(json.dumps({"auths": auths, "credHelpers": {"x.io": "secretservice"}}))
    assert sent(read_logins(str(path))) == {
        "quay.io": {"username": "me", "password": "a:b"},
        "quay.io/team": {"username": "padded", "password": "hush"},
        "ghcr.io": {"identitytoken": "t"},
    }


@pytest.mark.parametrize("content", ["{}", '{"auths":{}}'])
def test_without_logins_nothing_goes_along(tmp_path: Path, content: str) -> None:
    path = tmp_path / "auth.json"
    path.write_text(content)
    assert read_logins(str(path)) == {}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot read .*: No such file"),
        ("no JSON: hush", "not as containers-auth.json"),
        ('{"auths":{"quay.io":{"auth":"hush!"}}}', "not as containers-auth.json"),
        ('{"auths":{"quay.io":{"auth":"//79"}}}', "not as containers-auth.json"),
        (" " * (MAX_FILE_BYTES + 1), "larger than"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_and_not_shown(tmp_path: Path, content: str | None, words: str) -> None:
    path = tmp_path / "auth.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(LoginsError, match=words) as caught:
        read_logins(str(path))
    assert str(path) in str(caught.value)
    assert "hush" not in str(caught.value)
