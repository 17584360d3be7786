"""Phase and container statuses in situations that one host meets; upstream's own tables run in tests/kubelet_tables."""

from __future__ import annotations

import msgspec
import pytest

from ipc.host.clock import Instant, rfc3339
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod, PodSpec, RestartPolicy
from ipc.k8s.api.v1.status import PodStatus
from ipc.k8s.kubecontainer.pod_failure import PodFailure
from ipc.k8s.kubecontainer.pod_status import (
    ContainerState,
    RuntimeContainerStatus,
    RuntimePodStatus,
    SandboxState,
    SandboxStatus,
)
from ipc.link.messages.pod_worker import SyncAction, SyncResult
from ipc.link.messages.sync_error import SyncError
from supervisor.status.generate import StatusInput, generate_pod_status

NOW = Instant(mono=100.0, wall=1_800_000_000.0)
LATER = Instant(mono=200.0, wall=1_800_000_100.0)


def pod(*names: str, policy: RestartPolicy = "Always") -> Pod:
    containers = tuple(Container(name=name, image="image") for name in names)
    return Pod(
        metadata=ObjectMeta(name="p", namespace="default", uid="u", generation=3),
        spec=PodSpec(containers=containers, restart_policy=policy),
    )


def container(name: str, state: ContainerState, attempt: int = 0, exit_code: int = 0) -> RuntimeContainerStatus:
    return RuntimeContainerStatus(
        id=f"{name}{attempt}",
        name=name,
        attempt=attempt,
        state=state,
        exit_code=exit_code,
        started_at=1.0,
        finished_at=2.0 if state is ContainerState.EXITED else 0.0,
    )


READY_SANDBOX = SandboxStatus(id="s", name="s", infra_id="i", attempt=0, state=SandboxState.READY, created_at=50.0)


def status(
    wanted: Pod, *containers: RuntimeContainerStatus, previous: PodStatus | None = None, **more: object
) -> PodStatus:
    observed = RuntimePodStatus(uid="u", observed_at=1.0, sandboxes=(READY_SANDBOX,), containers=containers)
    given = StatusInput(pod=wanted, observed=observed, reasons=more.pop("reasons", {}), previous=previous, **more)  # type: ignore[arg-type]
    return generate_pod_status(given, NOW)


def conditions(made: PodStatus) -> dict[str, str]:
    return {condition.type: condition.status for condition in made.conditions}


RUNNING, EXITED = ContainerState.RUNNING, ContainerState.EXITED


@pytest.mark.parametrize(
    ("policy", "exit_code", "phase"),
    [
        ("Always", 0, "Running"),
        ("Always", 1, "Running"),
        ("OnFailure", 0, "Succeeded"),
        ("OnFailure", 1, "Running"),
        ("Never", 0, "Succeeded"),
        ("Never", 1, "Failed"),
    ],
)
def test_phase_after_the_only_container_ended(policy: RestartPolicy, exit_code: int, phase: str) -> None:
    assert status(pod("a", policy=policy), container("a", EXITED, exit_code=exit_code)).phase == phase


def test_a_running_pod_is_ready_in_every_condition() -> None:
    made = status(pod("a", "b"), container("a", RUNNING), container("b", RUNNING))
    assert made.phase == "Running"
    assert set(conditions(made).values()) == {"True"}
    assert made.observed_generation == 3
    assert made.start_time == "1970-01-01T00:00:50Z", "when the first sandbox was made"


def test_the_start_time_is_the_earliest_known_also_when_it_is_seen_late() -> None:
    unseen = StatusInput(pod=pod("a"), observed=RuntimePodStatus(uid="u"), reasons={}, previous=None)
    first = generate_pod_status(unseen, NOW)
    assert first.start_time == rfc3339(NOW.wall)
    adopted = status(pod("a"), container("a", RUNNING), previous=first)
    assert adopted.start_time == "1970-01-01T00:00:50Z"
    assert status(pod("a"), previous=adopted).start_time == adopted.start_time


def test_who_has_not_looked_says_nothing_of_containers_but_what_was_known() -> None:
    """A new agent over a pod that runs: not even that a container waits, or was never restarted."""
    unseen = StatusInput(pod=pod("a"), observed=RuntimePodStatus(uid="u"), reasons={}, previous=None)
    first = generate_pod_status(unseen, NOW)
    assert (first.phase, first.container_statuses) == ("Pending", ())
    known = status(pod("a"), container("a", RUNNING, attempt=3))
    again = generate_pod_status(msgspec.structs.replace(unseen, previous=known), LATER)
    assert [s.restart_count for s in again.container_statuses] == [3]
    assert again.container_statuses == known.container_statuses


def test_a_failed_start_shows_as_waiting_with_its_reason_and_the_last_end() -> None:
    reason = SyncResult(
        action=SyncAction.START_CONTAINER,
        target="a",
        error=SyncError.CRASH_LOOP_BACK_OFF,
        message="back-off 10s",
        retry_at=9.0,
    )
    made = status(pod("a"), container("a", EXITED, attempt=2, exit_code=7), reasons={"a": reason})
    [one] = made.container_statuses
    assert one.state.waiting is not None
    assert one.state.waiting.reason == "CrashLoopBackOff"
    assert one.last_state.terminated is not None
    assert one.last_state.terminated.exit_code == 7
    assert one.restart_count == 2
    assert conditions(made)["Ready"] == "False"


