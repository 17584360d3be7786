"""How many dead containers a pod's own sync leaves, by policy; and what it leaves whatever the policy says."""

from __future__ import annotations

import pytest

from ipc.k8s.api.pod_containers import ContainerKind
from ipc.k8s.kubecontainer.container_gc import GcPolicy
from ipc.k8s.kubecontainer.hashing import container_hash
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, RuntimePodStatus, SandboxState
from tests.support.pods import UID, container, pod, sandbox
from workers.compute.crash_loop_backoff import crash_loop_limits
from workers.compute.pod_actions import compute_pod_actions

NOW = 1_800_000_000.0
OF = pod("a", restart_policy="OnFailure")


def lifecycle(attempt: int, state: ContainerState, exit_code: int = 1) -> RuntimeContainerStatus:
    """Lifecycle of container ``a``, a minute after the one before it."""
    return RuntimeContainerStatus(
        id=f"a-{attempt}",
        name="a",
        attempt=attempt,
        state=state,
        sandbox_id="sandbox-0",
        hash=container_hash(container("a"), ContainerKind.REGULAR),
        exit_code=exit_code,
        created_at=NOW - 600 + 60 * attempt,
        started_at=NOW - 600 + 60 * attempt,
        finished_at=NOW - 590 + 60 * attempt,
    )


def removed(*pod_table: RuntimeContainerStatus, dead_containers: tuple[str, ...] = (), **policy: float) -> list[str]:
    """Ids, of a pod with these containers, oldest first."""
    status = RuntimePodStatus(uid=UID, sandboxes=(sandbox(OF),), containers=pod_table[::-1])
    gc = GcPolicy(**policy)  # type: ignore[arg-type]
    actions = compute_pod_actions(OF, status, NOW, crash_loop_limits(300), gc=gc, dead_containers=dead_containers)
    return sorted(container.id for container in actions.containers_to_remove)


EXITED, RUNNING = ContainerState.EXITED, ContainerState.RUNNING
RUNS = (lifecycle(0, EXITED), lifecycle(1, EXITED), lifecycle(2, EXITED), lifecycle(3, RUNNING))
CRASHED = RUNS[:3]
DONE = (*RUNS[:2], lifecycle(2, EXITED, exit_code=0))


@pytest.mark.parametrize(
    ("maximum", "of_running", "of_crashed"),
    [
        (-1, [], []),
        (0, ["a-0", "a-1", "a-2"], ["a-0", "a-1"]),
        (1, ["a-0", "a-1"], ["a-0", "a-1"]),
        (2, ["a-0"], ["a-0"]),
        (3, [], []),
    ],
)
def test_a_container_keeps_as_many_as_configured(maximum: int, of_running: list[str], of_crashed: list[str]) -> None:
    assert removed(*RUNS, max_per_pod_container=maximum) == of_running
    assert removed(*CRASHED, max_per_pod_container=maximum) == of_crashed


def test_the_young_stay() -> None:
    assert removed(*RUNS, max_per_pod_container=1, min_age_s=530.0) == ["a-0"], "and do not count"


def test_what_the_node_has_too_many_of_goes_too_but_never_the_newest() -> None:
    assert removed(*RUNS, dead_containers=("a-2",)) == ["a-0", "a-1", "a-2"]
    assert removed(*CRASHED, dead_containers=("a-2",)) == ["a-0", "a-1"], "it says how long to wait"
    assert removed(*DONE, dead_containers=("a-2",)) == ["a-0", "a-1"], "without it the container would run again"


@pytest.mark.parametrize(("policy", "exit_code"), [("Never", 1), ("OnFailure", 0)])
def test_of_a_pod_that_is_done_and_has_lost_its_sandbox_the_node_removes_what_it_has_too_many_of(
    policy: str, exit_code: int
) -> None:
    """An eviction waits for it."""
    of = pod("a", restart_policy=policy)
    lost = sandbox(of, state=SandboxState.NOT_READY)
    lives = (lifecycle(0, EXITED), lifecycle(1, EXITED), lifecycle(2, EXITED, exit_code))
    status = RuntimePodStatus(uid=UID, sandboxes=(lost,), containers=lives[::-1])
    actions = compute_pod_actions(
        of, status, NOW, crash_loop_limits(300), gc=GcPolicy(max_per_pod_container=-1), dead_containers=("a-0", "a-2")
    )
    assert actions.kill_pod
    assert not actions.create_sandbox
    assert [container.id for container in actions.containers_to_remove] == ["a-0"], "not the newest"
