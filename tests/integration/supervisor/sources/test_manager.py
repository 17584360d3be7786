"""Answers of `rootlet delete` and updates of it, by who states the pod; refused edits; a start without a checkpoint."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from ipc.host.clock import Instant, SystemClock
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podobjects.config_objects import ObjectKey, ObjectKind
from supervisor.config.settings import Seconds, Settings
from supervisor.protocol.events import KillPod
from supervisor.protocol.manifests import APPLY_SOURCE, FILE_SOURCE, HTTP_SOURCE, DesiredObject, DesiredPod
from supervisor.protocol.source_updates import ObjectUpdate, PodOperation, Update
from supervisor.sources import checkpoint
from supervisor.sources.manager import CHECKPOINT_FILE, NAMES_FILE, Change, SourceManager
from supervisor.sources.secret_places import KEY_FILE, SEALED_DIRECTORY
from tests.support.manifests import DEADLINE_S, manifest, pod_updates, text

LOOK_PERIOD = Seconds(0.2)
SOURCES = (FILE_SOURCE, APPLY_SOURCE, HTTP_SOURCE)
"""Each brings one change when it was read first."""


class LaterClock(SystemClock):
    """The host's, some seconds ahead."""

    def __init__(self) -> None:
        self.wall = 0.0

    def now(self) -> Instant:
        found = super().now()
        return msgspec.structs.replace(found, wall=found.wall + self.wall)


class Sources:
    """Real sources below a directory, and the changes that they give."""

    def __init__(self, directory: Path, memory: Path | None = None, applied_secrets: str = "Memory") -> None:
        self.manifests = directory / "manifests"
        self.manifests.mkdir(exist_ok=True)
        self.state = directory / "state"
        settings = Settings(
            instance_name="test",
            static_pod_path=self.manifests,
            state_dir=self.state,
            memory_dir=memory or directory / "memory",
            applied_secrets="Encrypted" if applied_secrets == "Encrypted" else "Memory",
            file_check_frequency_s=LOOK_PERIOD,
        )
        self.clock = LaterClock()
        self.desired = SourceManager(settings, self.clock)
        self.changes: AsyncIterator[Change] = self.desired.watch()

    async def read_all(self) -> list[Change]:
        """Changes until every source was read; what is lost is told beside them."""
        found: list[Change] = []
        while sum(not change.lost_secrets for change in found) < len(SOURCES):
            found.append(await self.next_change())
        return found

    async def next_change(self) -> Change:
        async with asyncio.timeout(DEADLINE_S):
            return await anext(self.changes)

    async def delete(self, name: str, grace_period_s: int | None = None, *, going_down: bool = False) -> int:
        reply = await self.desired.delete("default", name, grace_period_s, going_down=going_down)
        return reply.code


@pytest.fixture
async def sources(tmp_path: Path) -> AsyncIterator[Sources]:
    """All were read: ``of-a-file`` is in the directory, ``applied`` was applied."""
    made = Sources(tmp_path)
    (made.manifests / "a.yaml").write_bytes(text(manifest("of-a-file")))
    async with contextlib.aclosing(made.changes):  # type: ignore[type-var]
        for _ in SOURCES:
            await made.next_change()
        assert made.desired.all_ready
        assert (await made.desired.apply("-", text(manifest("applied")))).code == 200
        await made.next_change()
        yield made


async def test_what_was_applied_goes_and_a_grace_period_goes_with_it(sources: Sources) -> None:
    assert await sources.delete("applied", 0) == 200
    change = await sources.next_change()
    assert [(update.op, [pod.metadata.name for pod in update.pods]) for update in pod_updates(change.updates)] == [
        (PodOperation.REMOVE, ["applied"])
    ]
    assert change.kill == KillPod("default", "applied", 1)


