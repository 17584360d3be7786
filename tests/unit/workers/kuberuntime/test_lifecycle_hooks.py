"""Hooks in simulated time: what they are counted against, what their failure means, how often they run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.probe import ExecAction, HTTPGetAction, Lifecycle, LifecycleHandler, SleepAction, TCPSocketAction
from ipc.link.messages.pod_worker import SyncDone, SyncPod, WorkType
from tests.fakes.ownership import signed_container, signed_pod
from tests.fakes.podman import FakeContainer, Program
from tests.fakes.runtime import Flavour
from tests.support.pods import IMAGE, UID, container, pod
from tests.support.sync import FakeHost, on_host
from workers.compute.grace_period import KillReason
from workers.compute.kill_spec import ContainerKill, kill_all
from workers.kubecontainer import labels
from workers.kubecontainer.naming import container_name
from workers.kuberuntime.kill_container import kill_container, kill_pod
from workers.kuberuntime.post_start import PostStartHookFailed, run_post_start
from workers.lifecycle.pre_stops import MAX_KEPT, PreStops
from workers.sync.record import SyncEnded
from workers.sync.run import SyncRun

POLITE = ("sh", "-c", 'trap "exit 7" TERM; sleep 1000000')
STUBBORN = ("sleep", "1000000")
HOOK = ("farewell",)
SECRET = "hunter2"
TERMINATING = WorkType.TERMINATING

Scenario = Callable[[FakeHost], Awaitable[None]]


def exec_hook(*command: str) -> LifecycleHandler:
    return LifecycleHandler(exec=ExecAction(command=command))


def sleep_hook(seconds: int) -> LifecycleHandler:
    return LifecycleHandler(sleep=SleepAction(seconds=seconds))


def with_pre_stop(hook: LifecycleHandler, args: Sequence[str] = POLITE, name: str = "a") -> Container:
    return container(name, args=tuple(args), lifecycle=Lifecycle(pre_stop=hook))


async def took_s(host: FakeHost, work: Awaitable[object]) -> float:
    began = host.clock.now().mono
    await work
    return round(host.clock.now().mono - began, 3)


def new_run(host: FakeHost, of: Pod | None, cancel: asyncio.Event | None = None) -> SyncRun:
    request = SyncPod(uid=UID, generation=1, incarnation=1, kind=TERMINATING, pod=of, row=-1, min_observed_at=0.0)
    return host.new_run(request, cancel)


def only(host: FakeHost) -> FakeContainer:
    """The one container that is not an infra container."""
    (found,) = [c for c in host.podman.containers.values() if not c.is_infra]
    return found


# --- preStop -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "hook_s", "expected_s", "exit_code"),
    [
        pytest.param(POLITE, 4.0, 4, 7, id="then it leaves when it is asked to"),
        pytest.param(STUBBORN, 4.0, 10, 137, id="its time is taken from the grace period"),
        pytest.param(STUBBORN, 9.5, 11.5, 137, id="the minimum is left"),
        pytest.param(POLITE, 500.0, 10, 7, id="longer than the grace period: given up when that ends"),
        pytest.param(STUBBORN, 500.0, 12, 137, id="given up, and the minimum is left"),
    ],
)
def test_a_pre_stop_hook_comes_before_the_signal_and_is_counted(
    tmp_path: Path, args: Sequence[str], hook_s: float, expected_s: float, exit_code: int
) -> None:
    async def scenario(host: FakeHost) -> None:
        host.podman.commands[HOOK] = Program(runs_s=hook_s)
        of = pod(with_pre_stop(exec_hook(*HOOK), args), termination_grace_period_seconds=10)
        await host.sync(of)
        began = host.clock.now().mono
        host.reasons()
        assert await took_s(host, host.sync(of, TERMINATING)) == expected_s
        assert [(e.container, e.command, e.at) for e in host.podman.execs] == [("a", HOOK, began)]
        assert only(host).exit_code == exit_code
        assert host.reasons() == ["Killing spec.containers{a}"]

    on_host(tmp_path, scenario)


@pytest.mark.parametrize(("seconds", "expected_s"), [(0, 0), (3, 3)])
def test_a_pre_stop_hook_may_just_wait(tmp_path: Path, seconds: int, expected_s: float) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod(with_pre_stop(sleep_hook(seconds)))
        await host.sync(of)
        assert await took_s(host, host.sync(of, TERMINATING)) == expected_s
        assert only(host).exit_code == 7

    on_host(tmp_path, scenario)


@pytest.mark.parametrize(
    "hook",
    [
        pytest.param(exec_hook(*HOOK), id="exit code"),
        pytest.param(exec_hook("no-such-command"), id="not found"),
        pytest.param(LifecycleHandler(tcp_socket=TCPSocketAction(port=80)), id="tcpSocket"),
        pytest.param(LifecycleHandler(http_get=HTTPGetAction(port=80)), id="httpGet"),
        pytest.param(LifecycleHandler(http_get=HTTPGetAction(port=80, host="é..x")), id="no host"),
        pytest.param(LifecycleHandler(), id="nothing"),
    ],
)
def test_a_failed_pre_stop_hook_is_told_without_its_words_and_the_stop_goes_on(
    tmp_path: Path, hook: LifecycleHandler
) -> None:
    async def scenario(host: FakeHost) -> None:
        host.podman.commands[HOOK] = Program(runs_s=1.0, exit_code=9, output=SECRET.encode())
        of = pod(with_pre_stop(hook))
        await host.sync(of)
        host.events.clear()
        done = await host.sync(of, TERMINATING)
        assert (done.error, only(host).exit_code) == ("", 7)
        assert [(e.type, e.reason, e.message) for e in host.events] == [
            ("Normal", "Killing", "Stopping container a"),
            ("Warning", "FailedPreStopHook", "PreStopHook failed"),
        ]
        assert SECRET not in f"{host.events} {done}"

    on_host(tmp_path, scenario)


def test_no_hook_runs_in_a_container_that_has_ended(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod(with_pre_stop(exec_hook("true")))
        await host.sync(of)
        seen_running = await host.observe(UID)
        host.podman.exit(only(host).id, 3)
        host.events.clear()
        assert await took_s(host, host.sync(of, TERMINATING, view=seen_running)) == 0
        assert (list(host.podman.execs), host.reasons()) == ([], ["Killing spec.containers{a}"])

    on_host(tmp_path, scenario)


@pytest.mark.parametrize("hook", [exec_hook(*HOOK), sleep_hook(20)], ids=["exec", "sleep"])
def test_a_container_that_ends_during_its_hook_is_not_waited_for(tmp_path: Path, hook: LifecycleHandler) -> None:
    async def scenario(host: FakeHost) -> None:
        host.podman.commands[HOOK] = Program(runs_s=20.0)
        of = pod(with_pre_stop(hook))
        await host.sync(of)
        host.events.clear()
        asyncio.get_running_loop().call_later(2.0, host.podman.exit, only(host).id, 3)
        assert await took_s(host, host.sync(of, TERMINATING)) == 2
        assert (only(host).signals, host.reasons()) == ([], ["Killing spec.containers{a}"])

    on_host(tmp_path, scenario)


def test_a_hook_that_ends_its_container_needs_no_signal(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        host.podman.commands[HOOK] = Program(runs_s=2.0, ends_container=True)
        of = pod(with_pre_stop(exec_hook(*HOOK)))
        await host.sync(of)
        assert await took_s(host, host.sync(of, TERMINATING)) == 2
        assert only(host).exit_code == 0

    on_host(tmp_path, scenario)


def test_without_a_grace_period_there_is_no_hook(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod(with_pre_stop(exec_hook("true"), STUBBORN))
        await host.sync(of)
        assert await took_s(host, host.sync(of, TERMINATING, grace_period_s=0)) == 2
        assert not host.podman.execs

    on_host(tmp_path, scenario)


def test_a_shorter_grace_period_finds_the_hook_running(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        host.podman.commands[HOOK] = Program(runs_s=15.0)
        of = pod(with_pre_stop(exec_hook(*HOOK)), termination_grace_period_seconds=600)
        await host.sync(of)
        cancel = asyncio.Event()
        first = asyncio.ensure_future(host.sync(of, TERMINATING, cancel=cancel, grace_period_s=600))
        await asyncio.sleep(10)
        cancel.set()
        assert (await first).cancelled
        assert await took_s(host, host.sync(of, TERMINATING, grace_period_s=8)) == 5, "the hook's last 5 s of 15"
        assert (len(host.podman.execs), only(host).exit_code) == (1, 7)

    on_host(tmp_path, scenario)


def test_a_shorter_grace_period_does_not_repeat_a_hook_that_has_run(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        host.podman.commands[HOOK] = Program(runs_s=1.0, exit_code=1)
        of = pod(with_pre_stop(exec_hook(*HOOK), STUBBORN), termination_grace_period_seconds=600)
        await host.sync(of)
        cancel = asyncio.Event()
        first = asyncio.ensure_future(host.sync(of, TERMINATING, cancel=cancel, grace_period_s=600))
        await asyncio.sleep(10)
        cancel.set()
        await first
        assert await took_s(host, host.sync(of, TERMINATING, grace_period_s=3)) == 3
        assert len(host.podman.execs) == 1
        assert host.reasons().count("FailedPreStopHook spec.containers{a}") == 1

    on_host(tmp_path, scenario)


def test_the_next_worker_runs_the_hook_again(tmp_path: Path) -> None:
    """Nobody knows how far it came: at least once."""

    async def scenario(host: FakeHost) -> None:
        host.podman.commands[HOOK] = Program(runs_s=15.0)
        of = pod(with_pre_stop(exec_hook(*HOOK)))
        await host.sync(of)
        cancel = asyncio.Event()
        first = asyncio.ensure_future(host.sync(of, TERMINATING, cancel=cancel))
        await asyncio.sleep(10)
        cancel.set()
        await first
        host.next_worker()
        assert await took_s(host, host.sync(of, TERMINATING)) == 15
        assert len(host.podman.execs) == 2

    on_host(tmp_path, scenario)


def test_when_nobody_answers_the_hook_is_run_by_the_next_sync(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod(with_pre_stop(exec_hook("true")))
        await host.sync(of)
        view = await host.observe(UID)
        host.runtime.down = True
        done = await host.sync(of, TERMINATING, view=view)
        assert (done.error, len(host.podman.execs)) == ("Unavailable", 0)
        host.runtime.down = False
        assert (await host.sync(of, TERMINATING)).error == ""
        assert len(host.podman.execs) == 1

    on_host(tmp_path, scenario)


@pytest.mark.parametrize("flavour", [Flavour.FAILED, Flavour.TIMED_OUT, Flavour.TIMED_OUT_WITH_EFFECT])
def test_a_hook_that_could_not_be_run_counts_as_failed(tmp_path: Path, flavour: Flavour) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod(with_pre_stop(exec_hook("true")))
        await host.sync(of)
        host.reasons()
        host.runtime.fail(1, flavour, "exec_container")
        assert (await host.sync(of, TERMINATING)).error == ""
        assert host.reasons() == ["Killing spec.containers{a}", "FailedPreStopHook spec.containers{a}"]

    on_host(tmp_path, scenario)


def test_the_hook_of_a_container_without_a_manifest_is_the_one_that_was_noted(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        await host.sync(pod(container("a", args=POLITE)))
        view = await host.observe(UID)
        noted = msgspec.structs.replace(view.containers[0], pre_stop=exec_hook("sleep", "3"))
        view = msgspec.structs.replace(view, containers=(noted,))
        assert await took_s(host, host.sync(None, TERMINATING, uid=UID, view=view)) == 3
        assert [e.command for e in host.podman.execs] == [("sleep", "3")]

    on_host(tmp_path, scenario)


def test_a_container_that_is_replaced_is_stopped_with_its_hook(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        old = with_pre_stop(exec_hook("sleep", "3"))
        await host.sync(pod(old))
        host.podman.images["localhost/other:1"] = host.podman.images[IMAGE]
        new = msgspec.structs.replace(old, image="localhost/other:1")
        assert await took_s(host, host.sync(pod(new))) == 3
        assert [e.command for e in host.podman.execs] == [("sleep", "3")]

    on_host(tmp_path, scenario)


@pytest.mark.parametrize(("stop_signal", "sent"), [("", ["SIGTERM"]), ("SIGUSR1", ["SIGUSR1"])])
def test_the_stop_signal_is_the_containers_own(tmp_path: Path, stop_signal: str, sent: list[str]) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod(container("a", args=("sh", "-c", f'trap "exit 5" {sent[0][3:]}; sleep 1000000')))
        await host.sync(of)
        kill = ContainerKill(
            id=only(host).id,
            name="a",
            pid=only(host).pid,
            stop_signal=stop_signal,
            reason=KillReason.NONE,
            message="because",
            grace_period_s=10,
        )
        assert await took_s(host, kill_container(new_run(host, of), host.context.handlers, kill)) == 0
        assert (only(host).signals, only(host).exit_code) == (sent, 5)

    on_host(tmp_path, scenario)


def test_hooks_that_nobody_asked_about_any_more_are_given_up(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        pre_stops = PreStops()
        began = [pre_stops.begin(str(number), lambda: asyncio.sleep(100)) for number in range(MAX_KEPT + 1)]
        assert pre_stops.begin("1", lambda: asyncio.sleep(100)) is began[1]
        pre_stops.forget("1")
        await asyncio.sleep(0)
        assert [task.cancelled() for task in began[:3]] == [True, True, False]

    on_host(tmp_path, scenario)


# --- the order ---------------------------------------------------------------------------------------------------


async def put_up(host: FakeHost, of: Pod) -> None:
    """Every container of the pod runs, whatever list it stands in."""
    own = {labels.INSTANCE: host.INSTANCE, labels.POD_UID: UID, labels.ATTEMPT: "0"}
    sandbox = host.podman.create_pod(signed_pod({"name": "sandbox", "labels": own}))
    for each in (*of.spec.init_containers, *of.spec.containers):
        spec = {
            "name": container_name(of, each.name, 0),
            "image": IMAGE,
            "pod": sandbox,
            "command": each.args,
            "labels": {**own, labels.CONTAINER_NAME: each.name},
        }
        host.podman.start_container(host.podman.create_container(signed_container(spec)))


def sidecar(name: str, **fields: Any) -> Container:
    return container(name, restart_policy="Always", **{"args": POLITE, **fields})


async def ends_s(host: FakeHost, of: Pod) -> dict[str, float]:
    """Stop the pod: when each of its containers ended, in seconds from the beginning."""
    await put_up(host, of)
    began = host.clock.now().wall
    status = await host.observe(UID)
    await kill_pod(new_run(host, of), host.context.handlers, of, kill_all(of, status), status.sandboxes)
    ended = {c.labels[labels.CONTAINER_NAME]: c for c in host.podman.containers.values() if not c.is_infra}
    return {name: round(c.finished_at - began, 3) for name, c in ended.items()}


def test_sidecars_go_last_and_in_reverse_order(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        main = with_pre_stop(sleep_hook(4), name="main")
        slow = sidecar("two", lifecycle=Lifecycle(pre_stop=exec_hook("sleep", "6")))
        of = pod(main, container("other", args=POLITE), init_containers=(sidecar("one"), slow, sidecar("three")))
        assert await ends_s(host, of) == {"other": 0, "main": 4, "three": 4, "two": 6, "one": 6}
        # A sidecar's hook does not wait for its turn.
        assert [e.at for e in host.podman.execs] == [host.clock.now().mono - 6]

    on_host(tmp_path, scenario)


def test_when_the_grace_period_is_spent_sidecars_get_the_minimum(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        sidecars = (sidecar("one"), sidecar("two", args=STUBBORN))
        of = pod(container("main", args=STUBBORN), init_containers=sidecars, termination_grace_period_seconds=5)
        assert await ends_s(host, of) == {"main": 5, "one": 5, "two": 7}

    on_host(tmp_path, scenario)


def test_a_sidecar_that_ends_before_its_turn_is_not_waited_for(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        leaves = sidecar("leaves", args=("sleep", "2"))
        of = pod(container("main", args=STUBBORN), init_containers=(leaves,), termination_grace_period_seconds=9)
        assert await ends_s(host, of) == {"main": 9, "leaves": 2}

    on_host(tmp_path, scenario)


def test_init_containers_that_do_not_stay_have_no_order(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod(
            container("main", args=STUBBORN),
            init_containers=(container("init", args=POLITE),),
            termination_grace_period_seconds=3,
        )
        assert await ends_s(host, of) == {"main": 3, "init": 0}

    on_host(tmp_path, scenario)


def test_without_a_manifest_everybody_goes_at_once(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        await put_up(host, pod(container("main", args=STUBBORN), init_containers=(sidecar("side"),)))
        status = await host.observe(UID)
        kills = kill_all(None, status, 5)
        stop = asyncio.ensure_future(
            kill_pod(new_run(host, None), host.context.handlers, None, kills, status.sandboxes)
        )
        await asyncio.sleep(1)
        assert list(host.running()) == ["main"]
        await stop

    on_host(tmp_path, scenario)


# --- postStart ---------------------------------------------------------------------------------------------------


async def start(host: FakeHost, hook: LifecycleHandler | None, pre_stop: LifecycleHandler | None = None) -> Pod:
    """A pod whose container runs, and whose postStart hook did not."""
    await host.sync(pod(container("a", args=POLITE)))
    host.reasons()
    return pod(container("a", args=POLITE, lifecycle=Lifecycle(post_start=hook, pre_stop=pre_stop)))


def post_start(host: FakeHost, of: Pod, cancel: asyncio.Event | None = None) -> Awaitable[None]:
    return run_post_start(new_run(host, of, cancel), host.context.handlers, of, of.spec.containers[0], only(host).id)


@pytest.mark.parametrize(
    ("hook", "expected_s"), [(None, 0), (exec_hook("sleep", "4"), 4), (sleep_hook(3), 3), (sleep_hook(0), 0)]
)
def test_a_start_waits_for_the_post_start_hook(
    tmp_path: Path, hook: LifecycleHandler | None, expected_s: float
) -> None:
    async def scenario(host: FakeHost) -> None:
        of = await start(host, hook)
        assert await took_s(host, post_start(host, of)) == expected_s
        assert (list(host.running()), host.reasons()) == (["a"], [])

    on_host(tmp_path, scenario)


@pytest.mark.parametrize(
    ("hook", "words"),
    [
        (exec_hook(*HOOK), "exec hook of container a ended with exit code 9"),
        (exec_hook("no-such-command"), "exec hook of container a did not run: Command"),
        (
            LifecycleHandler(http_get=HTTPGetAction(port=80)),
            "httpGet hook of container a: nobody dials into pods here",
        ),
        (
            LifecycleHandler(http_get=HTTPGetAction(port=80, host="é..x")),
            "httpGet hook of container a: dial tcp: lookup é..x: no such host",
        ),
        (LifecycleHandler(tcp_socket=TCPSocketAction(port=80)), "hook of container a: invalid handler"),
    ],
)
def test_a_failed_post_start_hook_takes_its_container_down(tmp_path: Path, hook: LifecycleHandler, words: str) -> None:
    async def scenario(host: FakeHost) -> None:
        host.podman.commands[HOOK] = Program(runs_s=1.0, exit_code=9, output=SECRET.encode())
        of = await start(host, hook, pre_stop=exec_hook("true"))
        host.events.clear()
        with pytest.raises(PostStartHookFailed) as caught:
            await post_start(host, of)
        assert caught.value.message == words
        assert [(e.type, e.reason, e.message) for e in host.events] == [
            ("Warning", "FailedPostStartHook", "PostStartHook failed"),
            ("Normal", "Killing", "FailedPostStartHook"),
        ]
        assert [e.command for e in host.podman.execs][-1] == ("true",), "its preStop hook runs all the same"
        assert only(host).exit_code == 7
        assert SECRET not in f"{host.events}"

    on_host(tmp_path, scenario)


def test_a_container_that_is_gone_when_its_hook_has_failed_needs_no_stop(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = await start(host, exec_hook("false"))
        id = only(host).id
        host.podman.remove_container(id)
        with pytest.raises(PostStartHookFailed):
            await run_post_start(new_run(host, of), host.context.handlers, of, of.spec.containers[0], id)
        assert host.reasons() == ["FailedPostStartHook spec.containers{a}"]

    on_host(tmp_path, scenario)


def test_a_pod_that_has_to_go_does_not_wait_for_its_post_start_hook(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = await start(host, sleep_hook(1000), pre_stop=exec_hook("sleep", "2"))
        cancel = asyncio.Event()
        starting = asyncio.ensure_future(post_start(host, of, cancel))
        await asyncio.sleep(5)
        cancel.set()
        with pytest.raises(SyncEnded) as caught:
            await starting
        assert caught.value.cancelled
        assert await took_s(host, host.sync(of, TERMINATING)) == 2
        assert (only(host).exit_code, host.reasons()) == (7, ["Killing spec.containers{a}"])

    on_host(tmp_path, scenario)


def test_results_say_what_was_done(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod(with_pre_stop(exec_hook("false")))
        await host.sync(of)
        done: SyncDone = await host.sync(of, TERMINATING)
        assert [(r.action.value, r.target, r.error) for r in done.results] == [
            ("KillContainer", "a", ""),
            ("KillPodSandbox", "web", ""),
        ]

    on_host(tmp_path, scenario)


def test_a_pod_that_has_to_go_while_its_container_starts_goes_politely(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod(with_pre_stop(exec_hook("sleep", "2")))
        cancel = asyncio.Event()
        begin = host.podman.start_container

        def start_container(id: str) -> None:
            begin(id)
            if not host.podman.container(id).is_infra:
                cancel.set()

        host.podman.start_container = start_container  # type: ignore[method-assign]
        done = await host.sync(of, cancel=cancel)
        assert len(host.podman.execs) == 0
        assert list(host.running()) == ["a"]
        assert done.changed
        assert await took_s(host, host.sync(of, TERMINATING)) == 2
        assert only(host).exit_code == 7

    on_host(tmp_path, scenario)
