"""Every reason that a container's state can have, and where it comes from."""

from __future__ import annotations

import msgspec
import pytest

from ipc.host.clock import Instant
from ipc.k8s.api.pod_containers import ContainerKind
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod, PodSpec, RestartPolicy
from ipc.k8s.api.v1.status import ContainerState, ContainerStatus, PodStatus
from ipc.k8s.kubecontainer.hashing import container_hash
from ipc.k8s.kubecontainer.pod_status import (
    CONTAINER_STATUS_UNKNOWN,
    RuntimeContainerStatus,
    RuntimePodStatus,
    SandboxState,
    SandboxStatus,
)
from ipc.k8s.kubecontainer.pod_status import ContainerState as Observed
from ipc.link.messages.pod_worker import SyncAction, SyncResult
from ipc.link.messages.sync_error import SyncError
from supervisor.status.generate import StatusInput, generate_pod_status

NOW = Instant(mono=100.0, wall=1_800_000_000.0)
SANDBOX = SandboxStatus(id="s", name="s", infra_id="i", attempt=0, state=SandboxState.READY, created_at=50.0)


def pod(policy: RestartPolicy = "Always", init: tuple[Container, ...] = ()) -> Pod:
    return Pod(
        metadata=ObjectMeta(name="p", namespace="default", uid="u", generation=1),
        spec=PodSpec(init_containers=init, containers=(Container(name="main", image="wanted"),), restart_policy=policy),
    )


def container(state: Observed, **more: object) -> RuntimeContainerStatus:
    fields = {"id": "c1", "name": "main", "attempt": 0, "state": state, "sandbox_id": "s", "started_at": 60.0} | more
    return msgspec.convert(fields, RuntimeContainerStatus)


def made_of(
    *containers: RuntimeContainerStatus,
    reason: SyncError = SyncError.NONE,
    wanted: Pod | None = None,
    previous: PodStatus | None = None,
    **more: object,
) -> PodStatus:
    observed = RuntimePodStatus(uid="u", observed_at=1.0, sandboxes=(SANDBOX,), containers=containers)
    failed = SyncResult(action=SyncAction.START_CONTAINER, target="main", error=reason, message="why")
    given = StatusInput(
        pod=wanted or pod(), observed=observed, reasons={"main": failed} if reason else {}, previous=previous
    )
    return generate_pod_status(msgspec.structs.replace(given, **more), NOW)


def main_of(status: PodStatus) -> ContainerStatus:
    return status.container_statuses[0]


def words(state: ContainerState) -> str:
    """Kind, reason and exit code in one word each."""
    if state.waiting is not None:
        return f"waiting {state.waiting.reason}"
    if state.terminated is not None:
        return f"terminated {state.terminated.reason} {state.terminated.exit_code}"
    return "running" if state.running is not None else "nothing"


WAITS_WITHOUT_A_CONTAINER = (
    SyncError.IMAGE_PULL,
    SyncError.IMAGE_PULL_BACK_OFF,
    SyncError.IMAGE_NEVER_PULL,
    SyncError.IMAGE_INSPECT,
    SyncError.REGISTRY_UNAVAILABLE,
    SyncError.SIGNATURE_VALIDATION_FAILED,
    SyncError.IMAGE_VOLUME_MOUNT_FAILED,
    SyncError.INVALID_IMAGE_NAME,
    SyncError.CREATE_CONTAINER_CONFIG,
    SyncError.CREATE_CONTAINER,
)


@pytest.mark.parametrize("reason", WAITS_WITHOUT_A_CONTAINER)
def test_a_container_that_could_not_be_made_waits_with_the_reason(reason: SyncError) -> None:
    made = main_of(made_of(reason=reason))
    assert made.state.waiting is not None
    assert (made.state.waiting.reason, made.state.waiting.message) == (reason, "why")
    assert words(made.last_state) == "nothing"
    assert (made.ready, made.started, made.image) == (False, False, "wanted")


@pytest.mark.parametrize(
    "reason", [SyncError.CRASH_LOOP_BACK_OFF, SyncError.RUN_CONTAINER, SyncError.POST_START_HOOK, SyncError.IMAGE_PULL]
)
def test_a_container_that_could_not_start_again_waits_with_its_end_behind_it(reason: SyncError) -> None:
    made = main_of(made_of(container(Observed.EXITED, exit_code=7, finished_at=70.0, attempt=3), reason=reason))
    assert (words(made.state), words(made.last_state)) == (f"waiting {reason}", "terminated Error 7")
    assert made.restart_count == 3


