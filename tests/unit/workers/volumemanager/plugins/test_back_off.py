"""Pauses after mounts that failed: how long they are, when they end, and what is told meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from ipc.k8s.api.v1.config_objects import ConfigMap
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.volume import HostPathVolumeSource, Volume
from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from ipc.k8s.podobjects.config_objects import ConfigObjects
from tests.fakes.clock import simulate
from tests.support.pods import pod
from tests.support.sync import FakeHost
from workers.sync.pod_snapshot import PodSnapshot
from workers.volumemanager.plugins import back_off
from workers.volumemanager.plugins.back_off import MountBackOff

NOW = 1_800_000_000.0
VOLUME = Volume(name="v", host_path=HostPathVolumeSource(path="/nowhere", type="Directory"))
OTHER = msgspec.structs.replace(VOLUME, host_path=HostPathVolumeSource(path="/elsewhere", type="Directory"))


def snapshot(uid: str = "u", **maps: ConfigMap) -> PodSnapshot:
    return PodSnapshot(
        pod=pod("p", uid=uid),
        objects=ConfigObjects(config_maps=maps),
        status=RuntimePodStatus(uid=uid, namespace="default", name="p"),
    )


def test_each_pause_is_twice_the_one_before_up_to_two_minutes() -> None:
    failures, now, pauses = MountBackOff(), NOW, []
    for _ in range(10):
        failure = failures.failed(snapshot(), VOLUME, "words", now)
        assert failures.waiting(snapshot(), VOLUME, failure.retry_at - 0.01) == failure
        now = failure.retry_at
        assert failures.waiting(snapshot(), VOLUME, now) is None
        pauses.append(failure.pause_s)
    assert pauses == [0.5, 1, 2, 4, 8, 16, 32, 64, 122, 122]


def test_a_pause_is_of_one_volume_of_one_pod() -> None:
    failures = MountBackOff()
    failures.failed(snapshot(), VOLUME, "words", NOW)
    assert failures.waiting(snapshot("another"), VOLUME, NOW) is None
    assert failures.waiting(snapshot(), Volume(name="w"), NOW) is None


def test_what_the_volume_is_made_of_ends_its_pause() -> None:
    failures = MountBackOff()
    first = failures.failed(snapshot(), VOLUME, "words", NOW)
    assert failures.waiting(snapshot(), OTHER, NOW) is None
    changed = snapshot(found=ConfigMap(data={"a": "b"}))
    assert failures.waiting(changed, VOLUME, NOW) is None
    assert failures.failed(changed, VOLUME, "words", NOW).pause_s == first.pause_s


def test_a_success_the_pods_end_and_a_clock_that_was_set_back_end_it_too() -> None:
    failures = MountBackOff()
    failures.failed(snapshot(), VOLUME, "words", NOW)
    assert failures.waiting(snapshot(), VOLUME, NOW - 3600.0) is None
    failures.succeeded(snapshot(), VOLUME)
    assert failures.waiting(snapshot(), VOLUME, NOW) is None
    failures.failed(snapshot(), VOLUME, "words", NOW)
    failures.forget("u")
    assert failures.waiting(snapshot(), VOLUME, NOW) is None


def test_no_more_are_remembered_than_there_is_room_for() -> None:
    failures = MountBackOff()
    for number in range(back_off.MAX_ENTRIES + 1):
        failures.failed(snapshot(str(number)), VOLUME, "words", NOW)
    assert failures.waiting(snapshot("0"), VOLUME, NOW) is None
    assert failures.waiting(snapshot("1"), VOLUME, NOW) is not None


def test_a_sync_within_the_pause_tries_nothing_and_says_when(tmp_path: Path) -> None:
    place = tmp_path / "place"
    volume = Volume(name="v", host_path=HostPathVolumeSource(path=str(place), type="Directory"))
    plain = pod("p")
    made: Pod = msgspec.structs.replace(plain, spec=msgspec.structs.replace(plain.spec, volumes=(volume,)))

    async def scenario() -> None:
        host = FakeHost(tmp_path / "logs")
        first = await host.sync(made)
        words = f'MountVolume.SetUp failed for volume "v" : hostPath {place} doesn\'t exist'
        assert [event.message for event in host.events] == [words]
        assert first.retry_at > host.clock.now().wall
        place.mkdir()
        within = await host.sync(made)
        assert (within.error, within.message, within.retry_at) == ("FailedMount", words, first.retry_at)
        assert len(host.events) == 1
        await asyncio.sleep(back_off.INITIAL_PAUSE_S)
        assert (await host.sync(made)).error == ""

    simulate(scenario)
