"""Conditions, readiness and the three lists of container statuses; upstream's tables run in tests/kubelet_tables."""

from __future__ import annotations

import msgspec
import pytest

from ipc.host.clock import Instant, rfc3339
from ipc.k8s.api.v1.container import (
    Container,
    ContainerRestartRule,
    ContainerRestartRuleOnExitCodes,
    EphemeralContainer,
)
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod, PodSpec
from ipc.k8s.api.v1.probe import ExecAction, Probe
from ipc.k8s.api.v1.status import PodCondition, PodStatus
from ipc.k8s.kubecontainer.pod_status import (
    ContainerState,
    RuntimeContainerStatus,
    RuntimePodStatus,
    SandboxState,
    SandboxStatus,
)
from ipc.k8s.kubecontainer.probe_results import ProbeResult, ProbeResults
from supervisor.status.generate import StatusInput, generate_pod_status, is_restarting_all
from supervisor.status.report import merge_pod_status

NOW = Instant(mono=100.0, wall=1_800_000_000.0)
LATER = Instant(mono=200.0, wall=1_800_000_100.0)
EXITED, RUNNING = ContainerState.EXITED, ContainerState.RUNNING
SANDBOX_AT, INIT_ENDED_AT, STARTED_AT, ENDED_AT = 50.0, 55.0, 60.0, 70.0

MAIN = Container(name="main", image="i")
SETUP = Container(name="setup", image="i")
SIDECAR = Container(name="a-sidecar", image="i", restart_policy="Always")


def pod(
    *containers: Container, init: tuple[Container, ...] = (), ephemeral: tuple[EphemeralContainer, ...] = ()
) -> Pod:
    return Pod(
        metadata=ObjectMeta(name="p", namespace="default", uid="u", generation=4),
        spec=PodSpec(containers=containers or (MAIN,), init_containers=init, ephemeral_containers=ephemeral),
    )


def runs(name: str, attempt: int = 0) -> RuntimeContainerStatus:
    return RuntimeContainerStatus(
        id=f"{name}-{attempt}", name=name, attempt=attempt, state=RUNNING, sandbox_id="s", started_at=STARTED_AT
    )


def ended(name: str, exit_code: int = 0, at: float = ENDED_AT) -> RuntimeContainerStatus:
    return RuntimeContainerStatus(
        id=f"{name}-0",
        name=name,
        attempt=0,
        state=EXITED,
        sandbox_id="s",
        exit_code=exit_code,
        started_at=SANDBOX_AT,
        finished_at=at,
    )


def made_of(
    wanted: Pod, *containers: RuntimeContainerStatus, previous: PodStatus | None = None, **more: object
) -> PodStatus:
    sandbox = SandboxStatus(id="s", name="s", infra_id="i", attempt=0, state=SandboxState.READY, created_at=SANDBOX_AT)
    observed = RuntimePodStatus(uid="u", observed_at=1.0, sandboxes=(sandbox,), containers=containers)
    given = StatusInput(pod=wanted, observed=observed, reasons={}, previous=previous)
    return generate_pod_status(msgspec.structs.replace(given, **more), LATER if previous else NOW)


def condition(status: PodStatus, type_: str) -> PodCondition:
    return next(each for each in status.conditions if each.type == type_)


# --- the lists ---


def test_init_containers_stand_in_their_order_and_the_others_by_name() -> None:
    wanted = pod(
        Container(name="z", image="i"),
        Container(name="b", image="i"),
        init=(SETUP, SIDECAR),
        ephemeral=(EphemeralContainer(name="y", image="i"), EphemeralContainer(name="c", image="i")),
    )
    status = made_of(wanted, ended("setup"), runs("a-sidecar"), runs("z"), runs("b"), runs("y"))
    assert [each.name for each in status.init_container_statuses] == ["setup", "a-sidecar"]
    assert [each.name for each in status.container_statuses] == ["b", "z"]
    assert [each.name for each in status.ephemeral_container_statuses] == ["c", "y"]


def test_ready_and_started_by_kind() -> None:
    wanted = pod(init=(SETUP, SIDECAR), ephemeral=(EphemeralContainer(name="debug", image="i"),))
    status = made_of(wanted, ended("setup"), runs("a-sidecar"), runs("main"), runs("debug"))
    setup, sidecar = status.init_container_statuses
    [main], [debug] = status.container_statuses, status.ephemeral_container_statuses
    assert (setup.ready, setup.started) == (True, False)
    assert (sidecar.ready, sidecar.started) == (True, True)
    assert (main.ready, main.started) == (True, True)
    assert (debug.ready, debug.started) == (False, None)
    assert {each.status for each in status.conditions} == {"True"}


