"""Sight that containers on real Podman have of a volume that the agent writes while they run."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.target import DEADLINE_S, PodmanTarget, container_spec, eventually, exited, pod_spec
from tests.support.podman_service import PodmanService, wait_until
from tests.support.variants import seldom
from workers.fs.directories import private_root
from workers.kubecontainer.runtime import InspectedContainer
from workers.volumemanager.plugins.atomic_writer import write_payload
from workers.volumemanager.plugins.payload import FileProjection, Payload

pytestmark = pytest.mark.podman

WALL = 1_763_665_431.0
CHANGES = 50
KEYS = tuple(f"key-{number}" for number in range(8))
OTHER_USER = "1000:1000"


@pytest.fixture
async def target(podman_service: PodmanService) -> AsyncIterator[PodmanTarget]:
    made = PodmanTarget(podman_service)
    yield made
    await made.clean()


@pytest.fixture(params=["disk", "memory"])
def volume(request: pytest.FixtureRequest) -> Iterator[Path]:
    """As deep in private directories as an agent's, on either kind of file system."""
    root = Path(tempfile.mkdtemp(dir="/dev/shm" if request.param == "memory" else None))
    made = root / "uid" / "volumes" / "v"
    for directory in reversed((made, *made.parents[:2])):
        directory.mkdir(mode=0o700)
    yield made
    shutil.rmtree(root)


def write(volume: Path, mode: int = 0o644, mountpoints: tuple[str, ...] = (), **files: str) -> None:
    """``a__b`` is a path ``a/b``."""
    project(
        volume,
        {path.replace("__", "/"): FileProjection(text.encode(), mode) for path, text in files.items()},
        mountpoints,
    )


def project(volume: Path, payload: Payload, mountpoints: tuple[str, ...] = ()) -> None:
    with private_root(str(volume)) as directory:
        write_payload(directory, payload, WALL, mountpoints=mountpoints)
        os.fchmod(directory, 0o755)


def mount(source: Path, destination: str = "/etc/app", *options: str) -> dict[str, Any]:
    return {
        "type": "bind",
        "source": str(source),
        "destination": destination,
        "options": ["rbind", "rprivate", *(options or ("ro",))],
    }


class Reader:
    """A container that runs a script with such mounts, and what it writes to a directory of its own."""

    def __init__(self, target: PodmanTarget, said: Path) -> None:
        self._target, self._said = target, said
        self._id = ""

    async def start(self, script: str, *mounts: dict[str, Any], **fields: Any) -> Reader:
        self._said.chmod(0o777)
        pod = await self._target.runtime.create_pod(pod_spec(self._target))
        places = [*mounts, mount(self._said, "/said", "rw")]
        command = ("sh", "-c", f"{{ {script}\n}} >/said/out 2>&1")
        spec = container_spec(self._target, pod, command, mounts=places, **fields)
        self._id = await self._target.runtime.create_container(spec)
        await self._target.runtime.start_container(self._id)
        return self

    async def end(self) -> InspectedContainer:
        return await exited(self._target, self._id)

    async def kill(self) -> None:
        await self._target.runtime.kill_container(self._id, "SIGKILL")
        await eventually(lambda: self._target.runtime.inspect_container(self._id), lambda found: not found.pid)

    def says(self) -> str:
        return (self._said / "out").read_text() if (self._said / "out").exists() else ""

    def until(self, words: str) -> None:
        wait_until(lambda: words in self.says(), DEADLINE_S)


@pytest.fixture
def reader(target: PodmanTarget, tmp_path: Path) -> Reader:
    (tmp_path / "said").mkdir()
    return Reader(target, tmp_path / "said")


async def test_files_modes_and_that_nothing_can_be_written(volume: Path, reader: Reader) -> None:
    write(volume, 0o440, a="1", deep__x="2")
    script = "cat /etc/app/a /etc/app/deep/x; ls -lL /etc/app/a; echo 3 >/etc/app/a; echo 3 >/etc/app/..data/b"
    await (await reader.start(script, mount(volume))).end()
    content, *errors = reader.says().splitlines()
    assert content.startswith("12-r--r-----")
    assert [error.rpartition(": ")[2] for error in errors] == ["Read-only file system"] * 2


