"""Collections of images on a fake Podman: what goes, what stays, and what is said of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ipc.k8s.kubecontainer.image_gc import ImageGcPolicy, ImageGcScope
from ipc.k8s.podobjects.registry_login import Pull, RegistryLogin
from ipc.link.eventloop.tasks import BackgroundTasks
from ipc.link.messages.base import EventReport, PullEnded, PullProgress
from ipc.link.messages.node_worker import CollectImages, ImagesCollected
from tests.fakes.clock import SimClock, simulate
from tests.fakes.podman import FakePodman
from tests.fakes.runtime import FakeRuntime, Flavour
from workers.images.collector import MAX_WAITING, ImageCollector, NodeView
from workers.images.image_records import ImageRecords
from workers.images.pull_records import PullRecords
from workers.images.puller import ImagePuller
from workers.kubecontainer.runtime import InspectedContainer

MIB = 1 << 20
NAMES = [f"quay.io/a/{letter}:1" for letter in "abcd"]
BUILT = "localhost/built:1"
LOGIN = RegistryLogin(username="a", password="1")


class Kit:
    """A node worker's parts on a Podman of 1000 MiB; its images have 100 MiB each."""

    def __init__(self, directory: str = "") -> None:
        self.clock = SimClock()
        self.podman = FakePodman(self.clock, images=[BUILT], registry=NAMES)
        self.podman.capacity = 1000 * MIB
        self.podman.image_bytes = dict.fromkeys([*NAMES, BUILT], 100 * MIB)
        self.runtime = FakeRuntime(self.podman, "one")
        self.records = ImageRecords(f"{directory}/images.json" if directory else "", self.clock)
        self.pull_records = PullRecords(directory)
        self.puller = ImagePuller(self.runtime, self.clock, self.pull_records, self.records, self._send)
        self.ours: list[InspectedContainer] = []
        self.collector = ImageCollector(
            self.runtime,
            self.clock,
            self.records,
            self.pull_records,
            NodeView(containers=lambda: self.ours, pulling=lambda: self.puller.references),
            "node",
            self._send,
        )
        self.said: list[Any] = []

    async def _send(self, report: ImagesCollected | EventReport | PullProgress | PullEnded) -> None:
        self.said.append(report)

    async def pull(self, *names: str, logins: tuple[RegistryLogin, ...] = ()) -> None:
        for name in names:
            await self.puller.start(Pull(reference=name, logins=logins))
            await asyncio.sleep(1)

    def run(self, image: str, name: str) -> str:
        """A container of that image: its id."""
        return self.podman.create_container({"image": image, "name": name})

    async def collect(self, policy: ImageGcPolicy | None = None, **how: Any) -> ImagesCollected:
        wanted = how.pop("wanted", {})
        await self.collector.ask(CollectImages(number=7, policy=policy or ImageGcPolicy(), wanted=wanted, **how))
        await asyncio.sleep(1)
        (answer,) = (said for said in self.said if isinstance(said, ImagesCollected))
        self.said.remove(answer)
        return answer

    def events(self) -> list[tuple[str, str]]:
        return [(said.reason, said.message) for said in self.said if isinstance(said, EventReport)]

    def left(self) -> set[str]:
        return {name.removeprefix("quay.io/a/") for name in self.podman.images}


def scenario(test: Callable[[Kit], Any], directory: str = "") -> None:
    async def main() -> None:
        kit, tasks = Kit(directory), BackgroundTasks()
        tasks.spawn(kit.collector.collect(), name="collections")
        try:
            await test(kit)
        finally:
            await tasks.close()
            await kit.puller.close()

    simulate(main)


def removed(answer: ImagesCollected) -> list[str]:
    return [name.removeprefix("quay.io/a/") for image in answer.images if image.removed for name in image.names]