async def test_a_config_map_is_applied_and_deleted(sources: Sources) -> None:
    """As a pod is."""
    key = ObjectKey(ObjectKind.CONFIG_MAP, "default", "app")
    found = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app"}}
    assert (await sources.desired.delete_object(key)).code == 404
    assert (await sources.desired.apply("-", text(found))).results == ("configmap/app created",)
    (came,) = (await sources.next_change()).updates
    assert isinstance(came, ObjectUpdate)
    assert [item.key for item in came.stated] == [key]
    assert (sources.state / NAMES_FILE).exists()
    reply = await sources.desired.delete_object(key)
    assert (reply.code, reply.results) == (200, ('configmap "app" deleted',))
    assert (await sources.next_change()).updates == (ObjectUpdate(gone=(key,)),)
    (sources.manifests / "b.yaml").write_bytes(text(found))
    await sources.next_change()
    reply = await sources.desired.delete_object(key)
    assert (reply.code, "b.yaml" in reply.message) == (403, True)


async def test_a_manifests_pod_stays_even_when_an_earlier_one_of_its_name_is_going_down(sources: Sources) -> None:
    assert await sources.delete("of-a-file", 1) == 403
    assert await sources.delete("of-a-file", 1, going_down=True) == 403


async def test_a_pod_that_nobody_states_any_more_can_only_go_sooner(sources: Sources) -> None:
    assert await sources.delete("forgotten", 1) == 404
    assert await sources.delete("forgotten", 5, going_down=True) == 200
    assert await sources.next_change() == Change(kill=KillPod("default", "forgotten", 5))


async def test_a_damaged_checkpoint_is_put_aside_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    sources = Sources(tmp_path)
    sources.state.mkdir()
    (sources.state / CHECKPOINT_FILE).write_text("{")
    assert sources.desired.restore() == ()
    assert "moved to desired.json.refused" in caplog.text


@pytest.mark.parametrize(
    ("kept", "is_ready"),
    [("", True), ("{", False), ("a pod of a file", False)],
    ids=["nothing before", "nobody knows of what was before", "a pod before"],
)
async def test_a_directory_that_is_not_there_counts_as_read_when_nothing_was_in_it(
    tmp_path: Path, kept: str, is_ready: bool
) -> None:
    sources = Sources(tmp_path)
    if kept == "a pod of a file":
        sources = await _kept_one(tmp_path, sources)
    elif kept:
        sources.state.mkdir()
        (sources.state / CHECKPOINT_FILE).write_text(kept)
    for file in sources.manifests.iterdir():
        file.unlink()
    sources.manifests.rename(tmp_path / "away")  # it keeps its inode, which nobody gets again
    sources.desired.restore()
    async with contextlib.aclosing(sources.changes):  # type: ignore[type-var]
        for _ in SOURCES:
            await sources.next_change()
        assert sources.desired.all_ready is is_ready
        sources.manifests.mkdir()
        await sources.next_change()
        if kept == "a pod of a file":  # it is another directory, and empty
            assert not sources.desired.all_ready
            sources.desired.accept_manifests()
            await sources.next_change()
        assert sources.desired.all_ready


async def _kept_one(directory: Path, before: Sources) -> Sources:
    """Sources that an agent before has read, with one file."""
    (before.manifests / "a.yaml").write_bytes(text(manifest("of-a-file")))
    async with contextlib.aclosing(before.changes):  # type: ignore[type-var]
        for _ in SOURCES:
            await before.next_change()
        await before.desired.apply("-", text(manifest("applied")))  # answered when the checkpoint is written
    return Sources(directory)


async def test_pods_that_were_taken_down_on_request_are_not_restored(sources: Sources) -> None:
    file = sources.state / CHECKPOINT_FILE
    assert file.exists()
    sources.desired.forget()
    assert not file.exists()
    sources.desired.forget()


