"""Measuring what a pod takes of the disk, at the end of a sync that has nothing else to do."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.host.eviction_marks import evicted
from ipc.k8s.api.v1.container import ResourceRequirements, VolumeMount
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.volume import EmptyDirVolumeSource, Volume
from ipc.k8s.kubecontainer.pod_failure import PodFailure, decode_failure
from ipc.link.messages.pod_worker import WorkType
from tests.fakes.podman import FakePodman
from tests.support.pods import UID, container, pod
from tests.support.sync import FakeHost, on_host
from workers.eviction.limits import UNCOUNTED
from workers.userns.entry import STEPS
from workers.userns.unshare import Step, Unshare, UnshareTimeout

KIB = 1024
MESSAGE = 'Usage of EmptyDir volume "v" exceeds the limit "64Ki". '
FAILURE = PodFailure(reason="Evicted", message=MESSAGE)


def kept(host: FakeHost) -> dict[str, PodFailure]:
    """Marks of evicted pods."""
    return {uid: decode_failure(text) for uid, text in evicted(host.pods_dir).items()}


def limited() -> Pod:
    main = container("main", volume_mounts=(VolumeMount(name="v", mount_path="/v"),))
    return pod(main, volumes=(Volume(name="v", empty_dir=EmptyDirVolumeSource(size_limit="64Ki")),))


def volume_directory(host: FakeHost) -> Path:
    return host.pods_dir / UID / "volumes" / "kubernetes.io~empty-dir" / "v"


def fill(directory: Path, kib: int) -> None:
    (directory / "file").write_bytes(b"x" * kib * KIB)


def test_who_is_beyond_the_limit_is_told_of_and_marked(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        await host.sync(limited())
        fill(volume_directory(host), 32)
        assert (await host.sync(limited())).evicted == ""
        fill(volume_directory(host), 128)
        done = await host.sync(limited())
        assert (done.evicted, done.changed) == (MESSAGE, False)
        assert done.summary == "found 1 of 1 containers as they should be; to be evicted"
        assert kept(host) == {UID: FAILURE}
        assert host.running().keys() == {"main"}, "that it goes down is the master's decision"

    on_host(tmp_path / "logs", scenario)


def test_that_a_pod_is_evicted_is_kept_before_anything_of_it_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(host: FakeHost) -> None:
        await host.sync(limited())
        seen: list[dict[str, PodFailure]] = []
        stop = FakePodman.kill_container

        def watched(podman: FakePodman, id: str, name: str) -> None:
            seen.append(kept(host))
            stop(podman, id, name)

        monkeypatch.setattr(FakePodman, "kill_container", watched)
        await host.sync(limited(), WorkType.TERMINATING, evicted=FAILURE, grace_period_s=1)
        assert seen
        assert all(marks == {UID: FAILURE} for marks in seen)

    on_host(tmp_path / "logs", scenario)


def test_a_critical_pod_is_beyond_no_limit(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        critical = limited()
        critical = msgspec.structs.replace(critical, spec=msgspec.structs.replace(critical.spec, priority=2 * 10**9))
        await host.sync(critical)
        fill(volume_directory(host), 128)
        assert (await host.sync(critical)).evicted == ""

    on_host(tmp_path / "logs", scenario)


def test_a_sync_that_has_something_to_do_does_not_measure(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        await host.sync(limited())
        fill(volume_directory(host), 128)
        host.podman.exit(host.running()["main"])
        done = await host.sync(limited())
        assert (done.evicted, done.changed) == ("", True)

    on_host(tmp_path / "logs", scenario)


def test_logs_count_for_their_container(tmp_path: Path) -> None:
    resources = ResourceRequirements(limits={"ephemeral-storage": "64Ki"})
    of = pod(container("main", resources=resources))

    async def scenario(host: FakeHost) -> None:
        await host.sync(of)
        [log] = host.logs_dir.glob("*/main/0.log")
        log.write_bytes(b"x" * 128 * KIB)
        assert (await host.sync(of)).evicted.startswith("Pod ephemeral local storage usage exceeds")

    on_host(tmp_path / "logs", scenario)


def test_depth_hides_nothing(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        await host.sync(limited())
        deep = volume_directory(host).joinpath(*["d"] * 150)
        deep.mkdir(parents=True)
        fill(deep, 128)
        assert (await host.sync(limited())).evicted == MESSAGE

    on_host(tmp_path / "logs", scenario)


@pytest.mark.parametrize("bound", ["files", "seconds"])
def test_more_files_than_are_counted_are_beyond_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    """A process of its own counts them, and stops too."""
    monkeypatch.setattr("workers.eviction.manager.SMALL_TREE_FILES", 2)

    def inside(_unshare: Unshare, steps: Sequence[Step]) -> tuple[Any, ...]:
        if bound == "seconds":
            raise UnshareTimeout("not done")
        return tuple(STEPS[name](**given) for name, given in steps)

    async def scenario(host: FakeHost) -> None:
        await host.sync(limited())
        for number in range(3):
            (volume_directory(host) / str(number)).touch()
        monkeypatch.setattr(Unshare, "run", lambda _unshare, steps: tuple(STEPS[n](**given) for n, given in steps))
        assert (await host.sync(limited())).evicted == "", "so many are counted elsewhere"
        monkeypatch.setattr(Unshare, "run", inside)
        monkeypatch.setattr("workers.eviction.manager.MAX_FILES", 2)
        assert (await host.sync(limited())).evicted == MESSAGE + UNCOUNTED

    on_host(tmp_path / "logs", scenario)


def test_a_small_tree_that_takes_long_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*_: Any) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    def hangs(*_: Any) -> tuple[Any, ...]:
        raise UnshareTimeout("podman unshare: not done within 60 s")

    async def scenario(host: FakeHost) -> None:
        await host.sync(limited())
        monkeypatch.setattr("workers.eviction.manager.used_bytes", closed)
        closed.__name__ = "used_bytes"
        monkeypatch.setattr(Unshare, "run", hangs)
        assert (await host.sync(limited())).evicted == ""
        assert host.events[-1].reason == "FailedStorageMeasure"

    on_host(tmp_path / "logs", scenario)


def test_what_cannot_be_measured_is_told_and_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_path: str, _max_files: int) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    async def scenario(host: FakeHost) -> None:
        await host.sync(limited())
        monkeypatch.setattr("workers.eviction.manager.used_bytes", fail)
        host.reasons()
        assert (await host.sync(limited())).evicted == ""
        [event] = host.events
        assert event.reason == "FailedStorageMeasure"
        assert event.message == "limits of local storage are not enforced: Input/output error"

    on_host(tmp_path / "logs", scenario)


def test_the_end_of_an_evicted_pod_frees_what_it_took_and_keeps_its_mark_and_logs(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        await host.sync(limited())
        fill(volume_directory(host), 128)
        await host.sync(limited(), WorkType.TERMINATING, grace_period_s=1)
        done = await host.sync(limited(), WorkType.TERMINATED, evicted=FAILURE)
        assert done.error == ""
        assert (await host.observe(UID)).containers == ()
        assert not volume_directory(host).exists()
        assert kept(host) == {UID: FAILURE}, "also when the full disk had not taken it before"
        assert list(host.logs_dir.glob("*/main/0.log"))

    on_host(tmp_path / "logs", scenario)