def test_the_container_before_is_the_last_state() -> None:
    made = status(pod("a"), container("a", RUNNING, attempt=1), container("a", EXITED, exit_code=3))
    [one] = made.container_statuses
    assert one.last_state.terminated is not None
    assert one.last_state.terminated.reason == "Error"


def test_a_restart_count_never_falls() -> None:
    before = status(pod("a"), container("a", RUNNING, attempt=5))
    after = status(pod("a"), container("a", RUNNING, attempt=1), previous=before)
    assert after.container_statuses[0].restart_count == 5


def test_a_terminal_phase_is_never_left() -> None:
    done = status(pod("a", policy="Never"), container("a", EXITED))
    again = status(pod("a", policy="Never"), container("a", RUNNING), previous=done)
    assert (done.phase, again.phase) == ("Succeeded", "Succeeded")


def test_rejection_makes_it_failed_with_the_reason() -> None:
    """And without container statuses, so that the reason is what people see of it."""
    rejection = PodFailure(reason="OutOfpods", message="Pod was rejected: too many")
    made = status(pod("a"), rejection=rejection, terminating=True, terminated=True)
    assert (made.phase, made.reason, made.message) == ("Failed", "OutOfpods", "Pod was rejected: too many")
    assert (made.conditions, made.host_ip, made.container_statuses) == ((), "", ())


def test_a_rejected_pod_keeps_what_is_known_of_its_containers() -> None:
    """An agent before this one has run it."""
    made = status(pod("a"), container("a", RUNNING), rejection=PodFailure(reason="OutOfpods", message="too many"))
    assert [each.name for each in made.container_statuses] == ["a"]
    assert conditions(made)["ContainersReady"] == "False"


def test_transition_times_move_only_with_the_status() -> None:
    wanted = pod("a")
    observed = RuntimePodStatus(
        uid="u", observed_at=1.0, sandboxes=(READY_SANDBOX,), containers=(container("a", RUNNING),)
    )
    given = StatusInput(pod=wanted, observed=observed, reasons={}, previous=None)
    first = generate_pod_status(given, NOW)
    same = generate_pod_status(msgspec.structs.replace(given, previous=first), LATER)
    assert same == first
    gone = RuntimePodStatus(uid="u", observed_at=1.0, sandboxes=(READY_SANDBOX,), containers=(container("a", EXITED),))
    changed = generate_pod_status(msgspec.structs.replace(given, previous=first, observed=gone), LATER)
    times = {condition.type: condition.last_transition_time for condition in changed.conditions}
    assert times["Ready"] != times["Initialized"]


def test_a_terminated_pod_counts_what_is_down_as_final() -> None:
    ended = (container("a", EXITED), container("b", EXITED, exit_code=137))
    made = status(pod("a", "b"), *ended, terminated=True, terminating=True)
    assert made.phase == "Failed"


# --- addresses ---

HOST_IP = "192.0.2.7"
HOST_IPS = (HOST_IP, "fd00::7")


def with_ips(wanted: Pod, *ips: str, previous: PodStatus | None = None) -> PodStatus:
    """The status of the pod whose sandbox has these addresses."""
    sandbox = msgspec.structs.replace(READY_SANDBOX, ips=ips)
    observed = RuntimePodStatus(uid="u", sandboxes=(sandbox,))
    given = StatusInput(pod=wanted, observed=observed, reasons={}, previous=previous, host_ips=HOST_IPS)
    return generate_pod_status(given, NOW)


def test_addresses_of_host_and_pod() -> None:
    made = with_ips(pod("a"), "10.0.2.100", "fd00::64")
    assert (made.host_ip, [each.ip for each in made.host_ips]) == (HOST_IP, list(HOST_IPS))
    assert (made.pod_ip, [each.ip for each in made.pod_ips]) == ("10.0.2.100", ["10.0.2.100", "fd00::64"])
    on_host = msgspec.structs.replace(pod("a"), spec=msgspec.structs.replace(pod("a").spec, host_network=True))
    made = with_ips(on_host, "10.0.2.100")
    assert (made.pod_ip, [each.ip for each in made.pod_ips]) == (HOST_IP, list(HOST_IPS))


def test_addresses_stay_when_the_sandbox_has_none() -> None:
    before = with_ips(pod("a"), "10.0.2.100")
    assert with_ips(pod("a"), previous=before).pod_ips == before.pod_ips
    assert with_ips(pod("a"), "10.0.2.101", previous=before).pod_ip == "10.0.2.101"


def test_a_pod_stays_ready_while_it_goes_down() -> None:
    running = container("a", RUNNING)
    before = status(pod("a"), running)
    going = status(pod("a"), running, previous=before, terminating=True)
    assert conditions(going)["Ready"] == "True"
    assert conditions(status(pod("a"), container("a", EXITED), previous=going, terminating=True))["Ready"] == "False"
