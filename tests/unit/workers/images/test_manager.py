from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ipc.k8s.api.v1.container import PullPolicy
from ipc.k8s.podobjects.registry_login import RegistryLogin
from ipc.link.messages.event_reasons import EventReason
from ipc.link.messages.sync_error import SyncError
from ipc.link.metrics import kubelet as metrics
from ipc.link.shm.metric_cells import METERS
from supervisor.managers.image_pulls import PullLimits
from tests.fakes.clock import SimClock, simulate
from tests.fakes.podman import FakePodman
from tests.fakes.pulls import SERIAL, LocalPulls
from tests.fakes.runtime import FakeRuntime, Flavour
from workers.images.manager import MAX_SEEN, SEEN_FOR_S, ImageError, ImageManager, size_label
from workers.images.pull_backoff import PullBackoff
from workers.images.pull_records import PullRecords
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError

THERE = "quay.io/a/there:1"
REMOTE = "quay.io/a/remote:1"
NOWHERE = "quay.io/a/nowhere:1"
LOCAL = "localhost/built:latest"


class Kit:
    """An image manager on a fake Podman, and the events it told."""

    def __init__(self, latency_s: float = 0.0, limits: PullLimits = SERIAL, rights_dir: str = "") -> None:
        self.clock = SimClock()
        self.podman = FakePodman(self.clock, images=[THERE, LOCAL], registry=[THERE, REMOTE])
        self.runtime = FakeRuntime(self.podman, "one", latency_s=latency_s)
        self.rights = PullRecords(rights_dir)
        self.images = ImageManager(
            self.runtime, self.clock, self.rights, LocalPulls(self.runtime, self.clock, limits, self.rights).pull
        )
        self.backoffs: dict[str, PullBackoff] = {}
        self.told: list[tuple[str, str, str]] = []

    async def tell(self, reason: EventReason, message: str) -> None:
        self.told.append((reason.type, reason.reason, message))

    async def ensure(
        self,
        reference: str,
        policy: PullPolicy = "IfNotPresent",
        uid: str = "u1",
        logins: tuple[RegistryLogin, ...] = (),
    ) -> str:
        backoff = self.backoffs.setdefault(uid, PullBackoff(uid))
        ensure = self.images.ensure_image
        return (await ensure(backoff, reference, policy, self.tell, lambda image: logins)).id

    async def refused(
        self,
        reference: str,
        policy: PullPolicy = "IfNotPresent",
        uid: str = "u1",
        logins: tuple[RegistryLogin, ...] = (),
    ) -> ImageError:
        with pytest.raises(ImageError) as caught:
            await self.ensure(reference, policy, uid, logins)
        return caught.value

    def pulls(self) -> int:
        return list(self.runtime.calls).count("pull_image")

    def reasons(self) -> list[str]:
        return [reason for _, reason, _ in self.told]


def test_an_image_that_a_pods_login_has_pulled_is_for_pods_that_have_it_too(tmp_path: Path) -> None:
    good, wrong = RegistryLogin(username="good", password="1"), RegistryLogin(username="wrong", password="2")

    async def main() -> None:
        kit = Kit(rights_dir=str(tmp_path))
        kit.podman.logins[REMOTE] = {good}
        await kit.ensure(REMOTE, uid="has", logins=(good,))
        await kit.ensure(REMOTE, uid="has too", logins=(wrong, good))
        assert kit.pulls() == 1
        for logins in ((), (wrong,)):
            assert (await kit.refused(REMOTE, uid=f"lacks {logins}", logins=logins)).reason == "ErrImagePull"
            denied = await kit.refused(REMOTE, "Never", uid="never", logins=logins)
            assert denied.reason == "ErrImageNeverPull"
            assert "does not have the proper credentials" in denied.message
        assert kit.pulls() == 3

    simulate(main)


def test_an_image_that_nobodys_login_has_pulled_is_everybodys(tmp_path: Path) -> None:
    login = RegistryLogin(username="one", password="1")

    async def main() -> None:
        kit = Kit(rights_dir=str(tmp_path))
        await kit.ensure(REMOTE, uid="with", logins=(login,))
        await kit.ensure(REMOTE, uid="public")
        await kit.ensure(REMOTE, uid="later")
        await kit.ensure(THERE, uid="later", logins=(login,))
        assert kit.pulls() == 2, "the second pull has shown that it is public; the third image was there before"

    simulate(main)


