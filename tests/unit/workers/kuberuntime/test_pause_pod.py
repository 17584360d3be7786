"""Pausing and resuming a pod's processes, and the end of one that is paused."""

from __future__ import annotations

from pathlib import Path

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.frozen import is_frozen
from ipc.link.messages.pod_worker import Freeze, WorkType
from tests.support.pods import UID, container, pod
from tests.support.sync import FakeHost, on_host, targets
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError

POLITE = ("sh", "-c", "trap 'exit 7' TERM; sleep 1000000")


def test_a_pod_is_paused_and_goes_on_as_it_was(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod(container("a", args=POLITE), container("b"))
        await host.settle(of)
        before = host.running()
        paused = await host.sync(of, freeze=Freeze.PAUSE)
        assert (targets(paused), paused.changed) == ([("PausePod", "")], True)
        assert set(before.values()) <= set(paused.effects.touched)
        assert is_frozen(await host.observe(UID))
        assert host.running() == {}
        resumed = await host.sync(of, freeze=Freeze.RESUME)
        assert targets(resumed) == [("ResumePod", "")]
        assert host.running() == before
        assert not is_frozen(await host.observe(UID))

    on_host(tmp_path, scenario)


def test_without_a_freezer_it_is_refused_in_words_and_goes_on(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod(container("a"))
        await host.settle(of)
        host.podman.can_freeze = False
        done = await host.sync(of, freeze=Freeze.PAUSE)
        assert targets(done) == [("PausePod", "FreezePodError")]
        words = "cannot pause without using Cgroups; to pause a pod, its containers need cgroups (v2) of their own"
        assert words in done.results[0].message
        assert list(host.running()) == ["a"]

    on_host(tmp_path, scenario)


def test_one_that_is_paused_in_part_goes_on_as_a_whole(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod(container("a"), container("b"))
        await host.settle(of)

        def in_part(id: str) -> None:
            freeze(id)
            raise RuntimeCallError(ErrorKind.INTERNAL, "pause pod", "one of them has no cgroup")

        freeze, host.podman.pause_pod = host.podman.pause_pod, in_part  # type: ignore[method-assign]
        done = await host.sync(of, freeze=Freeze.PAUSE)
        assert targets(done) == [("PausePod", "FreezePodError")]
        assert sorted(host.running()) == ["a", "b"]

    on_host(tmp_path, scenario)


async def paused(host: FakeHost) -> Pod:
    """A pod whose container ends when it is asked to, paused."""
    of = pod(container("a", args=POLITE))
    await host.settle(of)
    await host.sync(of, freeze=Freeze.PAUSE)
    return of


def test_a_paused_pod_ends_in_order(tmp_path: Path) -> None:
    """A paused pod gets its stop signal, and is not killed at the end of its grace period."""

    async def scenario(host: FakeHost) -> None:
        of = await paused(host)
        await host.settle(of, WorkType.TERMINATING, grace_period_s=30)
        assert [c.exit_code for c in (await host.observe(UID)).containers] == [7]

    on_host(tmp_path, scenario)


def test_a_paused_orphan_ends_by_its_labels_alone(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        await paused(host)
        host.next_worker()
        await host.settle(None, WorkType.TERMINATING, uid=UID)
        assert [c.exit_code for c in (await host.observe(UID)).containers] == [7]

    on_host(tmp_path, scenario)


def test_one_whose_cgroups_stay_frozen_is_killed_as_it_is(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = await paused(host)

        def stuck(id: str) -> None:
            raise RuntimeCallError(ErrorKind.INTERNAL, "resume pod", "cgroup.freeze: input/output error")

        host.podman.resume_pod = stuck  # type: ignore[method-assign]
        done = await host.sync(of, WorkType.TERMINATING, grace_period_s=30)
        assert "could not resume it: cgroup.freeze: input/output error" in done.summary
        assert [c.exit_code for c in (await host.observe(UID)).containers] == [137]

    on_host(tmp_path, scenario)


def test_a_pod_of_which_nothing_runs_cannot_be_paused(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        done = await host.sync(pod(container("a")), freeze=Freeze.PAUSE)
        assert [result.message for result in done.results] == ["nothing of it runs"]

    on_host(tmp_path, scenario)
