"""Volumes of objects through whole syncs: when a pod waits, when it goes on with what it has, where files lie."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ipc.k8s.api.v1.config_objects import ConfigMap, Secret
from ipc.k8s.podobjects.config_objects import ConfigObjects
from ipc.link.messages.pod_worker import WorkType
from tests.support.object_volumes import (
    APP,
    BOTH,
    OF_ALL,
    OF_CONFIG_MAP,
    OF_POD,
    OF_SECRET,
    SECRET,
    Scenario,
    place,
    with_volumes,
)
from tests.support.pods import UID
from tests.support.sync import FakeHost


def said(host: FakeHost) -> list[str]:
    """Messages of the FailedMount events so far; all events are forgotten."""
    found = [event.message for event in host.events if event.reason == "FailedMount"]
    assert SECRET not in str(host.events)
    host.events.clear()
    return found


def test_each_kind_lies_at_its_place(on_host: Callable[[Scenario], None]) -> None:
    async def scenario(host: FakeHost) -> None:
        made = with_volumes(OF_CONFIG_MAP, OF_SECRET, OF_POD, OF_ALL, a="1")
        done = await host.sync(made, objects=BOTH)
        assert (done.error, said(host)) == ("", [])
        assert (place(host, OF_CONFIG_MAP) / "key").read_text() == "1"
        assert (place(host, OF_SECRET) / "password").read_text() == SECRET
        assert (place(host, OF_POD) / "labels").read_text() == 'a="1"'
        assert (place(host, OF_ALL) / "password").read_text() == SECRET
        assert (place(host, OF_ALL) / "key").read_text() == "1"
        assert str(place(host, OF_CONFIG_MAP)).endswith(f"pods/{UID}/volumes/kubernetes.io~configmap/v")
        for volume in (OF_CONFIG_MAP, OF_SECRET):
            path = place(host, volume)
            modes = [stat.S_IMODE(directory.stat().st_mode) for directory in (path, *path.parents[:4])]
            assert modes == [0o755, 0o700, 0o700, 0o700, 0o700]
        assert stat.S_IMODE((place(host, OF_SECRET) / "password").stat().st_mode) == 0o400

    on_host(scenario)


def test_a_pod_waits_for_what_is_missing(on_host: Callable[[Scenario], None]) -> None:
    async def scenario(host: FakeHost) -> None:
        made = with_volumes(OF_CONFIG_MAP, OF_SECRET)
        done = await host.sync(made)
        assert done.error == "FailedMount"
        assert said(host) == [
            'MountVolume.SetUp failed for volume "v" : configmap "app" not found',
            'MountVolume.SetUp failed for volume "s" : secret "key" not found',
        ]
        assert not host.podman.containers
        assert (await host.sync(made, objects=ConfigObjects(config_maps={"app": APP}))).error == "FailedMount"
        assert said(host) == ['MountVolume.SetUp failed for volume "s" : secret "key" not found']
        assert (await host.sync(made, objects=BOTH)).error == ""
        assert list(host.running()) == ["main"]

    on_host(scenario)


def test_a_missing_key_is_told(on_host: Callable[[Scenario], None]) -> None:
    async def scenario(host: FakeHost) -> None:
        volume = {"name": "v", "configMap": {"name": "app", "items": [{"key": "k", "path": "k"}]}}
        assert (await host.sync(with_volumes(volume), objects=BOTH)).error == "FailedMount"
        text = 'MountVolume.SetUp failed for volume "v" : configmap references non-existent config key: k'
        assert said(host) == [text]

    on_host(scenario)


def test_what_is_new_is_shown_and_disturbs_nobody(on_host: Callable[[Scenario], None]) -> None:
    async def scenario(host: FakeHost) -> None:
        made = with_volumes(OF_CONFIG_MAP, OF_SECRET, OF_POD, a="1")
        await host.settle(made, objects=BOTH)
        running = host.running()
        directory = place(host, OF_CONFIG_MAP).stat().st_ino
        newer = ConfigObjects(
            config_maps={"app": ConfigMap(data={"key": "2", "more": "3"})},
            secrets={"key": Secret(data={"password": b"another"})},
        )
        relabelled = with_volumes(OF_CONFIG_MAP, OF_SECRET, OF_POD, a="2", b="3")
        done = await host.sync(relabelled, objects=newer)
        assert done.summary.endswith("wrote volume v, wrote volume s, wrote volume p")
        assert not done.changed
        assert (place(host, OF_CONFIG_MAP) / "key").read_text() == "2"
        assert (place(host, OF_CONFIG_MAP) / "more").read_text() == "3"
        assert (place(host, OF_SECRET) / "password").read_text() == "another"
        assert (place(host, OF_POD) / "labels").read_text() == 'a="2"\nb="3"'
        assert place(host, OF_CONFIG_MAP).stat().st_ino == directory, "it is what containers have mounted"
        assert host.running() == running
        assert (await host.sync(relabelled, objects=newer)).summary.endswith("nothing to do")

    on_host(scenario)


@pytest.mark.parametrize("is_new_worker", [False, True])
def test_a_running_pod_keeps_what_it_has(on_host: Callable[[Scenario], None], is_new_worker: bool) -> None:
    async def scenario(host: FakeHost) -> None:
        made = with_volumes(OF_CONFIG_MAP, OF_SECRET)
        await host.settle(made, objects=BOTH)
        running = host.running()
        if is_new_worker:
            host.next_worker()
        host.events.clear()
        assert (await host.sync(made)).error == ""
        assert said(host) == [
            'MountVolume.SetUp failed for volume "v" : configmap "app" not found',
            'MountVolume.SetUp failed for volume "s" : secret "key" not found',
        ]
        assert (place(host, OF_SECRET) / "password").read_text() == SECRET
        assert host.running() == running
        host.podman.exit(running["main"], 1)
        await host.settle(made)
        assert list(host.running()) == ["main"], "its containers start again with what is there"

    on_host(scenario)


def test_a_running_pod_waits_for_a_volume_that_was_never_there(on_host: Callable[[Scenario], None]) -> None:
    async def scenario(host: FakeHost) -> None:
        await host.settle(with_volumes(OF_CONFIG_MAP), objects=BOTH)
        done = await host.sync(with_volumes(OF_CONFIG_MAP, OF_SECRET))
        assert done.error == "FailedMount"
        assert "secret" in done.message
        assert "configmap" not in done.message

    on_host(scenario)


def test_another_life_of_the_host_begins_with_what_there_is_now(on_host: Callable[[Scenario], None]) -> None:
    async def scenario(host: FakeHost) -> None:
        made = with_volumes(OF_CONFIG_MAP)
        await host.settle(made, objects=BOTH)
        host.podman.reboot()
        assert (await host.sync(made)).error == "FailedMount"

    on_host(scenario)


@pytest.mark.parametrize("volume", [OF_SECRET, OF_ALL])
def test_a_secret_is_written_to_no_disk(on_host: Callable[[Scenario], None], volume: dict[str, Any]) -> None:
    async def scenario(host: FakeHost) -> None:
        host.memory_dir = host.logs_dir.with_name("disk")
        host.next_worker()
        done = await host.sync(with_volumes(volume), objects=BOTH)
        assert done.error == "FailedMount"
        (text,) = said(host)
        assert f"{host.memory_dir} is no file system in memory but " in text
        assert "choose another memoryDir" in text
        assert [path for path in host.memory_dir.rglob("*") if path.is_file()] == []

    on_host(scenario)


def test_without_a_directory_there_is_no_volume(on_host: Callable[[Scenario], None]) -> None:
    async def scenario(host: FakeHost) -> None:
        host.configure("volumes", memory_dir="")
        assert (await host.sync(with_volumes(OF_SECRET), objects=BOTH)).error == "FailedMount"
        assert said(host) == ['MountVolume.SetUp failed for volume "s" : there is no directory for it']

    on_host(scenario)


@pytest.mark.parametrize("step", range(4))
def test_a_link_on_the_way_is_not_followed(on_host: Callable[[Scenario], None], tmp_path: Path, step: int) -> None:
    async def scenario(host: FakeHost) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        path = place(host, OF_SECRET)
        link = (*reversed(path.parents[:3]), path)[step]
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(outside)
        assert (await host.sync(with_volumes(OF_SECRET), objects=BOTH)).error == "FailedMount"
        assert said(host) == [f"MountVolume.SetUp failed for volume \"s\" : '{link.name}': Not a directory"]
        await host.sync(None, WorkType.TERMINATED, uid=UID, remove=True)
        assert list(outside.iterdir()) == []

    on_host(scenario)


# --- the end -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("remove", [False, True])
def test_volumes_go_with_the_pods_end(on_host: Callable[[Scenario], None], remove: bool) -> None:
    async def scenario(host: FakeHost) -> None:
        made = with_volumes(OF_CONFIG_MAP, OF_SECRET)
        await host.settle(made, objects=BOTH)
        await host.sync(made, WorkType.TERMINATING, grace_period_s=1)
        assert (place(host, OF_SECRET) / "password").exists()
        assert (await host.sync(made, WorkType.TERMINATED, remove=remove)).error == ""
        assert list(host.memory_dir.rglob("*volumes*")) == []
        assert list(host.pods_dir.rglob("*volumes*")) == []
        if remove:
            assert [*host.memory_dir.iterdir(), *host.pods_dir.iterdir()] == []
        assert (await host.sync(made, WorkType.TERMINATED, remove=remove)).error == ""

    on_host(scenario)


@pytest.mark.parametrize("uid", ["..", ".", "", "a/b", "u" * 300])
def test_an_orphan_without_a_name_has_no_volumes(on_host: Callable[[Scenario], None], uid: str) -> None:
    async def scenario(host: FakeHost) -> None:
        for root in (host.memory_dir, host.pods_dir):
            (root / "volumes").mkdir(parents=True)
            (root.parent / "volumes").mkdir(exist_ok=True)
        await host.sync(None, WorkType.TERMINATED, uid=uid, remove=True)
        for root in (host.memory_dir, host.pods_dir):
            assert (root / "volumes").is_dir()
            assert (root.parent / "volumes").is_dir()

    on_host(scenario)