def test_the_image_of_a_container_that_is_there_needs_no_look() -> None:
    async def main() -> None:
        kit = Kit()
        assert await kit.images.reuse_image(THERE, "IfNotPresent", THERE, kit.tell)
        assert await kit.images.reuse_image(LOCAL, "Always", LOCAL, kit.tell)
        assert kit.reasons() == ["Pulled", "Pulled"]
        others: tuple[tuple[str, PullPolicy, str], ...] = (
            (THERE, "Always", THERE),
            (THERE, "IfNotPresent", LOCAL),
            (THERE, "IfNotPresent", ""),
            ("Not/Valid", "IfNotPresent", "Not/Valid"),
        )
        for reference, policy, held in others:
            assert not await kit.images.reuse_image(reference, policy, held, kit.tell)
        assert len(kit.told) == 2
        assert not kit.runtime.calls

    simulate(main)


def test_what_is_there_is_not_pulled() -> None:
    async def main() -> None:
        kit = Kit()
        assert await kit.ensure(THERE) == kit.podman.images[THERE].id
        assert await kit.ensure(THERE, "Never") == kit.podman.images[THERE].id
        assert kit.pulls() == 0
        text = f'Container image "{THERE}" already present on machine and can be accessed by the pod'
        assert kit.told == [("Normal", "Pulled", text)] * 2

    simulate(main)


def test_what_is_absent_is_pulled() -> None:
    async def main() -> None:
        kit = Kit(latency_s=0.5)
        assert await kit.ensure(REMOTE) == kit.podman.images[REMOTE].id
        assert kit.told == [
            ("Normal", "Pulling", f'Pulling image "{REMOTE}"'),
            (
                "Normal",
                "Pulled",
                f'Successfully pulled image "{REMOTE}" in 1s (1.5s including waiting). Image size: 0 bytes.',
            ),
        ]

    simulate(main)


def test_looks_that_no_longer_count_are_not_kept() -> None:
    async def main() -> None:
        kit = Kit()
        for reference in (THERE, LOCAL, THERE):
            await kit.ensure(reference)
            await asyncio.sleep(SEEN_FOR_S)
        assert len(kit.images._seen) == 1

    simulate(main)


def test_an_inspect_holds_as_long_as_no_image_has_changed() -> None:
    async def main() -> None:
        kit = Kit()
        kit.runtime.image_list = "first"

        def inspects() -> int:
            return list(kit.runtime.calls).count("inspect_image")

        for expected, stamp in ((1, "first"), (2, "second"), (3, None)):
            kit.runtime.image_list = stamp
            for _ in range(2):
                await asyncio.sleep(SEEN_FOR_S / 4)
                await kit.ensure(THERE)
            if stamp is not None:
                await asyncio.sleep(SEEN_FOR_S * 100)
                assert await kit.images.known_image(THERE, "IfNotPresent", kit.tell, lambda image: ()) is not None
            assert inspects() == expected
        await asyncio.sleep(SEEN_FOR_S)
        assert await kit.images.known_image(THERE, "IfNotPresent", kit.tell, lambda image: ()) is None

    simulate(main)


def test_an_image_is_certain_as_long_as_the_list_of_images_is_the_same() -> None:
    async def main() -> None:
        kit = Kit()
        by_digest = f"{THERE}@sha256:{'0' * 64}"
        await kit.ensure(THERE)
        assert kit.images.certain(THERE) is None, "there is no such list"
        kit.runtime.image_list = "first"
        await asyncio.sleep(SEEN_FOR_S)
        kit.podman.images[by_digest] = kit.podman.images[THERE]
        for reference in (THERE, by_digest):
            await kit.ensure(reference)
        first = kit.images.certain(THERE)
        assert first == kit.podman.images[THERE]
        assert kit.images.certain(THERE) is first
        assert kit.images.certain(by_digest) is None, "Podman shows it under another name"
        assert kit.images.certain("not a:reference:") is None
        kit.runtime.image_list = "second"
        assert kit.images.certain(THERE) is None
        kit.podman.images[THERE] = copy.copy(kit.podman.images[THERE])
        await kit.ensure(THERE)
        second = kit.images.certain(THERE)
        assert second == first
        assert second is not first, "seen by another inspect"

    simulate(main)