def test_below_the_threshold_podman_is_not_asked() -> None:
    async def test(kit: Kit) -> None:
        await kit.pull(*NAMES)
        await asyncio.sleep(300)
        before = len(kit.runtime.calls)
        assert await kit.collect() == ImagesCollected(number=7, capacity_bytes=1000 * MIB, available_bytes=500 * MIB)
        assert list(kit.runtime.calls)[before:] == ["image_usage"], "which reads files"

    scenario(test)


def test_an_agent_that_has_nothing_where_images_are_does_not_look_there() -> None:
    async def test(kit: Kit) -> None:
        kit.podman.capacity = None
        assert await kit.collect() == ImagesCollected(number=7)
        assert "image_usage" not in kit.runtime.calls

    scenario(test)


def test_the_least_recently_used_go_until_enough_is_free() -> None:
    async def test(kit: Kit) -> None:
        await kit.pull(*NAMES)
        await asyncio.sleep(300)
        kit.ours = [kit.podman.inspected(kit.run(NAMES[0], "used"))]
        await kit.collect()
        kit.podman.remove_container(kit.ours.pop().id)
        await asyncio.sleep(300)
        kit.podman.other_bytes = 400 * MIB
        answer = await kit.collect()
        assert removed(answer) == ["b:1"], "900 MiB are in use, and 800 may be; a:1 was used, c:1 is younger"
        assert (answer.freed_bytes, answer.error) == (100 * MIB, "")
        assert kit.left() == {"a:1", "c:1", "d:1", BUILT}

    scenario(test)


def test_what_anybody_uses_or_wants_or_has_made_stays() -> None:
    async def test(kit: Kit) -> None:
        await kit.pull(*NAMES)
        kit.podman.images["localhost/mine:1"] = kit.podman.images[NAMES[3]]
        kit.run(NAMES[0], "strangers")
        kit.podman.mounted_images[kit.run(BUILT, "with-volume")] = NAMES[1]
        await asyncio.sleep(300)
        answer = await kit.collect(all_unused=True, wanted={NAMES[2]: "default/web"})
        assert (answer.images, answer.error, answer.freed_bytes) == ((), "", 0)
        report = await kit.collect(report=True, wanted={NAMES[2]: "default/web"})
        assert {image.names[0]: (image.stays, image.users) for image in report.images} == {
            BUILT: ("in use", ("with-volume",)),
            NAMES[0]: ("in use", ("strangers",)),
            NAMES[1]: ("in use", ("with-volume",)),
            NAMES[2]: ("in use", ("default/web",)),
            NAMES[3]: ("not pulled by this agent", ()),
        }

    scenario(test)


def test_all_images_is_all_but_what_is_used_pinned_or_young() -> None:
    async def test(kit: Kit) -> None:
        await kit.pull(*NAMES[:3])
        await kit.collect()
        await asyncio.sleep(300)
        await kit.pull(NAMES[3])
        policy = ImageGcPolicy(scope=ImageGcScope.ALL, pinned=(NAMES[0],))
        answer = await kit.collect(policy, all_unused=True, wanted={NAMES[1]: "default/web"})
        assert sorted(removed(answer)) == ["c:1", BUILT]
        assert kit.left() == {"a:1", "b:1", "d:1"}

    scenario(test)


def test_a_full_disk_that_images_do_not_fill_is_told() -> None:
    async def test(kit: Kit) -> None:
        await kit.pull(NAMES[0])
        await asyncio.sleep(300)
        kit.podman.other_bytes = 750 * MIB
        answer = await kit.collect()
        assert removed(answer) == ["a:1"]
        text = (
            "Insufficient free disk space on the node's image filesystem (95% of 1.0 GiB used). Failed to free "
            f"sufficient space by deleting unused images (freed {100 * MIB} bytes). Investigate disk usage, as it "
            "could be used by active images, logs, volumes, or other data."
        )
        assert answer.error == text
        assert kit.events() == [("FreeDiskSpaceFailed", text)]

    scenario(test)


