"""The user's containers.conf: the files that count for each Podman, in their order."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from supervisor.config import containers_conf
from supervisor.config.containers_conf import BrokenContainersConf, conf_files, read_conf

FILES = (
    "vendor/containers.conf",
    "vendor/containers.conf.d/10-vendor.conf",
    "admin/containers.conf",
    "admin/containers.conf.d/50-same.conf",
    "admin/containers.conf.d/90-admin.conf",
    "admin/containers.rootless.conf.d/20-rootless.conf",
    f"admin/containers.rootless.conf.d/{os.getuid()}/30-user.conf",
    "user/containers/containers.conf",
    "user/containers/containers.conf.d/50-same.conf",
    "user/containers/containers.conf.d/notes.txt",
)


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setattr(containers_conf, "VENDOR", tmp_path / "vendor")
    monkeypatch.setattr(containers_conf, "ADMINISTRATOR", tmp_path / "admin")
    return {"XDG_CONFIG_HOME": str(tmp_path / "user")}


def podman(tmp_path: Path, version: str) -> str:
    program = tmp_path / "podman"
    program.write_text(f"#!/bin/sh\necho 'podman version {version}'\n")
    program.chmod(0o755)
    return str(program)


def write(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


BEFORE_6 = (
    "vendor/containers.conf",
    "admin/containers.conf",
    "admin/containers.conf.d/50-same.conf",
    "admin/containers.conf.d/90-admin.conf",
    "user/containers/containers.conf",
    "user/containers/containers.conf.d/50-same.conf",
)
SINCE_6 = (
    "user/containers/containers.conf",
    "vendor/containers.conf.d/10-vendor.conf",
    "admin/containers.rootless.conf.d/20-rootless.conf",
    f"admin/containers.rootless.conf.d/{os.getuid()}/30-user.conf",
    "user/containers/containers.conf.d/50-same.conf",
    "admin/containers.conf.d/90-admin.conf",
)


@pytest.mark.parametrize(
    ("version", "files"),
    [("4.3.1", BEFORE_6), ("5.8.6", BEFORE_6), ("6.1.1", SINCE_6), ("10.0.0-rc1", SINCE_6), ("unknown", BEFORE_6)],
)
def test_each_podman_has_its_files_in_its_order(
    tmp_path: Path, environ: dict[str, str], version: str, files: tuple[str, ...]
) -> None:
    for name in FILES:
        write(tmp_path, name, "")
    assert conf_files(environ, podman(tmp_path, version)) == [tmp_path / name for name in files]


def test_podman_is_not_asked_where_all_versions_agree(tmp_path: Path, environ: dict[str, str]) -> None:
    """The question would take some 50 ms of each start of the agent."""
    write(tmp_path, "user/containers/containers.conf", "")
    program = tmp_path / "podman"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\necho podman version 6.1.1\n")
    program.chmod(0o755)
    assert conf_files(environ, str(program)) == [tmp_path / "user/containers/containers.conf"]
    assert not (tmp_path / "asked").exists()


def test_without_a_podman_the_files_of_podman_5_count(tmp_path: Path, environ: dict[str, str]) -> None:
    for name in FILES:
        write(tmp_path, name, "")
    assert len(conf_files(environ, str(tmp_path / "none"))) == len(BEFORE_6)


def test_later_files_win_key_by_key(tmp_path: Path, environ: dict[str, str]) -> None:
    write(tmp_path, "user/containers/containers.conf", '[containers]\npids_limit = 7\n[network]\nx = "weak"\n')
    write(tmp_path, "user/containers/containers.conf.d/z.conf", '[network]\nx = "strong"\n')
    assert read_conf(environ, podman(tmp_path, "5.4.2")) == {
        "containers": {"pids_limit": 7},
        "engine": {},
        "network": {"x": "strong"},
    }


def test_a_file_that_the_user_names_replaces_all_others(environ: dict[str, str]) -> None:
    assert conf_files({**environ, "CONTAINERS_CONF": "/a.conf"}) == [Path("/a.conf")]


@pytest.mark.parametrize("text", [b"[engine\n", b"\xff"])
def test_a_broken_file_is_named(tmp_path: Path, text: bytes) -> None:
    file = tmp_path / "containers.conf"
    file.write_bytes(text)
    with pytest.raises(BrokenContainersConf, match=str(file)):
        read_conf({"CONTAINERS_CONF": str(file)})


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("closed", ["user", "user/containers", "user/containers/containers.conf.d"])
def test_a_directory_that_may_not_be_read_is_an_error(tmp_path: Path, environ: dict[str, str], closed: str) -> None:
    """Podman ends with one; Python's own questions call such a file absent, from 3.13 and 3.14 on."""
    write(tmp_path, "user/containers/containers.conf.d/z.conf", "")
    (tmp_path / closed).chmod(0)
    try:
        with pytest.raises(PermissionError, match="containers"):
            conf_files(environ)
    finally:
        (tmp_path / closed).chmod(0o700)


@pytest.mark.parametrize(
    ("conf", "first_process", "manager"),
    [
        ('[engine]\ncgroup_manager = "systemd"\n', "init", "systemd"),
        ('[engine]\ncgroup_manager = "cgroupfs"\n', "systemd", "cgroupfs"),
        ("", "systemd", "systemd"),
        ("", "init", "cgroupfs"),
        ("not TOML", "systemd", ""),
    ],
)
def test_podman_makes_cgroups_as_it_is_told_or_by_the_first_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, conf: str, first_process: str, manager: str
) -> None:
    file, comm = tmp_path / "containers.conf", tmp_path / "comm"
    file.write_text(conf)
    comm.write_text(f"{first_process}\n")
    monkeypatch.setattr(containers_conf, "FIRST_PROCESS", comm)
    assert containers_conf.cgroup_manager({"CONTAINERS_CONF": str(file)}) == manager