def inspects(kit: Kit) -> int:
    return list(kit.runtime.calls).count("inspect_image")


@pytest.mark.parametrize("image_list", ["one", None], ids=["with a list of images", "without"])
def test_pods_that_ask_at_once_share_an_inspect(image_list: str | None) -> None:
    async def main() -> None:
        kit = Kit(latency_s=0.5)
        kit.runtime.image_list = image_list
        ids = await asyncio.gather(*(kit.ensure(THERE, uid=f"u{number}") for number in range(20)))
        assert set(ids) == {kit.podman.images[THERE].id}
        assert inspects(kit) == 1
        assert kit.reasons() == ["Pulled"] * 20

    simulate(main)


def test_an_inspect_that_its_first_caller_has_given_up_goes_on_for_the_others() -> None:
    async def main() -> None:
        kit = Kit(latency_s=0.5)
        first = asyncio.create_task(kit.ensure(THERE))
        second = asyncio.create_task(kit.ensure(THERE, uid="u2"))
        await asyncio.sleep(0.1)
        first.cancel()
        assert await second == kit.podman.images[THERE].id
        assert inspects(kit) == 1

    simulate(main)


def test_an_absence_that_was_asked_for_earlier_is_asked_for_once_more_by_all_together() -> None:
    async def main() -> None:
        kit = Kit(latency_s=0.5)
        found = await asyncio.gather(
            kit.ensure(THERE), *(kit.refused(NOWHERE, "Never", uid=f"u{number}") for number in range(20))
        )
        assert found[0] == kit.podman.images[THERE].id
        assert inspects(kit) == 1 + 2

    simulate(main)


def test_an_inspect_that_began_before_an_image_changed_is_not_shared() -> None:
    async def main() -> None:
        kit = Kit(latency_s=0.5)
        kit.runtime.image_list = "first"
        first = asyncio.create_task(kit.ensure(THERE))
        await asyncio.sleep(0.1)
        kit.runtime.image_list = "second"
        others = [asyncio.create_task(kit.ensure(THERE, uid=f"u{number}")) for number in range(20)]
        assert len(set(await asyncio.gather(first, *others))) == 1
        assert inspects(kit) == 2
        assert kit.images.certain(THERE) is not None, "the newest was made of one list"

    simulate(main)


def test_a_failed_inspect_is_everybodys_failure_and_the_next_one_is_new() -> None:
    async def main() -> None:
        kit = Kit(latency_s=0.5)
        kit.runtime.fail(1, Flavour.FAILED, "inspect_image")
        refused = await asyncio.gather(*(kit.refused(THERE, uid=f"u{number}") for number in range(3)))
        assert {error.reason for error in refused} == {SyncError.IMAGE_INSPECT}
        assert await kit.ensure(THERE) == kit.podman.images[THERE].id
        assert inspects(kit) == 2

    simulate(main)


def test_an_image_is_ascertained_once_its_list_is_known() -> None:
    async def main() -> None:
        kit = Kit(latency_s=0.5)
        await kit.ensure(THERE)
        assert await kit.images.ascertain(THERE) is None, "there is no such list"
        assert inspects(kit) == 1
        kit.runtime.image_list = "first"
        found = await asyncio.gather(*(kit.images.ascertain(THERE) for _ in range(20)))
        assert found == [kit.podman.images[THERE]] * 20
        assert found[0] is kit.images.certain(THERE)
        assert await kit.images.ascertain(THERE) is found[0]
        assert inspects(kit) == 2
        kit.podman.images[by_digest := f"{THERE}@sha256:{'0' * 64}"] = kit.podman.images[THERE]
        for never in (by_digest, NOWHERE, "not a:reference:"):
            assert await kit.images.ascertain(never) is None
        kit.runtime.down = True
        assert await kit.images.ascertain(LOCAL) is None, "the call that needs it says why"

    simulate(main)