def test_a_disk_without_capacity_is_told_and_one_that_nobody_knows_is_an_error() -> None:
    async def test(kit: Kit) -> None:
        await kit.pull(NAMES[0])
        kit.podman.capacity = None
        assert (await kit.collect()).error.startswith("failed to get image stats")
        assert kit.events() == []
        kit.podman.capacity = 0
        text = "invalid capacity 0 on image filesystem"
        assert (await kit.collect()).error == text
        assert kit.events() == [("InvalidDiskCapacity", text)]

    scenario(test)


def test_an_image_that_cannot_be_removed_holds_up_no_other() -> None:
    async def test(kit: Kit) -> None:
        await kit.pull(*NAMES)
        await asyncio.sleep(300)
        kit.runtime.fail(1, Flavour.FAILED, "remove_image")
        answer = await kit.collect(all_unused=True)
        assert removed(answer) == ["b:1", "c:1", "d:1"]
        assert answer.freed_bytes == 300 * MIB
        assert answer.error.startswith(f"wanted to free all, but freed {300 * MIB} bytes space with errors")
        assert answer.images[0].error
        assert removed(await kit.collect(all_unused=True)) == ["a:1"], "the next collection finds it"

    scenario(test)


def test_nothing_goes_while_it_is_not_known_who_uses_it() -> None:
    async def test(kit: Kit) -> None:
        await kit.pull(*NAMES)
        await asyncio.sleep(300)
        for verb in ("list_images", "list_image_users"):
            kit.runtime.fail(1, Flavour.TIMED_OUT, verb)
            answer = await kit.collect(all_unused=True)
            assert (answer.error != "", answer.images, answer.freed_bytes) == (True, (), 0)
        assert len(kit.left()) == 5

    scenario(test)


def test_images_that_were_not_used_for_long_go_from_a_disk_that_is_empty() -> None:
    async def test(kit: Kit) -> None:
        await kit.pull(*NAMES)
        await asyncio.sleep(1800)
        kit.ours = [kit.podman.inspected(kit.run(NAMES[0], "used"))]
        policy = ImageGcPolicy(max_age_s=3600)
        assert removed(await kit.collect(policy)) == []
        kit.podman.remove_container(kit.ours.pop().id)
        await asyncio.sleep(1900)
        assert removed(await kit.collect(policy)) == ["b:1", "c:1", "d:1"]

    scenario(test)


def test_records_of_logins_go_with_their_images(tmp_path: Path) -> None:
    async def test(kit: Kit) -> None:
        await kit.pull(*NAMES[:2], logins=(LOGIN,))
        ids = [kit.podman.images[name].id for name in NAMES[:2]]
        assert not kit.pull_records.allows(NAMES[0], ids[0], ())
        await asyncio.sleep(300)
        await kit.collect(all_unused=True, wanted={NAMES[1]: "default/web"})
        assert set(kit.pull_records.oldest(9)) == {ids[1]}

    scenario(test, str(tmp_path))


def test_requests_are_answered_in_their_order_and_too_many_are_refused() -> None:
    async def test(kit: Kit) -> None:
        kit.said.clear()
        for number in range(MAX_WAITING + 1):
            await kit.collector.ask(CollectImages(number=number, policy=ImageGcPolicy(), wanted={}))
        assert [(said.number, bool(said.error)) for said in kit.said] == [(MAX_WAITING, True)]
        await asyncio.sleep(1)
        assert [said.number for said in kit.said] == [MAX_WAITING, *range(MAX_WAITING)]

    scenario(test)


def test_a_mounted_image_may_be_named_by_the_begin_of_its_id() -> None:
    async def test(kit: Kit) -> None:
        await kit.pull(*NAMES[:2])
        await asyncio.sleep(300)
        kit.podman.mounted_images[kit.run(BUILT, "mounting")] = kit.podman.images[NAMES[0]].id[:12]
        assert removed(await kit.collect(all_unused=True)) == ["b:1"]

    scenario(test)
