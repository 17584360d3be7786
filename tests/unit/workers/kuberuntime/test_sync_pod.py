"""Syncs on a fake host: what one does, says and leaves behind."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.host.clock import rfc3339
from ipc.k8s.api.v1.container import ContainerPort
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.probe import ExecAction, Probe
from ipc.k8s.kubecontainer.pod_status import ContainerState
from ipc.k8s.kubecontainer.probe_results import ProbeResult, ProbeResults
from ipc.link.messages.pod_worker import SyncAction
from tests.fakes.ownership import ownership
from tests.fakes.runtime import Flavour
from tests.support.pods import UID, container, pod
from tests.support.sync import FakeHost, on_host, results
from workers.kubecontainer import labels
from workers.kubecontainer.look import decode_looks
from workers.kubecontainer.naming import container_name, infra_name
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError, SpecDict
from workers.logs import layout
from workers.specgen.spec import ContainerConfig, container_spec, pod_spec

CRASHING = container("main", args=("false",))


def test_a_new_pod_starts(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        done = await host.sync(pod("a", "b"))
        assert results(done) == [
            ("CreatePodSandbox", "web", ""),
            ("StartContainer", "a", ""),
            ("StartContainer", "b", ""),
        ]
        assert done.summary == "found no sandbox; created sandbox 0, started a (0), started b (0)"
        assert (done.changed, done.error) == (True, "")
        assert host.running().keys() == {"a", "b"}
        assert host.reasons() == [f"{r} spec.containers{{{n}}}" for n in "ab" for r in ("Pulled", "Created", "Started")]
        assert (done.effects.touched, done.effects.unsure) == (tuple(host.running().values()), False)
        (infra,) = decode_looks(done.effects.looks)
        shown = await host.runtime.inspect_container(infra_name(pod("a", "b"), 0))
        assert infra.container == shown, "the infra container need not be inspected again"
        again = await host.sync(pod("a", "b"))
        assert (again.changed, again.effects.touched, again.results) == (False, (), ())
        assert again.summary == "found 2 of 2 containers as they should be; nothing to do"

    on_host(tmp_path, scenario)


def slow_sandboxes(host: FakeHost, seconds: float) -> None:
    made = host.runtime.create_pod

    async def slowly(spec: SpecDict) -> str:
        await asyncio.sleep(seconds)
        return await made(spec)

    host.runtime.create_pod = slowly  # type: ignore[method-assign]


ABSENT = container("a", image="registry.test/app:1")


def test_an_image_is_pulled_while_the_sandbox_is_made(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        host.podman.pull_s = 10.0
        slow_sandboxes(host, 8.0)
        began = host.clock.now().mono
        done = await host.sync(pod(ABSENT, "b"))
        assert done.error == ""
        assert host.clock.now().mono - began == pytest.approx(10.0, abs=1.0)
        told = [reason.partition(" ")[0] for reason in host.reasons()]
        assert told == ["Pulling", "Pulled", "Created", "Started", "Pulled", "Created", "Started"]

    on_host(tmp_path, scenario)


def test_a_pull_ahead_of_a_sandbox_that_fails_is_given_up_and_not_told_of(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        host.podman.pull_s = 10.0
        slow_sandboxes(host, 8.0)
        host.runtime.fail(1, Flavour.FAILED, "create_pod")
        done = await host.sync(pod(ABSENT))
        assert (done.error, host.podman.broken_off) == ("CreatePodSandboxError", [ABSENT.image])
        assert [reason.partition(" ")[0] for reason in host.reasons()] == ["FailedCreatePodSandBox"]

    on_host(tmp_path, scenario)


def test_a_pull_that_fails_while_the_sandbox_is_made_is_the_container_s_failure(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        slow_sandboxes(host, 8.0)
        host.runtime.fail(1, Flavour.FAILED, "pull_image")
        done = await host.sync(pod(ABSENT, "b"))
        assert results(done) == [
            ("CreatePodSandbox", "web", ""),
            ("StartContainer", "a", "ErrImagePull"),
            ("StartContainer", "b", ""),
        ]
        told = [reason.partition(" ")[0] for reason in host.reasons()]
        assert told == ["Pulling", "Failed", "Failed", "Pulled", "Created", "Started"]

    on_host(tmp_path, scenario)


def test_changing_one_container_changes_one_id(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        await host.sync(pod("a", "b", "c"))
        before = host.running()
        host.reasons()
        done = await host.sync(pod("a", container("b", args=("sleep", "1000001")), "c"))
        after = host.running()
        # The end of the old one shows by itself: only the OCI runtime's work has to be asked for.
        assert (done.effects.touched, done.effects.removed, done.effects.unsure) == ((after["b"],), (), False)
        assert {name for name in after if after[name] != before[name]} == {"b"}
        assert results(done) == [("KillContainer", "b", ""), ("StartContainer", "b", "")]
        assert [e.message for e in host.events if e.reason == "Killing"] == [
            "Container b definition changed, will be restarted"
        ]
        assert (await host.settle(pod("a", container("b", args=("sleep", "1000001")), "c"))).results == ()

    on_host(tmp_path, scenario)


def test_a_changed_sandbox_is_replaced_and_the_old_one_goes(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        await host.sync(pod("a"))
        host.reasons()
        changed = pod("a", hostname="other")
        done = await host.sync(changed)
        assert [action for action, _, _ in results(done)] == [
            "KillContainer",
            "KillPodSandbox",
            "CreatePodSandbox",
            "StartContainer",
        ]
        assert host.reasons()[:3] == ["Pulled spec.containers{a}", "SandboxChanged", "Killing spec.containers{a}"]
        await host.settle(changed)
        status = await host.observe(UID)
        assert [s.attempt for s in status.sandboxes] == [1]
        assert [(c.name, c.attempt) for c in status.containers] == [("a", 1)]

    on_host(tmp_path, scenario)


def test_a_crash_loop_backs_off_and_says_when_it_comes_back(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod(CRASHING)
        waited = []
        for _ in range(7):
            done = await host.sync(of)
            (started,) = (r for r in done.results if r.action is SyncAction.START_CONTAINER)
            await asyncio.sleep(0)  # it fails at once
            if started.error:
                assert started.error == "CrashLoopBackOff"
                waited.append(started.retry_at - host.clock.now().wall)
                await asyncio.sleep(waited[-1])
        assert waited == pytest.approx([10, 20, 40])
        assert done.summary == (
            "found 0 of 1 containers as they should be; main: CrashLoopBackOff, removed main (2)"
            f"; next try at {rfc3339(started.retry_at)}"
        )
        assert started.message == f"back-off 40s restarting failed container=main pod=web_default({UID})"
        assert [(e.type, e.message) for e in host.events if e.reason == "BackOff"][-1] == (
            "Warning",
            f"Back-off restarting failed container main in pod web_default({UID})",
        )

    on_host(tmp_path, scenario)


def test_a_failed_start_counts_as_a_crash(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod(container("main", args=("no-such-command",)))
        first = await host.sync(of)
        assert first.results[-1].error == "RunContainerError"
        assert "not found" in first.results[-1].message
        assert [(e.type, e.reason) for e in host.events][-1] == ("Warning", "Failed")
        second = await host.sync(of)
        assert second.results[0].error == "RunContainerError", "the first crash restarts at once"
        third = await host.sync(of)
        assert third.results[0].error == "CrashLoopBackOff"
        assert [c.attempt for c in (await host.observe(UID)).containers] == [1], "the newest dead one stays"

    on_host(tmp_path, scenario)


def test_a_pod_that_never_restarts_is_over_when_its_start_failed(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod(container("main", args=("no-such-command",)), restart_policy="Never")
        await host.sync(of)
        await host.settle(of)
        status = await host.observe(UID)
        assert (len(status.containers), status.is_running()) == (1, False)

    on_host(tmp_path, scenario)


def test_one_container_that_cannot_start_stops_no_other(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        broken = container("a", image="localhost/missing:1", image_pull_policy="Never")
        done = await host.sync(pod(broken, "b"))
        assert results(done)[1:] == [("StartContainer", "a", "ErrImageNeverPull"), ("StartContainer", "b", "")]
        assert done.error == ""
        assert host.running().keys() == {"b"}

    on_host(tmp_path, scenario)


EDITS: dict[str, tuple[Pod, set[str]]] = {
    "an image": (pod(ABSENT, "b"), {"a"}),
    "two images": (pod(ABSENT, msgspec.structs.replace(ABSENT, name="b")), {"a", "b"}),
    "the sandbox, too": (pod(ABSENT, "b", hostname="other"), {"a"}),
    "its network": (pod(ABSENT, "b", host_network=True), {"a"}),
    "a policy that pulls nothing": (
        pod(container("a", image="localhost/missing:1", image_pull_policy="Never"), "b"),
        {"a"},
    ),
    "no name of an image": (pod(container("a", image="NO/Name"), "b"), {"a"}),
}


@pytest.mark.parametrize(("edited", "missed"), EDITS.values(), ids=EDITS)
def test_what_an_edit_replaces_goes_on_while_its_image_is_missing(
    tmp_path: Path, edited: Pod, missed: set[str]
) -> None:
    async def scenario(host: FakeHost) -> None:
        await host.sync(pod("a", "b"))
        before = host.running()
        for _ in range(2):
            host.events.clear()
            host.runtime.fail(1, Flavour.FAILED, "pull_image")
            done = await host.sync(edited)
            assert {(action, name) for action, name, error in results(done) if error} == {
                ("StartContainer", name) for name in missed
            }
            assert (done.error, host.running()) == ("", before)
            put_off = [event.message for event in host.events if event.reason == "ReplacementPutOff"]
            assert [message.split()[1] for message in put_off] == sorted(missed)
            assert not [event for event in host.events if event.reason in ("Killing", "SandboxChanged")]
        # Another edit is not held up by this one.
        await host.settle(pod("a", container("b", args=("sleep", "1000001"))))
        after = host.running()
        assert (after["a"], after["b"] != before["b"]) == (before["a"], True)

    on_host(tmp_path, scenario)


def test_an_image_is_pulled_once_before_what_it_replaces_is_stopped(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        await host.sync(pod("a", "b"))
        before = host.running()
        host.reasons()
        always = msgspec.structs.replace(ABSENT, image_pull_policy="Always")
        done = await host.sync(pod(always, "b"))
        assert results(done) == [("KillContainer", "a", ""), ("StartContainer", "a", "")]
        told = [reason.partition(" ")[0] for reason in host.reasons()]
        assert told == ["Pulling", "Pulled", "Killing", "Created", "Started"]
        assert (host.running()["b"], host.running()["a"] != before["a"]) == (before["b"], True)

    on_host(tmp_path, scenario)


def test_a_missing_image_holds_up_no_other_edit(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        await host.sync(pod("a", "b"))
        before = host.running()
        host.runtime.fail(1, Flavour.FAILED, "pull_image")
        done = await host.sync(pod(ABSENT, container("b", args=("sleep", "1000001"))))
        assert [result for result in results(done) if not result[2]] == [
            ("KillContainer", "b", ""),
            ("StartContainer", "b", ""),
        ]
        assert (host.running()["a"], host.running()["b"] != before["b"]) == (before["a"], True)

    on_host(tmp_path, scenario)


def test_what_fails_its_probe_is_stopped_whatever_comes_after_it(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        await host.sync(pod("a"))
        failed = {host.running()["a"]: ProbeResults(liveness=ProbeResult.FAILURE)}
        host.runtime.fail(1, Flavour.FAILED, "pull_image")
        done = await host.sync(pod(ABSENT), probe_results=failed)
        assert results(done) == [("KillContainer", "a", ""), ("StartContainer", "a", "ErrImagePull")]

    on_host(tmp_path, scenario)


def test_the_kubelet_s_order_is_a_setting(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        host.configure("node", keep_until_pulled=False)
        await host.sync(pod("a", "b"))
        host.runtime.fail(1, Flavour.FAILED, "pull_image")
        done = await host.sync(pod(ABSENT, "b"))
        assert results(done) == [("KillContainer", "a", ""), ("StartContainer", "a", "ErrImagePull")]
        assert host.running().keys() == {"b"}

    on_host(tmp_path, scenario)


def test_an_image_is_pulled_and_pulled_again_when_it_was_removed_meanwhile(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod(container("a", image="registry.test/app:1", image_pull_policy="IfNotPresent"))
        create, images = host.podman.create_container, host.podman.images

        def removed_just_before(spec: Any) -> str:
            host.podman.create_container = create  # type: ignore[method-assign]
            del images["registry.test/app:1"]
            return create(spec)

        host.podman.create_container = removed_just_before  # type: ignore[method-assign]
        done = await host.sync(of)
        assert results(done)[-1] == ("StartContainer", "a", "")
        assert list(host.runtime.calls).count("pull_image") == 2

    on_host(tmp_path, scenario)


def test_without_a_network_no_sandbox_is_made_but_in_that_of_the_host(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        done = await host.sync(pod("a"), network_problem="no pasta")
        assert (done.error, done.message) == ("NetworkNotReady", "network is not ready: no pasta")
        assert [(e.type, e.reason, e.message) for e in host.events] == [("Warning", "NetworkNotReady", done.message)]
        assert (await host.observe(UID)).is_empty()
        assert not (await host.sync(pod("a", host_network=True), network_problem="no pasta")).error
        assert list(host.running()) == ["a"]

    on_host(tmp_path, scenario)


def test_a_sandbox_that_has_its_network_goes_on_when_no_other_could_be_made(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        await host.settle(pod("a"))
        host.podman.kill_container(host.running()["a"], "SIGKILL")
        await host.settle(pod("a"), network_problem="no pasta")
        assert list(host.running()) == ["a"]

    on_host(tmp_path, scenario)


def test_a_sandbox_that_cannot_be_made_ends_the_sync_and_is_taken_away(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        host.runtime.fail(1, Flavour.FAILED, "start_container")
        done = await host.sync(pod("a"))
        assert results(done) == [("CreatePodSandbox", "web", "CreatePodSandboxError")]
        assert done.error == "CreatePodSandboxError"
        assert [(e.type, e.reason) for e in host.events] == [("Warning", "FailedCreatePodSandBox")]
        assert host.events[0].message == "Failed to create pod sandbox: an injected failure"
        assert (await host.observe(UID)).is_empty()

    on_host(tmp_path, scenario)


def test_a_sandbox_that_fails_because_its_pod_is_being_deleted_is_no_event(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        cancel = asyncio.Event()

        def deleted_meanwhile(spec: Any) -> str:
            cancel.set()
            raise RuntimeCallError(ErrorKind.INTERNAL, "create_pod", "its network is gone")

        host.podman.create_pod = deleted_meanwhile  # type: ignore[method-assign]
        done = await host.sync(pod("a"), cancel=cancel)
        assert (done.cancelled, done.error, results(done)) == (True, "", [])
        assert host.events == []

    on_host(tmp_path, scenario)


def test_a_timeout_ends_the_sync(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        host.runtime.fail(1, Flavour.TIMED_OUT, "create_container")
        done = await host.sync(pod("a", "b"))
        assert (done.error, done.changed, done.effects.unsure) == ("Timeout", True, True)
        assert host.running() == {}
        assert results(done) == [("CreatePodSandbox", "web", "")]

    on_host(tmp_path, scenario)


def test_nobody_answers(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        view = await host.observe(UID)
        host.runtime.down = True
        assert (await host.sync(pod("a"), view=view)).error == "Unavailable"

    on_host(tmp_path, scenario)


def place(host: FakeHost, sandbox_id: str) -> ContainerConfig:
    directory = layout.pod_directory(str(host.logs_dir), "default", "web", UID)
    return ContainerConfig(
        ownership=ownership(FakeHost.INSTANCE),
        sandbox_id=sandbox_id,
        image=container("a").image,
        attempt=0,
        backoff_s=0.0,
        log_file=layout.log_file(directory, "a", 0),
    )


def test_what_an_abandoned_call_made_late_is_adopted(tmp_path: Path) -> None:
    """The view is older than the effect of creates that had been given up: their names are in use."""

    async def scenario(host: FakeHost) -> None:
        of = pod("a")
        nothing = await host.observe(UID)
        sandbox_id = host.podman.create_pod(pod_spec(of, ownership(FakeHost.INSTANCE), 0, tmp_path / "infra_0.pid"))
        late = host.podman.create_container(container_spec(of, of.spec.containers[0], place(host, sandbox_id)))
        done = await host.sync(of, view=nothing)
        assert (done.error, host.running()) == ("", {"a": late})
        assert len(host.podman.pods) == 1

    on_host(tmp_path, scenario)


PUBLISHED = pod(container("a", ports=(ContainerPort(container_port=80, host_port=8080),)))


def test_a_host_port_of_another_program_holds_up_the_pod_whatever_forwards_it(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        host.podman.taken_ports = {8080}
        done = await host.sync(PUBLISHED)
        assert (done.error, host.podman.pods) == ("CreatePodSandboxError", {})
        assert [event.message for event in host.events if event.reason == "FailedCreatePodSandBox"] == [
            "Failed to create pod sandbox: listen tcp :8080: bind: address already in use"
        ]
        host.podman.taken_ports = set()
        assert (await host.sync(PUBLISHED)).error == ""

    on_host(tmp_path, scenario)


def test_in_the_hosts_network_the_container_itself_finds_that_a_port_is_taken(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        host.podman.taken_ports = {8080}
        in_hosts = pod(container("a", ports=(ContainerPort(container_port=8080, host_port=8080),)), host_network=True)
        assert (await host.sync(in_hosts)).error == ""

    on_host(tmp_path, scenario)


@pytest.mark.parametrize("is_up", [False, True])
def test_a_sandbox_that_is_adopted_has_its_ports_when_it_runs(tmp_path: Path, is_up: bool) -> None:
    """Then nobody else can have them."""

    async def scenario(host: FakeHost) -> None:
        nothing = await host.observe(UID)
        made = host.podman.create_pod(pod_spec(PUBLISHED, ownership(FakeHost.INSTANCE), 0, tmp_path / "infra_0.pid"))
        if is_up:
            host.podman.start_container(host.podman.pods[made].infra_id)
        host.podman.taken_ports = {8080}
        done = await host.sync(PUBLISHED, view=nothing)
        assert done.error == ("" if is_up else "CreatePodSandboxError")
        assert (made in host.podman.pods) == is_up

    on_host(tmp_path, scenario)


def test_what_podman_died_over_is_made_again_and_is_no_restart(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod("a")
        host.runtime.fail(2, Flavour.CUT_SHORT, "start_container")  # the first one is the infra container's
        assert (await host.sync(of)).error == "Timeout"
        (stuck,) = [c.id for c in host.podman.containers.values() if not c.is_infra]
        host.reasons()
        done = await host.sync(of)
        assert done.summary == "found 0 of 1 containers as they should be; started a (0)"
        assert host.reasons() == ["Created spec.containers{a}", "Started spec.containers{a}"]
        assert host.running()["a"] != stuck
        (left,) = (await host.runtime.end_leftovers(str(tmp_path))).ended
        assert left == container_name(of, "a", 0)

    on_host(tmp_path, scenario)


def test_what_cannot_start_twice_in_a_row_has_crashed(tmp_path: Path) -> None:
    """The OCI runtime's words are the same when it fails for a reason of its own."""

    async def scenario(host: FakeHost) -> None:
        of = pod("a")
        host.podman.cannot_start = {container_name(of, "a", attempt) for attempt in range(3)}
        for attempt in range(2):
            done = await host.sync(of)
            assert results(done)[-1] == ("StartContainer", "a", "RunContainerError")
            newest = (await host.observe(UID)).newest("a")
            assert newest is not None
            assert (newest.attempt, newest.state, newest.exit_code) == (attempt, ContainerState.EXITED, 128)
        assert ("StartContainer", "a", "CrashLoopBackOff") in results(await host.sync(of))

    on_host(tmp_path, scenario)