def test_no_container_has_its_own_end_as_the_one_before() -> None:
    """The reason for its waiting goes when the next sync begins."""
    ended = container(Observed.EXITED, exit_code=7, finished_at=70.0)
    waits = made_of(ended, reason=SyncError.CRASH_LOOP_BACK_OFF)
    made = main_of(made_of(ended, previous=waits))
    assert (words(made.state), words(made.last_state)) == ("terminated Error 7", "nothing")
    next_one = container(Observed.RUNNING, id="c2", attempt=1)
    assert words(main_of(made_of(next_one, previous=waits)).last_state) == "terminated Error 7"


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_a_reason_says_nothing_of_a_container_that_is_done(policy: RestartPolicy) -> None:
    done = container(Observed.EXITED, finished_at=70.0)
    assert (
        words(main_of(made_of(done, reason=SyncError.IMAGE_PULL, wanted=pod(policy))).state) == "terminated Completed 0"
    )


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"exit_code": 0}, "terminated Completed 0"),
        ({"exit_code": 1}, "terminated Error 1"),
        ({"exit_code": 143}, "terminated Error 143"),
        ({"exit_code": 137, "oom_killed": True}, "terminated OOMKilled 137"),
        ({"exit_code": 137, "reason": CONTAINER_STATUS_UNKNOWN}, "terminated ContainerStatusUnknown 137"),
        ({"exit_code": 128, "started_at": 0.0, "error": "crun: no such file"}, "terminated ContainerCannotRun 128"),
    ],
)
def test_how_a_container_ended(fields: dict[str, object], expected: str) -> None:
    ended = container(Observed.EXITED, finished_at=70.0, **fields)
    assert words(main_of(made_of(ended, wanted=pod("Never"))).state) == expected


@pytest.mark.parametrize(
    ("init", "expected"),
    [((), "waiting ContainerCreating"), ((Container(name="first", image="i"),), "waiting PodInitializing")],
)
def test_what_is_not_there_yet_waits(init: tuple[Container, ...], expected: str) -> None:
    status = made_of(wanted=pod(init=init))
    assert words(main_of(status).state) == expected
    assert [words(each.state) for each in status.init_container_statuses] == [expected] * len(init)
    assert status.phase == "Pending"


def test_what_was_made_and_not_started_waits() -> None:
    assert words(main_of(made_of(container(Observed.CREATED, started_at=0.0))).state) == "waiting ContainerCreating"


# --- who disappears ---


def test_a_running_container_that_is_gone_counts_as_restarted() -> None:
    gone = made_of(previous=made_of(container(Observed.RUNNING)))
    made = main_of(gone)
    assert (words(made.state), words(made.last_state)) == (
        "waiting ContainerCreating",
        "terminated ContainerStatusUnknown 137",
    )
    assert (made.restart_count, gone.phase) == (1, "Running")


def test_a_container_of_a_pod_that_restarts_nothing_fails_it_when_it_is_gone() -> None:
    before = made_of(container(Observed.RUNNING), wanted=pod("Never"))
    assert made_of(wanted=pod("Never"), previous=before).phase == "Failed"


def test_nobody_knows_what_a_container_of_unknown_state_did() -> None:
    before = made_of(container(Observed.RUNNING))
    lost = made_of(container(Observed.UNKNOWN), previous=before)
    assert words(main_of(lost).state) == "terminated ContainerStatusUnknown 137"
    assert main_of(lost).restart_count == 1
    assert made_of(container(Observed.UNKNOWN), previous=lost) == lost, "and that is said once"
    again = main_of(made_of(container(Observed.RUNNING, id="c2", attempt=1), previous=lost))
    assert (again.restart_count, words(again.last_state)) == (1, "terminated ContainerStatusUnknown 137")
    assert words(main_of(made_of(container(Observed.UNKNOWN))).state) == "waiting "


