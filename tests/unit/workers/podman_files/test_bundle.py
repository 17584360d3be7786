"""As whom a container's process was begun."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipc.k8s.api.v1.status import LinuxContainerUser
from workers.podman_files.bundle import read_user

CONFIG = """{"ociVersion":"1.0.2-dev","process":{"terminal":true,"user":{"uid":1000,"gid":2000,"umask":18,
"additionalGids":[2000,3000]},"args":["sh"]},"root":{"path":"/merged"}}"""


@pytest.mark.parametrize(
    ("content", "user"),
    [
        (CONFIG, LinuxContainerUser(uid=1000, gid=2000, supplemental_groups=(2000, 3000))),
        ('{"process":{"user":{"uid":0,"gid":0}}}', LinuxContainerUser(uid=0, gid=0)),
        (CONFIG[:40], None),
        ("[]", None),
        ("", None),
    ],
    ids=["a user", "root", "cut off", "something else", "empty"],
)
def test_what_the_file_says(tmp_path: Path, content: str, user: LinuxContainerUser | None) -> None:
    file = tmp_path / "config.json"
    file.write_text(content)
    assert read_user(str(file)) == user


def test_a_container_that_was_never_started_has_no_file(tmp_path: Path) -> None:
    assert read_user("") is None
    assert read_user(str(tmp_path / "config.json")) is None