def test_a_name_that_a_stranger_uses_is_left_alone(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod("a")
        stranger = host.podman.create_container({"name": container_name(of, "a", 0), "image": container("a").image})
        done = await host.sync(of)
        assert results(done)[-1] == ("StartContainer", "a", "CreateContainerError")
        assert host.podman.containers[stranger].state == "created"

    on_host(tmp_path, scenario)


def test_an_old_view_is_not_acted_on(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        view = await host.observe(UID)
        done = await host.sync(pod("a"), view=view, min_observed_at=view.observed_at + 0.001)
        assert (done.error, done.changed, host.podman.pods) == ("StaleView", False, {})
        same = await host.sync(pod("a"), view=view, min_observed_at=view.observed_at)
        assert same.error == ""

    on_host(tmp_path, scenario)


def test_a_cancelled_sync_ends_at_its_next_step(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        cancel = asyncio.Event()
        create = host.podman.create_container

        def and_cancel(spec: Any) -> str:
            cancel.set()
            return create(spec)

        host.podman.create_container = and_cancel  # type: ignore[method-assign]
        done = await host.sync(pod("a"), cancel=cancel)
        assert (done.cancelled, done.error, done.changed) == (True, "", True)
        created = [c.id for c in host.podman.containers.values() if not c.is_infra]
        assert (done.effects.touched, done.effects.unsure) == (tuple(created), False)
        assert host.running() == {}

    on_host(tmp_path, scenario)


def test_a_cancelled_sync_does_not_wait_for_a_pull(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        cancel, pulling = asyncio.Event(), asyncio.Event()

        async def endless(reference: str, on_progress: object, login: object = None) -> str:
            pulling.set()
            await asyncio.Event().wait()
            return reference

        host.runtime.pull_image = endless  # type: ignore[method-assign]
        task = asyncio.ensure_future(host.sync(pod(container("a", image="registry.test/app:1")), cancel=cancel))
        await pulling.wait()
        cancel.set()
        assert (await task).cancelled

    on_host(tmp_path, scenario)


def test_the_restart_count_goes_on_after_somebody_removed_the_pod(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod("a")
        await host.sync(of)
        log_file = place(host, "").log_file
        log_file.touch()  # as Podman does when it starts the container
        (sandbox_id,) = host.podman.pods
        host.podman.remove_pod(sandbox_id)
        await host.sync(of)
        assert [c.attempt for c in (await host.observe(UID)).containers] == [1]

    on_host(tmp_path, scenario)


def test_a_containers_labels_say_everything(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod("a", termination_grace_period_seconds=9)
        await host.sync(of)
        (made,) = (await host.observe(UID)).containers
        assert (made.name, made.attempt, made.grace_period_s, made.backoff_s) == ("a", 0, 9, 0.0)
        (infra,) = [c for c in host.podman.containers.values() if c.is_infra]
        assert infra.labels[labels.POD_UID] == UID

    on_host(tmp_path, scenario)


def test_what_probes_say_decides_what_starts_and_what_is_killed(tmp_path: Path) -> None:
    """A sidecar lets the next container start when its startup probe says so; a liveness that failed kills."""
    probe = Probe(exec=ExecAction(command=("true",)), termination_grace_period_seconds=3)

    async def scenario(host: FakeHost) -> None:
        of = pod(
            container("a", liveness_probe=probe),
            init_containers=(container("s", restart_policy="Always", startup_probe=probe),),
        )
        for _ in range(2):
            await host.sync(of)
        assert host.running().keys() == {"s"}
        started = {host.running()["s"]: ProbeResults(startup=ProbeResult.SUCCESS)}
        await host.sync(of, probe_results=started)
        before = host.running()
        assert before.keys() == {"s", "a"}
        host.events.clear()
        await host.sync(of, probe_results={**started, before["a"]: ProbeResults(liveness=ProbeResult.FAILURE)})
        killing = next(event for event in host.events if event.reason == "Killing")
        assert killing.message == "Container a failed liveness probe, will be restarted"
        after = host.running()
        assert after["s"] == before["s"]
        assert after["a"] != before["a"]

    on_host(tmp_path, scenario)