def test_a_pod_that_is_down_has_no_container_without_an_end() -> None:
    before = made_of(container(Observed.RUNNING))
    down = made_of(previous=before, terminating=True, terminated=True)
    assert words(main_of(down).state) == "terminated ContainerStatusUnknown 137"
    ended = main_of(down).state.terminated
    assert ended is not None
    assert ended.message == "The container could not be located when the pod was terminated"
    assert down.phase == "Failed"


@pytest.mark.parametrize(
    ("first", "expected_init", "expected_main"),
    [
        ([], ["terminated ContainerStatusUnknown 137", "waiting PodInitializing"], "waiting PodInitializing"),
        (
            [("first", Observed.EXITED, 0), ("second", Observed.EXITED, 3)],
            ["terminated Completed 0", "terminated Error 3"],
            "waiting PodInitializing",
        ),
        (
            [("first", Observed.EXITED, 0), ("second", Observed.EXITED, 0)],
            ["terminated Completed 0", "terminated Completed 0"],
            "terminated ContainerStatusUnknown 137",
        ),
    ],
)
def test_a_pod_that_went_down_while_it_initialized_says_how_far_it_came(
    first: list[tuple[str, Observed, int]], expected_init: list[str], expected_main: str
) -> None:
    inits = (Container(name="first", image="i"), Container(name="second", image="i"))
    seen = [container(state, id=name, name=name, exit_code=code, finished_at=70.0) for name, state, code in first]
    down = made_of(*seen, wanted=pod("Never", init=inits), terminating=True, terminated=True)
    assert [words(each.state) for each in down.init_container_statuses] == expected_init
    assert words(main_of(down).state) == expected_main
    assert down.phase == "Failed"


@pytest.mark.parametrize(
    ("policy", "exit_code", "hash", "phase"),
    [
        ("Never", 0, "", "Succeeded"),
        ("Never", 1, "", "Failed"),
        ("OnFailure", 0, "", "Succeeded"),
        ("OnFailure", 1, "", "Pending"),
        ("Always", 0, "", "Pending"),
        ("Never", 0, "of another manifest", "Pending"),
    ],
)
def test_an_init_container_of_which_nothing_is_known_keeps_no_pod_from_its_end(
    policy: RestartPolicy, exit_code: int, hash: str, phase: str
) -> None:
    """It was written when the pod was done, or nothing is left of it."""
    wanted = pod(policy, init=(Container(name="first", image="i"),))
    made_from = hash or container_hash(wanted.spec.containers[0], ContainerKind.REGULAR)
    ended = container(Observed.EXITED, hash=made_from, exit_code=exit_code, finished_at=70.0, is_remembered=True)
    nothing_left = RuntimePodStatus(uid="u", observed_at=1.0, containers=(ended,))
    assert made_of(wanted=wanted, observed=nothing_left).phase == phase


# --- termination messages ---


@pytest.mark.parametrize(
    ("error", "message", "expected"),
    [("", "bye", "bye"), ("crun: no", "", "crun: no"), ("crun: no", "bye", "crun: no: bye"), ("", "", "")],
)
def test_the_runtime_s_words_come_before_the_container_s(error: str, message: str, expected: str) -> None:
    ended = container(Observed.EXITED, finished_at=70.0, exit_code=1, error=error, message=message)
    terminated = main_of(made_of(ended, wanted=pod("Never"))).state.terminated
    assert terminated is not None
    assert terminated.message == expected


@pytest.mark.parametrize(("inits", "limit_bytes"), [(0, 12288), (2, 4096), (9, 1228)])
def test_a_pod_s_containers_share_the_room_for_messages(inits: int, limit_bytes: int) -> None:
    wanted = pod("Never", init=tuple(Container(name=f"i{n}", image="i") for n in range(inits)))
    ended = container(Observed.EXITED, finished_at=70.0, message="ä" * 7000)
    terminated = main_of(made_of(ended, wanted=wanted)).state.terminated
    assert terminated is not None
    assert len(terminated.message.encode()) == limit_bytes
    assert set(terminated.message) == {"ä"}, "no character is cut in two"


def test_the_signal_that_stops_it_is_told() -> None:
    assert main_of(made_of(container(Observed.RUNNING, stop_signal="SIGUSR1"))).stop_signal == "SIGUSR1"
    assert main_of(made_of(container(Observed.RUNNING))).stop_signal is None