def test_an_inspect_during_which_an_image_changed_is_not_kept_for_long() -> None:
    async def main() -> None:
        kit = Kit()
        stamps = iter(["before", "after"] + ["after"] * 10)
        kit.runtime.image_stamp = lambda having="": next(stamps)  # type: ignore[method-assign]
        await kit.ensure(THERE)
        await asyncio.sleep(SEEN_FOR_S)
        assert await kit.images.known_image(THERE, "IfNotPresent", kit.tell, lambda image: ()) is None

    simulate(main)


@pytest.mark.parametrize("policy", ["IfNotPresent", "Never", "Always"])
def test_what_is_known_to_be_there_is_used_without_a_wait_unless_it_has_to_be_pulled(policy: PullPolicy) -> None:
    async def main() -> None:
        kit = Kit()
        kit.runtime.image_list = "first"
        for reference in (THERE, LOCAL):
            await kit.ensure(reference)
        kit.told.clear()
        used = [
            await kit.images.known_image(reference, policy, kit.tell, lambda image: ()) is not None
            for reference in (THERE, LOCAL, REMOTE, "not a:reference:")
        ]
        assert used == [policy != "Always", True, False, False]
        assert kit.reasons() == ["Pulled"] * used.count(True)

    simulate(main)


def test_no_more_than_so_many_inspects_are_kept() -> None:
    async def main() -> None:
        kit = Kit()
        kit.runtime.image_list = "first"
        kit.podman.images |= {f"quay.io/a/{n}:1": kit.podman.images[THERE] for n in range(MAX_SEEN + 10)}
        for n in range(MAX_SEEN + 10):
            await kit.ensure(f"quay.io/a/{n}:1")
        assert len(kit.images._seen) == MAX_SEEN

    simulate(main)


def test_a_login_counts_for_what_is_known_to_be_there(tmp_path: Path) -> None:
    good, wrong = RegistryLogin(username="good", password="1"), RegistryLogin(username="wrong", password="2")

    async def main() -> None:
        kit = Kit(rights_dir=str(tmp_path))
        kit.runtime.image_list = "first"
        kit.podman.logins[REMOTE] = {good}
        await kit.ensure(REMOTE, logins=(good,))
        assert await kit.images.known_image(REMOTE, "IfNotPresent", kit.tell, lambda image: (good,)) is not None
        assert await kit.images.known_image(REMOTE, "IfNotPresent", kit.tell, lambda image: (wrong,)) is None

    simulate(main)


def test_always_pulls_what_is_there() -> None:
    async def main() -> None:
        kit = Kit()
        await kit.ensure(THERE, "Always")
        assert kit.pulls() == 1

    simulate(main)


def test_always_uses_a_local_image_that_is_there() -> None:
    async def main() -> None:
        kit = Kit()
        assert await kit.ensure("localhost/built", "Always") == kit.podman.images[LOCAL].id
        assert kit.pulls() == 0
        error = await kit.refused("localhost/absent", "Always")
        assert (error.reason, kit.pulls()) == (SyncError.IMAGE_PULL, 1)

    simulate(main)


def test_never_does_not_pull() -> None:
    async def main() -> None:
        kit = Kit()
        error = await kit.refused(REMOTE, "Never")
        assert error.reason is SyncError.IMAGE_NEVER_PULL
        assert error.message == f'Container image "{REMOTE}" is not present with pull policy of Never'
        assert kit.told == [("Warning", "ErrImageNeverPull", error.message)]
        assert kit.pulls() == 0

    simulate(main)


def test_a_bad_name_is_told_as_such() -> None:
    async def main() -> None:
        kit = Kit()
        error = await kit.refused("quay.io/UPPER")
        assert error.reason is SyncError.INVALID_IMAGE_NAME
        assert "must be lowercase" in error.message
        assert 'couldn\'t parse image name "quay.io/UPPER": ' in error.message
        assert kit.reasons() == ["InspectFailed"]
        assert list(kit.runtime.calls) == []

    simulate(main)