@pytest.mark.parametrize(("mode", "reads"), [seldom(0o400, False), (0o440, False), (0o444, True), seldom(0o644, True)])
async def test_another_user_reads_what_everybody_may(volume: Path, reader: Reader, mode: int, reads: bool) -> None:
    """As upstream: who shall read a file of mode 0400 without being root needs an fsGroup."""
    write(volume, mode, a="1")
    await (await reader.start("cat /etc/app/a", mount(volume), user=OTHER_USER)).end()
    assert (reader.says() == "1") is reads
    assert ("Permission denied" in reader.says()) is not reads


async def test_a_change_is_seen_below_the_directory_and_not_below_a_part_of_it(volume: Path, reader: Reader) -> None:
    write(volume, a="old", gone="x")
    script = "while :; do echo $(cat /etc/app/a) $(cat /part) $(ls /etc/app); sleep 0.05; done"
    await reader.start(script, mount(volume), mount((volume / "a").resolve(), "/part"))
    reader.until("old old a gone\n")
    write(volume, a="new", come="y")
    reader.until("new old a come\n")
    await reader.kill()


READ_ALL = f"""
round=0
while [ ! -e /said/enough ]; do
    round=$((round + 1))
    echo $round >/said/round
    cd /etc/app/..data || echo no version
    first=
    for key in {" ".join(KEYS)}; do
        text=$(cat $key 2>/dev/null) || break
        [ ${{#text}} = 4000 ] || echo half of $key
        [ "$text" = "${{first:=$text}}" ] || echo mixture of $text and $first
    done
    cd /etc/app
    for key in {" ".join(KEYS)}; do
        text=$(cat $key) || echo no $key
        [ ${{#text}} = 4000 ] || echo half of $key
    done
done
echo last ${{text%%x*}}
"""
"""Readers of a version by its directory see one payload, as long as it is there. By the names that users know each file
is there at any time."""


async def test_no_reader_sees_a_mixture_or_a_gap(volume: Path, reader: Reader, tmp_path: Path) -> None:
    def put(number: int) -> None:
        project(volume, {key: FileProjection(f"{number}".ljust(4000, "x").encode(), 0o644) for key in KEYS})

    def read_another_time(after: str) -> str:
        """In the middle of a round."""
        wait_until(lambda: rounds.exists() and rounds.read_text() not in ("", after), DEADLINE_S, 0.001)
        return rounds.read_text()

    rounds, seen = tmp_path / "said" / "round", ""
    put(0)
    await reader.start(READ_ALL, mount(volume))
    for number in range(1, CHANGES + 1):
        seen = read_another_time(seen)
        put(number)
    read_another_time(seen)
    (tmp_path / "said" / "enough").write_text("")
    await reader.end()
    assert reader.says() == f"last {CHANGES}\n"


async def test_mounts_inside_of_a_mount(volume: Path, reader: Reader, tmp_path: Path) -> None:
    """A directory that the writer has made, and a file that the runtime makes room for; both outlive a change."""
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "file").write_text("inner\n")
    write(volume, mountpoints=("sub",), a="old")
    script = "while :; do cat /etc/app/a /etc/app/sub/file /etc/app/file; sleep 0.05; done"
    mounts = (mount(volume), mount(inner, "/etc/app/sub"), mount(inner / "file", "/etc/app/file"))
    await reader.start(script, *mounts)
    reader.until("oldinner\ninner\n")
    write(volume, mountpoints=("sub",), a="new")
    reader.until("newinner\ninner\nnewinner\ninner\n")
    await reader.kill()
    assert "can't open" not in reader.says()


async def test_a_directory_that_is_made_anew_is_not_seen(volume: Path, reader: Reader) -> None:
    """Why a volume's directory stays the same while containers run."""
    write(volume, a="old")
    await reader.start("while :; do cat /etc/app/a; ls /etc/app; sleep 0.05; done", mount(volume))
    reader.until("olda\n")
    volume.rename(volume.with_name("moved"))  # noqa: ASYNC240
    shutil.rmtree(volume.with_name("moved"))
    volume.mkdir()  # noqa: ASYNC240
    write(volume, a="new")
    reader.until("can't open")
    await reader.kill()
    assert "new" not in reader.says()
