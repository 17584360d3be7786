from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from ipc.k8s.podobjects.registry_login import Pull, PullAccount, RegistryLogin
from ipc.link.messages.base import PullEnded, PullProgress
from tests.fakes.clock import SimClock, simulate
from tests.fakes.podman import FakePodman
from tests.fakes.runtime import FakeRuntime, Flavour
from workers.images.image_records import ImageRecords
from workers.images.provider_answers import NodeLogin
from workers.images.pull_records import PullRecords
from workers.images.puller import (
    MAX_PULLS,
    PROGRESS_PERIOD_S,
    PRUNED_PER_PULL,
    FindNodeLogins,
    ImagePuller,
    no_node_logins,
)
from workers.kubecontainer.image_reference import ImageReference

REMOTE = "quay.io/a/remote:1"
OTHER = "quay.io/a/other:1"


class Kit:
    """A puller on a fake Podman where a pull takes a minute."""

    def __init__(self, rights_dir: str = "", find_node_logins: FindNodeLogins = no_node_logins) -> None:
        clock = SimClock()
        self.podman = FakePodman(clock, registry=[REMOTE, OTHER])
        self.podman.pull_s = 60.0
        self.runtime = FakeRuntime(self.podman, "one")
        records = PullRecords(rights_dir)
        self.puller = ImagePuller(self.runtime, clock, records, ImageRecords("", clock), self._send, find_node_logins)
        self.said: list[PullProgress | PullEnded] = []

    async def _send(self, report: PullProgress | PullEnded) -> None:
        self.said.append(report)

    def ends(self) -> list[PullEnded]:
        return [report for report in self.said if isinstance(report, PullEnded)]


def test_pulls_run_beside_each_other_and_each_is_answered_once() -> None:
    async def main() -> None:
        kit = Kit()
        await kit.puller.start(Pull(reference=REMOTE))
        await asyncio.sleep(10)
        await kit.puller.start(Pull(reference=OTHER))
        await asyncio.sleep(100)
        images = kit.podman.images
        assert kit.ends() == [PullEnded(reference=r, image_id=images[r].id, took_s=60.0) for r in (REMOTE, OTHER)]

    simulate(main)


def test_progress_comes_in_measure() -> None:
    async def main() -> None:
        kit = Kit()
        await kit.puller.start(Pull(reference=REMOTE))
        await asyncio.sleep(60)
        words = [report.words for report in kit.said if isinstance(report, PullProgress)]
        assert words[:2] == [f"Copying {REMOTE}, 60 s to go", f"Copying {REMOTE}, 50 s to go"]
        assert len(words) <= 60 / PROGRESS_PERIOD_S

    simulate(main)


def test_a_pull_that_is_cancelled_is_broken_off_and_answered() -> None:
    async def main() -> None:
        kit = Kit()
        await kit.puller.start(Pull(reference=REMOTE))
        await asyncio.sleep(12)
        kit.puller.cancel(Pull(reference=REMOTE))
        kit.puller.cancel(Pull(reference=OTHER))
        await asyncio.sleep(1)
        assert kit.podman.broken_off == [REMOTE]
        assert kit.ends() == [PullEnded(reference=REMOTE, error="Pull", message="broken off", took_s=12.0)]
        await kit.puller.start(Pull(reference=REMOTE))
        await asyncio.sleep(61)
        assert [end.error for end in kit.ends()] == ["Pull", ""]

    simulate(main)


def test_an_error_is_told_with_its_kind() -> None:
    async def main() -> None:
        kit = Kit()
        kit.runtime.fail(1, Flavour.TIMED_OUT, "pull_image")
        for image in (REMOTE, "quay.io/a/nowhere:1"):
            await kit.puller.start(Pull(reference=image))
            await asyncio.sleep(61)
        assert [(end.error, end.message) for end in kit.ends()] == [
            ("Timeout", "an injected timeout"),
            ("Pull", "reading manifest of quay.io/a/nowhere:1: manifest unknown"),
        ]

    simulate(main)


def test_a_bug_is_an_answer_too() -> None:
    async def main() -> None:
        kit = Kit()

        async def broken(reference: str, on_progress: object, login: object = None) -> str:
            raise ZeroDivisionError("a bug")

        kit.runtime.pull_image = broken  # type: ignore[method-assign]
        await kit.puller.start(Pull(reference=REMOTE))
        await asyncio.sleep(1)
        assert [(end.error, end.message) for end in kit.ends()] == [("Internal", "ZeroDivisionError: a bug")]

    simulate(main)


def test_there_is_one_pull_per_image_and_there_are_not_too_many() -> None:
    async def main() -> None:
        kit = Kit()
        for n in range(MAX_PULLS):
            await kit.puller.start(Pull(reference=f"quay.io/a/{n}:1"))
        await kit.puller.start(Pull(reference="quay.io/a/7:1"))
        await kit.puller.start(Pull(reference=REMOTE))
        assert [(end.reference, end.error) for end in kit.ends()] == [
            ("quay.io/a/7:1", "Internal"),
            (REMOTE, "Internal"),
        ]
        await asyncio.sleep(1)
        await kit.puller.close()
        assert len(kit.podman.broken_off) == MAX_PULLS
        assert len(kit.ends()) == 2, "nobody is told at the end"

    simulate(main)