def test_a_failed_pull_backs_off_doubling_up_to_the_maximum() -> None:
    async def main() -> None:
        kit = Kit()
        delays = []
        for _ in range(7):
            error = await kit.refused(NOWHERE)
            assert error.reason is SyncError.IMAGE_PULL
            assert "manifest unknown" in error.message
            delays.append(error.retry_at - kit.clock.now().wall)
            await asyncio.sleep(delays[-1])
        assert delays == [10, 20, 40, 80, 160, 300, 300]

    simulate(main)


def test_during_the_back_off_nothing_is_pulled() -> None:
    async def main() -> None:
        kit = Kit()
        failed = await kit.refused(NOWHERE)
        await asyncio.sleep(9.9)
        error = await kit.refused(NOWHERE)
        assert error.reason is SyncError.IMAGE_PULL_BACK_OFF
        assert error.retry_at == failed.retry_at
        assert error.message == f'Back-off pulling image "{NOWHERE}": ErrImagePull: {failed.message}'
        assert kit.told[-1] == ("Normal", "BackOff", f'Back-off pulling image "{NOWHERE}"')
        assert kit.pulls() == 1
        await asyncio.sleep(0.2)
        assert (await kit.refused(NOWHERE)).reason is SyncError.IMAGE_PULL
        assert kit.pulls() == 2

    simulate(main)


def test_a_registry_that_is_away_is_told_and_is_the_reason_of_the_back_off() -> None:
    async def main() -> None:
        kit = Kit()
        kit.podman.registry_is_away = True
        error = await kit.refused(NOWHERE)
        assert error.reason is SyncError.REGISTRY_UNAVAILABLE
        assert error.message.startswith(f"image pull failed for {NOWHERE} because the registry is unavailable: ")
        backed_off = await kit.refused(NOWHERE)
        assert backed_off.reason is SyncError.IMAGE_PULL_BACK_OFF
        assert backed_off.message.endswith(f'"{NOWHERE}": RegistryUnavailable: {error.message}')
        kit.podman.registry_is_away = False
        await asyncio.sleep(10.0)
        assert (await kit.refused(NOWHERE)).reason is SyncError.IMAGE_PULL

    simulate(main)


def test_the_back_off_is_per_pod_and_image() -> None:
    async def main() -> None:
        kit = Kit()
        await kit.refused(NOWHERE)
        assert (await kit.refused(NOWHERE, uid="u2")).reason is SyncError.IMAGE_PULL
        await kit.ensure(REMOTE)

    simulate(main)


def test_a_success_ends_the_back_off() -> None:
    async def main() -> None:
        kit = Kit()
        await kit.refused(NOWHERE)
        await asyncio.sleep(10)
        await kit.refused(NOWHERE)
        await asyncio.sleep(20)
        kit.podman.registry.add(NOWHERE)
        await kit.ensure(NOWHERE)
        kit.podman.registry.clear()
        error = await kit.refused(NOWHERE, "Always")
        assert error.retry_at - kit.clock.now().wall == 10

    simulate(main)


def test_the_back_off_is_forgotten_after_ten_quiet_minutes() -> None:
    async def main() -> None:
        kit = Kit()
        for _ in range(3):
            error = await kit.refused(NOWHERE)
            await asyncio.sleep(error.retry_at - kit.clock.now().wall)
        await asyncio.sleep(601)
        error = await kit.refused(NOWHERE)
        assert error.retry_at - kit.clock.now().wall == 10

    simulate(main)


def test_an_image_that_came_by_itself_ends_the_waiting() -> None:
    async def main() -> None:
        kit = Kit()
        await kit.refused(NOWHERE)
        kit.podman.images[NOWHERE] = kit.podman.images[THERE]
        assert await kit.ensure(NOWHERE) == kit.podman.images[THERE].id

    simulate(main)


def test_pods_that_wait_for_one_image_share_its_pull() -> None:
    async def main() -> None:
        kit = Kit(latency_s=5.0)
        ids = await asyncio.gather(*(kit.ensure(REMOTE, "Always", f"u{n}") for n in range(5)))
        assert set(ids) == {kit.podman.images[REMOTE].id}
        assert kit.pulls() == 1
        await kit.ensure(REMOTE, "Always")
        assert kit.pulls() == 2

    simulate(main)