@pytest.mark.parametrize("exit_code", [1, None])
def test_an_init_container_that_is_not_done_is_not_ready(exit_code: int | None) -> None:
    setup = runs("setup") if exit_code is None else ended("setup", exit_code)
    status = made_of(pod(init=(SETUP,)), setup)
    assert not status.init_container_statuses[0].ready
    initialized = condition(status, "Initialized")
    assert (initialized.status, initialized.reason) == ("False", "ContainersNotInitialized")
    assert initialized.message == "containers with incomplete status: [setup]"


def test_an_init_container_that_is_gone_was_done_when_a_regular_one_is_there() -> None:
    status = made_of(pod(init=(SETUP, SIDECAR)), runs("main"))
    setup, sidecar = status.init_container_statuses
    assert setup.state.terminated is not None
    assert (setup.state.terminated.exit_code, setup.state.terminated.reason, setup.ready) == (0, "Completed", True)
    assert sidecar.state.waiting is not None, "it has to come back"


# --- probes ---


UNKNOWN, SUCCESS, FAILURE = ProbeResult.UNKNOWN, ProbeResult.SUCCESS, ProbeResult.FAILURE
PROBE = Probe(exec=ExecAction(command=("true",)))


def probed(*probes: str) -> Pod:
    return pod(msgspec.structs.replace(MAIN, **{f"{probe}_probe": PROBE for probe in probes}))


@pytest.mark.parametrize(
    ("wanted", "probe_results", "before", "started", "ready"),
    [
        (probed(), {}, False, True, True),
        (probed("startup"), {}, False, False, False),
        (probed("startup"), {}, True, True, True),
        (probed("startup"), {"startup": FAILURE}, True, False, False),
        (probed("startup"), {"startup": SUCCESS}, False, True, True),
        (probed("readiness"), {}, True, True, False),
        (probed("readiness"), {"readiness": FAILURE}, True, True, False),
        (probed("readiness"), {"readiness": SUCCESS}, False, True, True),
        (probed("startup", "readiness"), {"startup": SUCCESS, "readiness": SUCCESS}, False, True, True),
        (probed("startup", "readiness"), {"readiness": SUCCESS}, False, False, False),
        (probed("liveness"), {"liveness": FAILURE}, False, True, True),
        (probed(), {"startup": FAILURE, "readiness": FAILURE}, False, True, True),
    ],
)
def test_probes_decide_what_started_and_is_ready(
    wanted: Pod, probe_results: dict[str, ProbeResult], before: bool, started: bool, ready: bool
) -> None:
    """``before``: the same container had started according to the status before."""
    previous = made_of(pod(), runs("main")) if before else None
    said = {"main-0": ProbeResults(**probe_results), "main-7": ProbeResults(startup=SUCCESS, readiness=SUCCESS)}
    status = made_of(wanted, runs("main"), previous=previous, probe_results=said)
    [main] = status.container_statuses
    assert (main.started, main.ready) == (started, ready)
    assert condition(status, "Ready").status == str(ready)


def test_no_verdict_makes_a_container_ready_that_does_not_run() -> None:
    probe_results = {"main-0": ProbeResults(startup=SUCCESS, readiness=SUCCESS)}
    [main] = made_of(probed("startup", "readiness"), ended("main"), probe_results=probe_results).container_statuses
    assert (main.started, main.ready) == (False, False)


# --- conditions over time ---


def test_once_initialized_a_pod_stays_it() -> None:
    wanted = pod(init=(SETUP, SIDECAR))
    before = made_of(wanted, ended("setup"), runs("a-sidecar"), runs("main"))
    after = made_of(wanted, previous=before)
    assert condition(after, "Initialized") == condition(before, "Initialized")
    assert condition(made_of(wanted), "Initialized").status == "False", "one that never was is not"


def test_every_condition_and_the_status_name_the_generation() -> None:
    status = made_of(pod(), runs("main"))
    assert {status.observed_generation, *(each.observed_generation for each in status.conditions)} == {4}


def test_at_the_first_look_conditions_have_the_dates_of_what_is_seen() -> None:
    believed = generate_pod_status(
        StatusInput(pod=pod(init=(SETUP,)), observed=RuntimePodStatus(uid="u"), reasons={}, previous=None), NOW
    )
    seen = (ended("setup", at=INIT_ENDED_AT), runs("main"))
    found = made_of(pod(init=(SETUP,)), *seen, previous=believed, was_observed_before=False)
    times = {each.type: each.last_transition_time for each in found.conditions}
    assert times == {
        "PodScheduled": rfc3339(SANDBOX_AT),
        "PodReadyToStartContainers": rfc3339(SANDBOX_AT),
        "Initialized": rfc3339(INIT_ENDED_AT),
        "ContainersReady": rfc3339(STARTED_AT),
        "Ready": rfc3339(STARTED_AT),
    }
    later = made_of(pod(init=(SETUP,)), seen[0], ended("main", 1), previous=found)
    assert condition(later, "Ready").last_transition_time == rfc3339(LATER.wall), "from then on the clock counts"


