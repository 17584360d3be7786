"""The store that the settings name: where it cannot be used, and where pods would be left behind in the other one."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import msgspec
import pytest

from supervisor.config.settings import PodmanSettings, Settings, SettingsError
from supervisor.podman_store import FILE, check_store

PODS = [
    {
        "Id": f"{number:064}",
        "Name": f"k8s_POD_{number}",
        "Created": "2026-01-01T00:00:00Z",
        "Labels": {"io.kubernetes.pod.namespace": "default", "io.kubernetes.pod.name": f"web-{number}"},
    }
    for number in range(7)
]


def settings(tmp_path: Path, store: str, *, pods: int = 0, version: str = "5.0.0") -> Settings:
    """With a Podman of that version and so many pods in the other store; its calls are written down."""
    program = tmp_path / "podman"
    listed = json.dumps(PODS[:pods])
    program.write_text(
        f'#!/bin/sh\necho "$*" >> {tmp_path}/calls\n'
        f"case $1 in --version) echo podman version {version};; *) echo '{listed}';; esac\n"
    )
    program.chmod(0o700)
    podman = PodmanSettings(path=str(program), service="own", store=store)  # type: ignore[arg-type]
    return msgspec.structs.replace(Settings(state_dir=tmp_path / "state", instance_name="one"), podman=podman)


def calls(tmp_path: Path) -> list[str]:
    return (tmp_path / "calls").read_text().splitlines() if (tmp_path / "calls").exists() else []


def test_the_default_store_asks_once_for_pods_of_a_transient_one(tmp_path: Path) -> None:
    """The note may be lost with the whole state directory: then a new instance looks the same."""
    for _ in range(2):
        check_store(settings(tmp_path, "default"), tmp_path, "f")
    assert [call.split(" --format")[0] for call in calls(tmp_path)] == ["--version", "--transient-store pod ps"]
    assert (tmp_path / "state" / FILE).read_text() == "default"


@pytest.mark.parametrize("version", ["4.3.1", ""])
def test_a_podman_without_such_a_store_is_not_asked_for_its_pods(tmp_path: Path, version: str) -> None:
    check_store(settings(tmp_path, "default", version=version), tmp_path, "f")
    assert calls(tmp_path) == ["--version"]
    assert not (tmp_path / "state").exists()


def test_a_podman_that_fails_keeps_no_agent_from_its_start_on_the_default_store(tmp_path: Path) -> None:
    made = settings(tmp_path, "default")
    Path(made.podman.path).write_text("#!/bin/sh\n[ $1 = --version ] && echo podman version 5.4.2 || exit 125\n")
    check_store(made, tmp_path, "f")
    assert not (tmp_path / "state" / FILE).exists(), "the next one asks again"


@pytest.mark.parametrize("store", ["default", "transient"])
@pytest.mark.parametrize("text", [None, b"", b"neither", b"\xff" * 9, b"x" * 999])
def test_a_note_that_is_lost_or_damaged_leaves_no_pod_behind(tmp_path: Path, store: str, text: bytes | None) -> None:
    other = {"default": "transient", "transient": "default"}[store]
    check_store(settings(tmp_path, other), tmp_path, "f")
    if text is None:
        (tmp_path / "state" / FILE).unlink()
    else:
        (tmp_path / "state" / FILE).write_bytes(text)
    with pytest.raises(SettingsError, match=f"1 pods of this instance are in the {other} store"):
        check_store(settings(tmp_path, store, pods=1), tmp_path, "f")
    check_store(settings(tmp_path, other), tmp_path, "f")
    assert (tmp_path / "state" / FILE).read_text() == other


def test_the_other_store_is_looked_at_once(tmp_path: Path) -> None:
    for _ in range(2):
        check_store(settings(tmp_path, "transient"), tmp_path, "f")
    assert [call.split(" --format")[0] for call in calls(tmp_path)] == ["--version", "pod ps", "--version"]
    check_store(settings(tmp_path, "default"), tmp_path, "f")
    assert calls(tmp_path)[-1].startswith("--transient-store pod ps --format json --filter label=")
    assert (tmp_path / "state" / FILE).read_text() == "default"


@pytest.mark.parametrize("store", ["default", "transient"])
def test_with_pods_in_the_other_store_nothing_changes(tmp_path: Path, store: str) -> None:
    other = {"default": "transient", "transient": "default"}[store]
    check_store(settings(tmp_path, other), tmp_path, "f")
    for _ in range(2):
        with pytest.raises(SettingsError) as refused:
            check_store(settings(tmp_path, store, pods=7), tmp_path, "rootlet.yaml")
    words = str(refused.value)
    assert "rootlet.yaml" in words
    assert f"podman.store: 7 pods of this instance are in the {other} store (default/web-0, default/web-1" in words
    assert "web-5" not in words
    option = "--transient-store " if other == "transient" else ""
    assert f"podman {option}pod rm --force $(" in words
    check_store(settings(tmp_path, other, pods=7), tmp_path, "f")
    check_store(settings(tmp_path, store), tmp_path, "f")


def test_a_podman_that_does_not_answer_is_no_empty_store(tmp_path: Path) -> None:
    made = settings(tmp_path, "transient")
    Path(made.podman.path).write_text("#!/bin/sh\necho broken >&2\nexit 125\n")
    with pytest.raises(SettingsError, match="whether pods are left in the default store is not known"):
        check_store(made, tmp_path, "f")


@pytest.mark.parametrize("version", ["4.9.4", "4.3.1", "4.3.1-rhel"])
def test_an_older_podman_is_refused_by_the_settings_name(tmp_path: Path, version: str) -> None:
    with pytest.raises(SettingsError, match=r"podman\.store: transient needs Podman 5\.0 or newer, and this is 4\."):
        check_store(settings(tmp_path, "transient", version=version), tmp_path, "f")


def test_a_users_own_service_is_refused(tmp_path: Path) -> None:
    made = settings(tmp_path, "transient")
    by_itself = msgspec.structs.replace(made, podman=msgspec.structs.replace(made.podman, service="auto"))
    check_store(by_itself, tmp_path, "f")
    with socket.socket(socket.AF_UNIX) as users:
        (tmp_path / "run" / "podman").mkdir(parents=True)
        users.bind(str(tmp_path / "run" / "podman" / "podman.sock"))
        with pytest.raises(SettingsError, match="and this is the user's: set"):
            check_store(by_itself, tmp_path / "run", "f")