def test_a_shared_pull_that_fails_fails_for_all() -> None:
    async def main() -> None:
        kit = Kit(latency_s=5.0)
        errors = await asyncio.gather(*(kit.refused(NOWHERE, uid=f"u{n}") for n in range(3)))
        assert {error.reason for error in errors} == {SyncError.IMAGE_PULL}
        assert kit.pulls() == 1

    simulate(main)


def test_who_gives_up_does_not_take_the_pull_from_the_others() -> None:
    async def main() -> None:
        kit = Kit(latency_s=5.0)
        one, two = (asyncio.create_task(kit.ensure(REMOTE, uid=uid)) for uid in ("u1", "u2"))
        await asyncio.sleep(7)
        one.cancel()
        assert await two == kit.podman.images[REMOTE].id
        assert one.cancelled()
        assert kit.pulls() == 1

    simulate(main)


@pytest.mark.parametrize("flavour", list(Flavour))
def test_a_pull_that_goes_wrong_is_an_error_image(flavour: Flavour) -> None:
    async def main() -> None:
        kit = Kit()
        kit.runtime.fail(1, flavour, "pull_image")
        error = await kit.refused(REMOTE)
        assert error.reason is SyncError.IMAGE_PULL
        assert kit.reasons() == ["Pulling", "Failed"]
        await asyncio.sleep(10)
        await kit.ensure(REMOTE)

    simulate(main)


def test_an_inspect_that_fails_is_an_inspect_error() -> None:
    async def main() -> None:
        kit = Kit()
        kit.runtime.fail(1, Flavour.FAILED, "inspect_image")
        error = await kit.refused(THERE)
        assert error.reason is SyncError.IMAGE_INSPECT
        assert kit.reasons() == ["InspectFailed"]
        await kit.ensure(THERE)

    simulate(main)


def test_a_service_that_is_down_is_no_fault_of_the_image() -> None:
    async def main() -> None:
        kit = Kit()

        async def raised(action: Callable[[], Awaitable[object]]) -> ErrorKind:
            with pytest.raises(RuntimeCallError) as caught:
                await action()
            return caught.value.kind

        kit.runtime.down = True
        assert await raised(lambda: kit.ensure(REMOTE)) is ErrorKind.UNAVAILABLE
        kit.runtime.down = False
        kit.runtime.fail(1, Flavour.TIMED_OUT, "inspect_image")
        assert await raised(lambda: kit.ensure(REMOTE)) is ErrorKind.TIMEOUT
        await kit.ensure(REMOTE)  # No back-off.

    simulate(main)


def test_the_time_that_a_pull_waited_for_its_turn_is_told_apart() -> None:
    async def main() -> None:
        kit = Kit()
        kit.podman.pull_s = 61.25
        kit.podman.registry.add("quay.io/a/other:1")
        await asyncio.gather(kit.ensure(REMOTE), kit.ensure("quay.io/a/other:1", uid="u2"))
        done = [message for _, reason, message in kit.told if reason == "Pulled"]
        assert done == [
            f'Successfully pulled image "{REMOTE}" in 1m1.25s (1m1.25s including waiting). Image size: 0 bytes.',
            'Successfully pulled image "quay.io/a/other:1" in 1m1.25s (2m2.5s including waiting). Image size: 0 bytes.',
        ]

    simulate(main)


def test_a_long_pull_says_how_it_gets_on_more_and_more_rarely() -> None:
    async def main() -> None:
        kit = Kit()
        kit.podman.pull_s = 1800.0
        started_at, at = kit.clock.now().mono, []

        async def tell(reason: EventReason, message: str) -> None:
            await kit.tell(reason, message)
            at.append(kit.clock.now().mono - started_at)

        await kit.images.ensure_image(PullBackoff("u1"), REMOTE, "IfNotPresent", tell)
        assert kit.reasons() == ["Pulling"] * 6 + ["Pulled"]
        assert at == [0, 30, 90, 210, 450, 930, 1800]
        assert kit.told[1][2] == f'Pulling image "{REMOTE}": Copying {REMOTE}, 1780 s to go'

    simulate(main)