async def test_deletions_at_once_share_checkpoints_and_each_is_in_one(
    sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"p{number}" for number in range(6)]
    for name in names:
        assert (await sources.desired.apply("-", text(manifest(name)))).code == 200
    saved: list[set[str]] = []
    save = checkpoint.save

    def counted(path: Path, desired: Iterable[DesiredPod], *, durable: bool = True) -> None:
        save(path, desired, durable=durable)
        saved.append({item.pod.metadata.name for item in checkpoint.load(path) or ()})

    async def one(name: str) -> bool:
        assert await sources.delete(name) == 200
        return name not in saved[-1]

    monkeypatch.setattr(checkpoint, "save", counted)
    assert all(await asyncio.gather(*map(one, names)))
    assert saved[-1] == {"of-a-file", "applied"}
    pod = await held_back_pod(sources)
    saved.clear()
    await asyncio.gather(*(sources.desired.hold_back(pod) for _ in range(6)))
    assert len(saved) < 6, "all that wait for the first have one"


@pytest.mark.parametrize("act", ["edit", "removal", "edit of what was applied", "deletion"])
async def test_what_is_replaced_or_ends_is_in_the_checkpoint_before_it_is_told(sources: Sources, act: str) -> None:
    """An agent that died right after would restore it as it was, and begin it again."""
    name = "of-a-file" if act in ("edit", "removal") else "applied"
    if act == "edit":
        (sources.manifests / "a.yaml").write_bytes(text(manifest(name, image="new")))
    elif act == "removal":
        (sources.manifests / "a.yaml").unlink()
    async with sources.desired._saving:  # a disk that is slow
        asked = asyncio.create_task(_change_applied(sources, act))
        telling = asyncio.create_task(sources.next_change())
        await until_merged(sources, name)
        assert not telling.done()
    (update,) = pod_updates((await telling).updates)
    left = restored(restarted_at(sources))
    is_edit = act.startswith("edit")
    assert (update.op, name in left) == (PodOperation.UPDATE if is_edit else PodOperation.REMOVE, is_edit)
    assert not is_edit or left[name].spec.containers[0].image == "new"
    await asked


