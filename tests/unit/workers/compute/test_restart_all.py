"""The restart of all containers: what goes, in which order, and how."""

from __future__ import annotations

import msgspec
import pytest

from ipc.k8s.api.v1.container import ContainerRestartRule, ContainerRestartRuleOnExitCodes, EphemeralContainer
from ipc.k8s.api.v1.probe import ExecAction, Lifecycle, LifecycleHandler
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimePodStatus, SandboxState
from tests.support.pods import container, observed, pod, sandbox, seen
from workers.compute.crash_loop_backoff import crash_loop_limits
from workers.compute.pod_actions import compute_pod_actions
from workers.compute.types import ContainerWait, PodActions

RULE = ContainerRestartRule(
    action="RestartAllContainers", exit_codes=ContainerRestartRuleOnExitCodes(operator="In", values=(42,))
)
HOOK = Lifecycle(pre_stop=LifecycleHandler(exec=ExecAction(command=("true",))))
OF = pod(
    container("source", restart_policy="Never", restart_policy_rules=(RULE,)),
    container("other", lifecycle=HOOK),
    init_containers=(container("init"), container("side", restart_policy="Always")),
    ephemeral_containers=(EphemeralContainer(name="debug", image="localhost/busybox:latest"),),
)
NOW = 1_800_000_000.0
RUNNING, EXITED = ContainerState.RUNNING, ContainerState.EXITED


def compute(status: RuntimePodStatus, restarting: bool = False, now: float = NOW) -> PodActions:
    return compute_pod_actions(OF, status, now, crash_loop_limits(300.0), restarting_all=restarting)


def status_after(exit_code: int) -> RuntimePodStatus:
    return observed(
        OF,
        seen(OF, "init", EXITED),
        seen(OF, "side", RUNNING),
        seen(OF, "source", EXITED, 1, exit_code=exit_code),
        seen(OF, "source", EXITED, 0, exit_code=42),
        seen(OF, "other", RUNNING),
        seen(OF, "debug", RUNNING),
    )


def test_the_exit_that_a_rule_names_takes_all_down_and_itself_last() -> None:
    actions = compute(status_after(42))
    assert [r.container.id for r in actions.containers_to_reset] == [
        "other-0",
        "init-0",
        "side-0",
        "source-0",
        "source-1",
    ]
    kills = [reset.kill for reset in actions.containers_to_reset if reset.kill is not None]
    assert [(kill.name, kill.grace_period_s) for kill in kills] == [("other", 0), ("side", 0)], "without hook and turn"
    assert msgspec.structs.replace(actions, containers_to_reset=()).is_empty(), "nothing else, and the sandbox stays"


def test_of_one_name_the_live_one_goes_before_past_ones() -> None:
    """And an init container that asks for it goes after all others, whatever its place in the spec."""
    of = pod(
        container("first"),
        container("second"),
        init_containers=(container("init", restart_policy="Never", restart_policy_rules=(RULE,)), container("next")),
    )
    status = observed(
        of,
        seen(of, "init", EXITED, exit_code=42),
        seen(of, "second", EXITED),
        seen(of, "first", RUNNING, 2),
        seen(of, "first", EXITED, 1),
        seen(of, "first", EXITED, 0),
        seen(of, "next", EXITED),
    )
    resets = compute_pod_actions(of, status, NOW, crash_loop_limits(300.0)).containers_to_reset
    assert [r.container.id for r in resets] == ["first-2", "first-0", "first-1", "second-0", "next-0", "init-0"]


def test_a_sidecars_rule_takes_all_down_too() -> None:
    watcher = container("watcher", restart_policy="Always", restart_policy_rules=(RULE,))
    of = pod(container("main"), init_containers=(container("setup"), watcher), restart_policy="Never")
    status = observed(
        of, seen(of, "setup", EXITED), seen(of, "watcher", EXITED, exit_code=42), seen(of, "main", RUNNING)
    )
    actions = compute_pod_actions(of, status, NOW, crash_loop_limits(300.0), restarting_all=False)
    assert [r.container.name for r in actions.containers_to_reset] == ["main", "setup", "watcher"]


def test_an_older_exit_does_not_count() -> None:
    assert compute(status_after(0)).containers_to_reset == ()


@pytest.mark.parametrize(
    ("attempt", "ran_s", "backoff_s"),
    [(0, 1.0, 0.0), (1, 1.0, 10.0), (2, 1.0, 20.0), (6, 1.0, 300.0), (5000, 1.0, 300.0), (6, 601.0, 0.0)],
    ids=["the first time", "again", "and again", "at most", "for ever", "after a long run"],
)
def test_one_after_the_other_waits_longer_and_longer(attempt: int, ran_s: float, backoff_s: float) -> None:
    """Nothing remembers it but the attempt: all containers are removed in between."""
    ended = seen(OF, "source", EXITED, attempt, exit_code=42, started_at=NOW - ran_s, finished_at=NOW)
    status = observed(OF, ended, seen(OF, "other", RUNNING))
    early, late = compute(status, now=NOW + backoff_s - 0.1), compute(status, now=NOW + backoff_s)
    assert [reset.container.name for reset in late.containers_to_reset] == ["other", "source"]
    assert late.waiting == ()
    if backoff_s:
        assert early.containers_to_reset == ()
        assert early.waiting == (ContainerWait(name="source", backoff_s=backoff_s, retry_at=NOW + backoff_s),)


def test_one_that_has_begun_goes_on_without_its_reason() -> None:
    left = observed(OF, seen(OF, "side", RUNNING))
    assert [r.container.id for r in compute(left, restarting=True).containers_to_reset] == ["side-0"]
    assert compute(left).containers_to_reset == ()


def test_with_nothing_left_it_waits_until_that_was_seen() -> None:
    nothing = observed(OF)
    assert compute(nothing, restarting=True).is_empty()
    assert [start.name for start in compute(nothing).init_containers_to_start] == ["init"]


@pytest.mark.parametrize("state", SandboxState)
def test_a_lost_sandbox_is_replaced_on_the_way(state: SandboxState) -> None:
    status = msgspec.structs.replace(status_after(42), sandboxes=(sandbox(OF, state=state),))
    actions = compute(status)
    assert (actions.kill_pod, actions.create_sandbox) == ((state is SandboxState.NOT_READY),) * 2
    assert actions.init_containers_to_start == actions.containers_to_start == ()
    assert len(actions.containers_to_reset) == 5