def test_a_pull_without_news_is_told_about_too() -> None:
    async def main() -> None:
        kit = Kit()

        async def one_blob(reference: str, on_progress: Callable[[str], None], login: object = None) -> str:
            on_progress("Copying blob")
            await asyncio.sleep(100)
            return kit.podman.pull_image(reference)

        kit.runtime.pull_image = one_blob  # type: ignore[method-assign]
        await kit.ensure(REMOTE)
        told = [message for _, reason, message in kit.told if reason == "Pulling"]
        assert told == [f'Pulling image "{REMOTE}"'] + [f'Pulling image "{REMOTE}": Copying blob'] * 2

    simulate(main)


def test_a_pull_that_nobody_waits_for_is_broken_off() -> None:
    async def main() -> None:
        kit = Kit()
        kit.podman.pull_s = 600.0
        waiting = [asyncio.create_task(kit.ensure(REMOTE, uid=uid)) for uid in ("u1", "u2")]
        await asyncio.sleep(100)
        waiting[0].cancel()
        await asyncio.sleep(100)
        assert kit.podman.broken_off == []
        waiting[1].cancel()
        await asyncio.wait(waiting)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert kit.podman.broken_off == [REMOTE]
        kit.podman.pull_s = 1.0
        await kit.ensure(REMOTE)

    simulate(main)


def test_beyond_the_rate_a_pull_is_an_error_that_backs_off() -> None:
    async def main() -> None:
        kit = Kit(limits=PullLimits(parallel=10, per_s=1, burst=1))
        await kit.ensure(THERE, "Always")
        error = await kit.refused(REMOTE)
        assert (error.reason, error.message) == (SyncError.IMAGE_PULL, "pull QPS exceeded")
        assert kit.told[-1] == ("Warning", "Failed", f'Failed to pull image "{REMOTE}": pull QPS exceeded')
        assert error.retry_at - kit.clock.now().wall == 10
        await asyncio.sleep(10)
        await kit.ensure(REMOTE)

    simulate(main)


# --- counts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reference", "policy", "labels"),
    [
        (THERE, "IfNotPresent", ("true", "ifnotpresent", "false")),
        (THERE, "Always", ("true", "always", "true")),
        (REMOTE, "IfNotPresent", ("false", "ifnotpresent", "true")),
        (THERE, "Never", ("true", "never", "false")),
    ],
)
def test_requests_are_counted_by_what_they_need(reference: str, policy: PullPolicy, labels: tuple[str, ...]) -> None:
    METERS.detach()

    async def main() -> None:
        await Kit().ensure(reference, policy)

    simulate(main)
    assert METERS.value(metrics.ENSURE_IMAGE_REQUESTS, *labels) == 1.0
    pulls = sum(METERS.value(metrics.IMAGE_PULL_DURATION, words) for _, words in metrics.IMAGE_SIZES)
    assert pulls == float(labels[-1] == "true")
    METERS.detach()


@pytest.mark.parametrize(
    ("size_bytes", "words"),
    [(0, "N/A"), (1, "0-10MB"), (10 * 2**20 - 1, "0-10MB"), (10 * 2**20, "10MB-100MB"), (2**40, "GT100GB")],
)
def test_sizes_of_images(size_bytes: int, words: str) -> None:
    assert size_label(size_bytes) == words


def test_an_image_that_is_there_is_counted_however_that_is_known() -> None:
    """As each call of upstream's EnsureImageExists, also where no inspect is needed."""
    METERS.detach()

    async def main() -> None:
        kit = Kit()
        kit.runtime.image_list = "one"
        await kit.ensure(THERE)
        assert await kit.images.known_image(THERE, "IfNotPresent", kit.tell, lambda image: ()) is not None
        assert await kit.images.reuse_image(THERE, "IfNotPresent", THERE, kit.tell)

    simulate(main)
    assert METERS.value(metrics.ENSURE_IMAGE_REQUESTS, "true", "ifnotpresent", "false") == 3.0
    METERS.detach()
