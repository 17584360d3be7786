"""A node worker goes on with what the one before has inspected, where a list says that nothing else is so. In simulated
time on a fake Podman."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ipc.host.atomic_file import read_bounded
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimePodStatus
from ipc.link.messages.node_worker import Track
from tests.fakes.clock import simulate
from tests.support.node_worker import Host, asked
from workers.containers import inspect_file
from workers.containers.inspect_file import KEEP_S, InspectFile


async def before_and_after(host: Host, file: Path, meanwhile: Callable[[], object]) -> tuple[int, RuntimePodStatus]:
    """How many containers the second worker inspects until it has told of everything, and what it says of u1."""
    async with host.worker(inspect_file=str(file)):
        await asyncio.sleep(2 * KEEP_S)
    meanwhile()
    calls = host.calls("inspect_container")
    async with host.worker(inspect_file=str(file)) as master:
        inspected = host.calls("inspect_container") - calls
        master.send(Track(uid="u1", row=0))
        return inspected, master.status(await asked(master, "u1"))


def seen_after(tmp_path: Path, meanwhile: Callable[[Host, str], object]) -> tuple[int, RuntimePodStatus, str]:
    """Inspects and status with two pods of one container; and the id of that of u1."""

    async def run() -> tuple[int, RuntimePodStatus, str]:
        host = Host()
        container = host.running("u1")
        host.running("u2")
        return *await before_and_after(host, tmp_path / "inspects", lambda: meanwhile(host, container)), container

    return simulate(run)


def run_again(host: Host, id: str) -> None:
    host.podman.exit(id)
    host.podman.start_container(id)


def test_what_a_list_shows_unchanged_is_not_inspected_again(tmp_path: Path) -> None:
    inspected, status, container = seen_after(tmp_path, lambda host, id: None)
    assert inspected == 0
    assert [(c.id, c.state) for c in status.containers] == [(container, ContainerState.RUNNING)]
    assert len(status.sandboxes) == 1


def test_its_end_is_seen_by_the_process_as_ever(tmp_path: Path) -> None:
    async def run() -> None:
        host = Host()
        container = host.running("u1")
        file = str(tmp_path / "inspects")
        async with host.worker(inspect_file=file):
            await asyncio.sleep(2 * KEEP_S)
        async with host.worker(inspect_file=file) as master:
            master.send(Track(uid="u1", row=0))
            host.podman.mute = True
            before = len(master.reports)
            host.podman.exit(container, 3)
            await master.observation("u1", lambda s: s.containers[0].exit_code == 3, before)

    simulate(run)


@pytest.mark.parametrize(
    "meanwhile",
    [
        lambda host, id: host.podman.exit(id, 7),
        lambda host, id: run_again(host, id),
        lambda host, id: host.podman.container(id).labels.update(more="than before"),
    ],
    ids=["ended", "runs again", "other labels"],
)
def test_what_has_changed_is_inspected(tmp_path: Path, meanwhile: Callable[[Host, str], object]) -> None:
    inspected, _, _ = seen_after(tmp_path, meanwhile)
    assert inspected >= 1


def test_what_ended_meanwhile_is_told_as_it_ended(tmp_path: Path) -> None:
    _, status, _ = seen_after(tmp_path, lambda host, id: host.podman.exit(id, 7))
    assert [(c.state, c.exit_code) for c in status.containers] == [(ContainerState.EXITED, 7)]


def test_what_was_renamed_is_a_strangers(tmp_path: Path) -> None:
    """A renamed container's labels are signed with its old name."""
    _, status, _ = seen_after(tmp_path, lambda host, id: setattr(host.podman.container(id), "name", "other"))
    assert status.containers == ()


def test_what_is_gone_is_not_remembered(tmp_path: Path) -> None:
    _, status, _ = seen_after(tmp_path, lambda host, id: host.podman.remove_pod(host.podman.container(id).pod_id))
    assert status.is_empty()


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x82\xa6fields\x90\xaacontainers\x90"])
def test_a_file_that_is_not_ours_is_no_file(tmp_path: Path, data: bytes) -> None:
    inspected, status, _ = seen_after(tmp_path, lambda host, id: (tmp_path / "inspects").write_bytes(data))
    assert inspected == 4
    assert len(status.containers) == 1


def test_another_version_with_other_fields_reads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "inspects"
    seen_after(tmp_path, lambda host, id: None)
    assert len(InspectFile(str(file)).read()) == 4
    monkeypatch.setattr(inspect_file, "_FIELDS", ("id",))
    assert InspectFile(str(file)).read() == {}


def test_the_file_is_private_and_holds_only_what_lasts(tmp_path: Path) -> None:
    async def run() -> None:
        host = Host()
        host.podman.abandon(host.running("u1"), "stopping")
        async with host.worker(inspect_file=str(tmp_path / "new" / "inspects")):
            await asyncio.sleep(2 * KEEP_S)

    simulate(run)
    file = tmp_path / "new" / "inspects"
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert [c.is_infra for c in InspectFile(str(file)).read().values()] == [True]


def test_nothing_is_written_while_nothing_happens_and_a_full_disk_ends_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        host = Host()
        host.running("u1")
        file = tmp_path / "inspects"
        async with host.worker(inspect_file=str(file)):
            await asyncio.sleep(2 * KEEP_S)
            file.unlink()
            await asyncio.sleep(600.0)
            assert not file.exists()
            os.chmod(tmp_path, 0o500)
            host.running("u2")
            await asyncio.sleep(60.0)
            assert not file.exists()
            os.chmod(tmp_path, 0o700)
            host.running("u3")
            await asyncio.sleep(60.0)
            assert len(read_bounded(file, 1 << 20)) > 0

    simulate(run)
