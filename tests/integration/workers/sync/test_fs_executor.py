"""Work in file systems that may hang: its deadline, its threads, and the syncs that need it."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from ipc.k8s.api.v1.container import VolumeMount
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.volume import HostPathVolumeSource, Volume
from tests.support.hung_file_system import hung, is_there
from tests.support.pods import container, pod
from tests.support.sync import FakeHost
from workers.fs.fs_executor import FsExecutor
from workers.volumemanager.plugins.back_off import MountBackOff

DEADLINE_S = 1.0


class Server:
    """A server that a file system waits for."""

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.asked = 0

    def ask(self) -> int:
        self.asked += 1
        self.answers.wait(30.0)
        return self.asked


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.answers.set()


def test_what_does_not_answer_has_a_deadline_and_one_thread(server: Server) -> None:
    async def scenario() -> None:
        with closing(FsExecutor(deadline_s=DEADLINE_S)) as files:
            for _ in range(3):
                with pytest.raises(TimeoutError, match="timed out waiting for the file system"):
                    await files.run("v", server.ask)
            assert server.asked == 1
            assert await files.run("other", str.upper, "x") == "X"
            server.answers.set()
            assert await files.run("v", server.ask) == 2

    asyncio.run(scenario())


def test_a_subject_is_idle_once_its_thread_has_ended_not_once_nobody_waits_for_it(server: Server) -> None:
    async def scenario() -> None:
        with closing(FsExecutor(deadline_s=DEADLINE_S)) as files:
            assert files.is_idle("v")
            with pytest.raises(TimeoutError):
                await files.run("v", server.ask)
            assert not files.is_idle("v")
            assert files.is_idle("other")
            server.answers.set()
            await files.run("v", server.ask)
            assert files.is_idle("v")

    asyncio.run(scenario())


def test_who_finds_no_thread_has_a_deadline_too_and_leaves_nothing_behind(server: Server) -> None:
    async def scenario() -> None:
        with closing(FsExecutor(deadline_s=DEADLINE_S, max_threads=1)) as files:
            for subject in ("v", "other"):
                with pytest.raises(TimeoutError):
                    await files.run(subject, server.ask)
            assert server.asked == 1
            server.answers.set()
            assert await files.run("third", server.ask) == 2

    asyncio.run(scenario())


@pytest.mark.parametrize("error", [TimeoutError(errno.ETIMEDOUT, "of the server"), FileNotFoundError("gone")])
def test_what_the_file_system_says_is_passed_on(error: OSError) -> None:
    def fail() -> None:
        raise error

    async def scenario() -> None:
        with closing(FsExecutor()) as files, pytest.raises(type(error), match=str(error.args[-1])):
            await files.run("v", fail)

    asyncio.run(scenario())


def seeing(path: Path) -> Pod:
    volume = Volume(name="v", host_path=HostPathVolumeSource(path=str(path), type="Directory"))
    main = container("main", volume_mounts=(VolumeMount(name="v", mount_path="/v"),))
    return pod(main, volumes=(volume,))


@contextmanager
def on_real_host(tmp_path: Path, deadline_s: float = DEADLINE_S) -> Iterator[FakeHost]:
    host = FakeHost(tmp_path / "logs")
    with closing(FsExecutor(deadline_s=deadline_s)) as files:
        host.configure("services", files=files)
        yield host


def threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("files")}


@pytest.fixture
def hung_directory(tmp_path: Path) -> Iterator[Path]:
    if not is_there():
        pytest.skip("no fusermount3, or /dev/fuse is not for us")
    place = tmp_path / "hung"
    place.mkdir()
    with hung(place) as below:
        yield below


def test_a_pod_whose_host_path_hangs_waits_with_one_thread_and_no_other_pod_with_it(
    tmp_path: Path, hung_directory: Path
) -> None:
    async def scenario() -> None:
        with on_real_host(tmp_path) as host:
            before = threads()
            for _ in range(3):
                host.configure("volumes", back_off=MountBackOff())
                done = await host.sync(seeing(hung_directory))
                assert (done.error, host.reasons()) == ("FailedMount", ["FailedMount"])
                assert done.message.endswith('for volume "v" : timed out waiting for the file system')
            assert len(threads() - before) == 1
            assert not (await host.sync(pod("other", uid="another"))).error

    asyncio.run(scenario())


def test_a_pod_that_is_stopped_does_not_wait_for_a_host_path_that_hangs(tmp_path: Path, hung_directory: Path) -> None:
    async def scenario() -> None:
        cancel = asyncio.Event()
        asyncio.get_running_loop().call_later(0.1, cancel.set)
        with on_real_host(tmp_path, deadline_s=60.0) as host:
            done = await asyncio.wait_for(host.sync(seeing(hung_directory), cancel=cancel), 10.0)
        assert done.cancelled

    asyncio.run(scenario())