@pytest.mark.parametrize("exit_code", [0, 1])
def test_a_resize_that_waits_is_no_condition_of_a_pod_that_has_ended(exit_code: int) -> None:
    pending = PodCondition(type="PodResizePending", status="True", reason="Deferred")
    once = msgspec.structs.replace(pod(), spec=PodSpec(containers=(MAIN,), restart_policy="Never"))
    running = made_of(once, runs(MAIN.name), resize_conditions=(pending,))
    assert condition(running, "PodResizePending") == pending
    over = made_of(once, ended(MAIN.name, exit_code), resize_conditions=(pending,))
    assert "PodResizePending" not in {each.type for each in over.conditions}


def test_what_has_no_date_is_dated_by_the_clock() -> None:
    found = made_of(pod(), was_observed_before=False)
    assert condition(found, "Ready").last_transition_time == rfc3339(NOW.wall)


# --- all containers restart ---

TRIGGER = Container(
    name="trigger",
    image="i",
    restart_policy="Never",
    restart_policy_rules=(
        ContainerRestartRule(
            action="RestartAllContainers",
            exit_codes=ContainerRestartRuleOnExitCodes(operator="In", values=(42,)),
        ),
    ),
)


def test_restarting_all_begins_with_the_exit_and_ends_when_everything_is_removed() -> None:
    wanted = pod(MAIN, TRIGGER)
    first = made_of(wanted, runs("main"), runs("trigger"))
    assert condition(first, "AllContainersRestarting").status == "False"
    assert not is_restarting_all(first)

    begun = made_of(wanted, runs("main"), ended("trigger", 42), previous=first)
    assert condition(begun, "AllContainersRestarting").reason == "RestartAllContainersStarted"
    assert is_restarting_all(begun)

    half = made_of(wanted, ended("main", 137), previous=begun)
    assert is_restarting_all(half), "though nothing shows the exit any more"

    removed = made_of(wanted, previous=half)
    assert not is_restarting_all(removed)
    assert removed.phase == "Running"
    shown = {each.name: each for each in removed.container_statuses}
    assert [each.restart_count for each in shown.values()] == [1, 1]
    assert {each.last_state.terminated.reason for each in shown.values() if each.last_state.terminated} == {
        "RestartingAllContainers"
    }
    waiting = shown["main"].state.waiting
    assert waiting is not None
    assert waiting.reason == "RestartingAllContainers"

    again = made_of(wanted, runs("main", 1), runs("trigger", 1), previous=removed)
    assert [each.restart_count for each in again.container_statuses] == [1, 1]
    assert condition(again, "Ready").status == "True"


@pytest.mark.parametrize("exit_code", [0, 137])
def test_what_was_killed_to_start_again_ends_no_pod(exit_code: int) -> None:
    """A sidecar's exit restarts regular and init containers whose own policy would not."""
    watcher = msgspec.structs.replace(TRIGGER, name="watcher", restart_policy="Always")
    wanted = pod(MAIN, init=(SETUP, watcher))
    wanted = msgspec.structs.replace(wanted, spec=msgspec.structs.replace(wanted.spec, restart_policy="Never"))
    begun = made_of(wanted, ended("setup", 0), ended("watcher", 42), runs("main"))
    killed = made_of(wanted, ended("setup", exit_code), ended("watcher", 42), ended("main", exit_code), previous=begun)
    assert killed.phase == "Running"
    assert is_restarting_all(killed)


def test_the_condition_is_only_there_when_a_rule_is_or_was() -> None:
    assert all(each.type != "AllContainersRestarting" for each in made_of(pod(), runs("main")).conditions)
    before = made_of(pod(MAIN, TRIGGER), runs("main"), ended("trigger", 42))
    edited = made_of(pod(), previous=before)
    assert condition(edited, "AllContainersRestarting").status == "False"


# --- what is told ---


@pytest.mark.parametrize(
    ("told", "phase", "could_run", "expected"),
    [
        (None, "Succeeded", True, "Pending"),
        ("Running", "Failed", True, "Running"),
        ("Running", "Failed", False, "Failed"),
        ("Succeeded", "Succeeded", True, "Succeeded"),
        ("Pending", "Running", True, "Running"),
    ],
)
def test_a_terminal_phase_is_told_when_nothing_can_run(
    told: str | None, phase: str, could_run: bool, expected: str
) -> None:
    before = PodStatus(phase=told, reason="old") if told else None  # type: ignore[arg-type]
    status = PodStatus(phase=phase, reason="new")  # type: ignore[arg-type]
    merged = merge_pod_status(before, status, could_have_running_containers=could_run)
    withheld = expected != phase
    assert (merged.phase, merged.reason) == (expected, ("old" if told else "") if withheld else "new")