async def test_the_checkpoint_of_an_edit_outlives_a_power_cut_and_one_of_more_pods_need_not(
    sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: asyncio.Queue[tuple[list[str], bool]] = asyncio.Queue()
    save, loop = checkpoint.save, asyncio.get_running_loop()

    def noted(path: Path, desired: Iterable[DesiredPod], *, durable: bool = True) -> None:
        items = tuple(desired)
        save(path, items, durable=durable)
        names = sorted(item.pod.metadata.name for item in items)
        loop.call_soon_threadsafe(saved.put_nowait, (names, durable))

    async def saved_after_next() -> list[tuple[list[str], bool]]:
        """The first that is saved of the next change, before or after it is told."""
        async with asyncio.timeout(DEADLINE_S):
            await sources.next_change()
            return [await saved.get(), *(saved.get_nowait() for _ in range(saved.qsize()))]

    monkeypatch.setattr(checkpoint, "save", noted)
    (sources.manifests / "b.yaml").write_bytes(text(manifest("more")))
    assert await saved_after_next() == [(["applied", "more", "of-a-file"], False)]
    (sources.manifests / "b.yaml").write_bytes(text(manifest("more", image="new")))
    assert (["applied", "more", "of-a-file"], True) in await saved_after_next()
    (sources.manifests / "b.yaml").unlink()
    assert (["applied", "of-a-file"], True) in await saved_after_next()


async def test_what_comes_is_told_before_the_checkpoint_has_it(sources: Sources) -> None:
    """The next agent knows it from its source."""
    async with sources.desired._saving:
        (sources.manifests / "b.yaml").write_bytes(text(manifest("newcomer")))
        change = await sources.next_change()
    assert [update.op for update in pod_updates(change.updates)] == [PodOperation.ADD]


async def test_a_disk_that_hangs_holds_no_edit_for_long(sources: Sources, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("supervisor.sources.manager.LONGEST_SAVE_S", 0.05)
    async with sources.desired._saving:
        (sources.manifests / "a.yaml").write_bytes(text(manifest("of-a-file", image="new")))
        change = await sources.next_change()
    assert [update.op for update in pod_updates(change.updates)] == [PodOperation.UPDATE]


async def _change_applied(sources: Sources, act: str) -> None:
    if act == "edit of what was applied":
        await sources.desired.apply("-", text(manifest("applied", image="new")))
    elif act == "deletion":
        await sources.delete("applied")


async def until_merged(sources: Sources, name: str) -> None:
    """The merged set has another pod of that name than busybox' one, or none."""

    def is_merged() -> bool:
        desired = sources.desired._config.desired()
        return all(item.pod.metadata.name != name or item.pod.spec.containers[0].image != "busybox" for item in desired)

    async with asyncio.timeout(DEADLINE_S):
        while not is_merged():  # noqa: ASYNC110 - a directory is read
            await asyncio.sleep(0.01)


def restarted_at(sources: Sources) -> Sources:
    """Sources of the next agent."""
    return Sources(sources.state.parent)


async def held_back_pod(sources: Sources) -> Pod:
    assert (await sources.desired.apply("-", text(manifest("held")))).code == 200
    while True:
        for update in pod_updates((await sources.next_change()).updates):
            for pod in update.pods:
                if pod.metadata.name == "held":
                    return pod


async def test_a_refused_edit_changes_nothing_also_over_a_restart(sources: Sources, tmp_path: Path) -> None:
    (sources.manifests / "a.yaml").write_bytes(
        text(manifest("of-a-file", image="new", schedulingGates=[{"name": "g"}]))
    )
    change = await sources.next_change()
    assert [(error.file, error.document, error.field) for error in change.errors] == [
        ("a.yaml", 1, "spec.schedulingGates")
    ]
    assert change.updates == ()
    restarted = Sources(tmp_path)
    async with contextlib.aclosing(restarted.changes):  # type: ignore[type-var]
        restored = [pod for update in pod_updates(restarted.desired.restore()) for pod in update.pods]
        assert [(pod.metadata.name, pod.spec.containers[0].image, pod.spec.runtime_class_name) for pod in restored] == [
            ("of-a-file", "busybox", None),
            ("applied", "busybox", None),
        ]
        changes = [await restarted.next_change() for _ in SOURCES]
        assert restarted.desired.all_ready
    assert [pod for change in changes for update in pod_updates(change.updates) for pod in update.pods] == []
    assert [error.field for change in changes for error in change.errors] == ["spec.schedulingGates"]


async def test_an_edit_that_was_not_admitted_does_not_reach_the_checkpoint(sources: Sources, tmp_path: Path) -> None:
    """The pod goes on as it was, also over a restart; then the edit comes again and may be admitted."""
    running = restored(Sources(tmp_path))["of-a-file"]
    (sources.manifests / "a.yaml").write_bytes(text(manifest("of-a-file", image="new")))
    change = await sources.next_change()
    assert [update.op for update in pod_updates(change.updates)] == [PodOperation.UPDATE]
    await sources.desired.hold_back(running)
    assert await images_after_restart(tmp_path) == ({"of-a-file": "busybox", "applied": "busybox"}, ["new"])

    (sources.manifests / "a.yaml").write_bytes(text(manifest("of-a-file", image="newer")))
    change = await sources.next_change()
    await sources.desired.apply("-", text(manifest("applied")))
    images, _ = await images_after_restart(tmp_path)
    assert images["of-a-file"] == "newer", "another edit is another question"


async def test_an_edit_that_is_refused_right_before_the_end_does_not_reach_the_checkpoint(
    sources: Sources, tmp_path: Path
) -> None:
    running = restored(Sources(tmp_path))["of-a-file"]
    (sources.manifests / "a.yaml").write_bytes(text(manifest("of-a-file", image="new")))
    await sources.next_change()
    async with sources.desired._saving:  # the edit itself is being written
        holding = asyncio.create_task(sources.desired.hold_back(running))
        await asyncio.sleep(0)
        holding.cancel()
        await asyncio.wait({holding})
    await sources.desired.close()
    images, _ = await images_after_restart(tmp_path)
    assert images["of-a-file"] == "busybox"


def restored(sources: Sources) -> dict[str, Pod]:
    """Pods that a start restores, by name."""
    return {pod.metadata.name: pod for update in pod_updates(sources.desired.restore()) for pod in update.pods}


async def images_after_restart(directory: Path) -> tuple[dict[str, str], list[str]]:
    """Pods that the next start restores, by name, and what its sources then update."""
    restarted = Sources(directory)
    async with contextlib.aclosing(restarted.changes):  # type: ignore[type-var]
        before = restored(restarted)
        changes = [await restarted.next_change() for _ in SOURCES]
    updated = [pod for change in changes for update in pod_updates(change.updates) for pod in update.pods]
    return (
        {name: pod.spec.containers[0].image for name, pod in before.items()},
        [pod.spec.containers[0].image for pod in updated],
    )


async def test_an_apply_that_is_refused_names_every_field_and_keeps_what_was_applied(sources: Sources) -> None:
    reply = await sources.desired.apply(
        "-", text(manifest("applied", image="new", os={"name": "windows"}, schedulingGates=[{"name": "g"}]))
    )
    assert reply.code == 422
    assert "-: document 1: spec.os.name: not supported: " in reply.message
    assert "-: document 1: spec.schedulingGates: not supported: " in reply.message
    again = await sources.desired.apply("-", text(manifest("applied")))
    assert again.results == ("pod/applied unchanged",)


async def test_a_file_that_is_no_manifest_is_told_of_once(sources: Sources) -> None:
    """Also one that comes while the agent runs; one that somebody has only written in between is not."""
    note, other = sources.manifests / "web.yaml.txt", sources.manifests / "web"
    note.touch()
    assert (await sources.next_change()).skipped == ("web.yaml.txt",)
    other.touch()
    assert (await sources.next_change()).skipped == ("web",)
    note.unlink()
    assert (await sources.next_change()).skipped == ()
    note.touch()
    assert (await sources.next_change()).skipped == ()
    renamed = sources.manifests / "b.yaml.tmp"
    renamed.write_bytes(text(manifest("renamed")))
    renamed.rename(sources.manifests / "b.yaml")
    change = await sources.next_change()
    assert [pod.metadata.name for update in pod_updates(change.updates) for pod in update.pods] == ["renamed"]
    assert change.skipped == ()


@pytest.mark.parametrize(
    ("kept", "act", "lost"),
    [
        ("Memory", "nothing", []),
        ("Memory", "reboot", ["default/login"]),
        ("Encrypted", "reboot", []),
        ("Encrypted", "no key", []),
        ("Encrypted", "no files", ["default/login"]),
        ("Memory", "configured anew", []),
        ("Encrypted", "configured anew", []),
    ],
)
async def test_secrets_that_are_lost_are_named_once(tmp_path: Path, kept: str, act: str, lost: list[str]) -> None:
    """One that was deleted is not lost, nor one whose file is there and cannot be opened, nor a ConfigMap."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        memory = Path(directory) / "rootlet"
        made = Sources(tmp_path, memory, kept)
        async with contextlib.aclosing(made.changes):  # type: ignore[type-var]
            await made.read_all()
            assert (await made.desired.apply("-", text(login("login"), login("gone"), CONFIG_MAP))).code == 200
            assert (await made.desired.delete_object(ObjectKey(ObjectKind.SECRET, "default", "gone"))).code == 200
        await asyncio.to_thread(BETWEEN[act], tmp_path / "state", memory)
        if act == "configured anew":
            kept = "Memory" if kept == "Encrypted" else "Encrypted"
        for expected in (lost, []):
            made = Sources(tmp_path, memory, kept)
            made.desired.restore()
            async with contextlib.aclosing(made.changes):  # type: ignore[type-var]
                told = await made.read_all()
                assert [name for change in told for name in change.lost_secrets] == expected
                stated = [each.key for item in told for update in item.updates for each in objects_of(update)]
                assert (ObjectKey(ObjectKind.SECRET, "default", "login") in stated) is (not lost and act != "no key")
                await made.desired.apply("-", text(CONFIG_MAP))  # answered when the names are written


async def test_an_object_keeps_its_age_over_a_restart(tmp_path: Path) -> None:
    """One of a file and one that was applied; the file is another one meanwhile."""
    ages: list[dict[str, str | None]] = []
    for life in range(2):
        made = Sources(tmp_path)
        made.clock.wall += 3600.0 * life
        (made.manifests / "a.yaml").write_bytes(text({**CONFIG_MAP, "data": {"life": str(life)}}))
        made.desired.restore()
        async with contextlib.aclosing(made.changes):  # type: ignore[type-var]
            told = await made.read_all()
            if not life:
                other = {**CONFIG_MAP, "metadata": {"name": "applied"}}
                assert (await made.desired.apply("-", text(other))).code == 200
                told.append(await made.next_change())
        found = [each.object.metadata for item in told for update in item.updates for each in objects_of(update)]
        ages.append({each.name: each.creation_timestamp for each in found})
    assert ages[0].keys() == {"app", "applied"}
    assert ages[1] == ages[0]


async def test_a_manifest_directory_that_nobody_has_made_is_no_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    made = Sources(tmp_path)
    made.manifests.rmdir()
    made.desired.restore()
    async with contextlib.aclosing(made.changes):  # type: ignore[type-var]
        told = await made.read_all()
    assert [error for change in told for error in change.errors] == []
    assert [each.getMessage() for each in caplog.records if "not there yet" in each.getMessage()] == [
        f"{made.manifests} is not there yet, and has no manifests"
    ]
    assert [
        each for each in caplog.records if each.levelno >= logging.WARNING and "memory" not in each.getMessage()
    ] == []


CONFIG_MAP: Final = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app"}}
BETWEEN: Final[Mapping[str, Callable[[Path, Path], None]]] = {
    "nothing": lambda _state, _memory: None,
    "configured anew": lambda _state, _memory: None,
    "reboot": lambda _state, memory: shutil.rmtree(memory, ignore_errors=True),
    "no key": lambda state, _memory: (state / KEY_FILE).unlink(),
    "no files": lambda state, _memory: shutil.rmtree(state / SEALED_DIRECTORY),
}


def login(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"a": "b"}}


def objects_of(update: Update) -> tuple[DesiredObject, ...]:
    return update.stated if isinstance(update, ObjectUpdate) else ()


async def test_a_directory_that_was_replaced_while_no_agent_ran_ends_no_pod(tmp_path: Path) -> None:
    """As when its file system is not mounted after a boot. The agent is ready all the same; somebody may mean it."""
    made = await _kept_one(tmp_path, Sources(tmp_path))
    assert made.desired.accept_manifests() == f"{made.manifests} is in no doubt: nothing to accept"
    made.manifests.rename(tmp_path / "elsewhere")
    made.manifests.mkdir()
    made.desired.restore()
    async with contextlib.aclosing(made.changes):  # type: ignore[type-var]
        found = await made.read_all()
        assert not [update for change in found for update in pod_updates(change.updates) if update.pods]
        (told,) = (str(error) for change in found for error in change.errors)
        assert told.startswith(f"{made.manifests}: is another directory than before, without a.yaml: ")
        assert (made.desired.own_ready, made.desired.all_ready) == (True, False)
        assert made.desired.accept_manifests() == f"{made.manifests} is accepted as it is now"
        (update,) = pod_updates((await made.next_change()).updates)[:1]
        assert (update.op, [pod.metadata.name for pod in update.pods]) == (PodOperation.REMOVE, ["of-a-file"])
        assert made.desired.all_ready