def test_each_login_is_tried_and_the_one_that_is_good_is_noted(tmp_path: Path) -> None:
    async def main() -> None:
        kit = Kit(str(tmp_path))
        wrong, good = RegistryLogin(username="a", password="1"), RegistryLogin(username="b", password="2")
        kit.podman.logins[REMOTE] = {good}
        await kit.puller.start(Pull(reference=REMOTE, logins=(wrong, good)))
        await kit.puller.start(Pull(reference=REMOTE, logins=(wrong,)))
        await asyncio.sleep(121)
        assert {end.logins: end.error for end in kit.ends()} == {(wrong,): "Pull", (wrong, good): ""}
        rights, id = PullRecords(str(tmp_path)), kit.podman.images[REMOTE].id
        assert [rights.allows(REMOTE, id, [login]) for login in (wrong, good)] == [False, True]

    simulate(main)


def test_records_of_images_that_are_gone_go_with_later_pulls(tmp_path: Path) -> None:
    async def main() -> None:
        kit = Kit(str(tmp_path))
        rights, login = PullRecords(str(tmp_path)), RegistryLogin(username="a", password="1")
        there = kit.podman.images
        for n in range(2 * PRUNED_PER_PULL):
            rights.grant(f"quay.io/a/{n}:1", f"{n:064x}", login)
        for _ in range(3):
            await kit.puller.start(Pull(reference=REMOTE, logins=(login,)))
            await asyncio.sleep(61)
        assert list(rights.oldest(99)) == [there[REMOTE].id]
        assert rights.allows(REMOTE, there[REMOTE].id, [login])
        assert not rights.allows(REMOTE, there[REMOTE].id, [])

    simulate(main)


def test_a_record_is_kept_while_podman_does_not_say_that_its_image_is_gone(tmp_path: Path) -> None:
    async def main() -> None:
        kit = Kit(str(tmp_path))
        login = RegistryLogin(username="a", password="1")
        PullRecords(str(tmp_path)).grant(OTHER, f"{1:064x}", login)
        kit.runtime.fail(2, Flavour.TIMED_OUT, "inspect_image")  # the first one is before the pull
        await kit.puller.start(Pull(reference=REMOTE, logins=(login,)))
        await asyncio.sleep(61)
        assert [end.error for end in kit.ends()] == [""]
        assert f"{1:064x}" in PullRecords(str(tmp_path)).oldest(99)

    simulate(main)


def test_logins_of_the_node_come_after_the_pod_s_and_what_they_bring_is_for_all(tmp_path: Path) -> None:
    async def main() -> None:
        mine, nodes = RegistryLogin(username="a", password="1"), RegistryLogin(username="b", password="2")
        asked: list[str] = []

        async def find_node_logins(image: ImageReference, account: PullAccount | None) -> tuple[NodeLogin, ...]:
            asked.append(str(image))
            return (NodeLogin(nodes),)

        kit = Kit(str(tmp_path), find_node_logins)
        kit.podman.logins |= {REMOTE: {nodes}, OTHER: {mine, nodes}}
        for reference in (REMOTE, OTHER):
            await kit.puller.start(Pull(reference=reference, logins=(mine,)))
        await asyncio.sleep(121)
        assert [end.error for end in kit.ends()] == ["", ""]
        assert sorted(asked) == sorted((REMOTE, OTHER))
        rights = PullRecords(str(tmp_path))
        for_all = {name: rights.allows(name, kit.podman.images[name].id, []) for name in (REMOTE, OTHER)}
        assert for_all == {REMOTE: True, OTHER: False}

    simulate(main)


def test_what_an_account_s_login_brings_is_for_pods_of_that_account(tmp_path: Path) -> None:
    async def main() -> None:
        login = RegistryLogin(username="b", password="2")
        mine = PullAccount(namespace="default", name="builder", uid="u", tokens=(("shop", "one"),))

        async def find_node_logins(image: ImageReference, account: PullAccount | None) -> tuple[NodeLogin, ...]:
            return (NodeLogin(login, account),)

        kit = Kit(str(tmp_path), find_node_logins)
        kit.podman.logins |= {REMOTE: {login}}
        await kit.puller.start(Pull(reference=REMOTE, account=mine))
        await asyncio.sleep(121)
        assert [(end.error, end.account) for end in kit.ends()] == [("", mine)]
        rights, image = PullRecords(str(tmp_path)), kit.podman.images[REMOTE].id
        later = msgspec.structs.replace(mine, tokens=(("shop", "another"),))
        assert rights.allows(REMOTE, image, [later]), "tokens change, the account stays"
        for other in ([], [msgspec.structs.replace(mine, uid="made anew")], [login]):
            assert not rights.allows(REMOTE, image, other)

    simulate(main)
