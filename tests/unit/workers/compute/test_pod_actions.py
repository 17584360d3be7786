"""compute_pod_actions: our own situations beside upstream's tables, and that it converges from anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.k8s.api.v1.container import ContainerRestartRule, ContainerRestartRuleOnExitCodes
from ipc.k8s.api.v1.pod import Pod, RestartPolicy
from ipc.k8s.api.v1.probe import Probe
from ipc.k8s.kubecontainer.container_gc import GcPolicy
from ipc.k8s.kubecontainer.hashing import sandbox_hash
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, RuntimePodStatus, SandboxState
from ipc.k8s.kubecontainer.probe_results import ProbeResult, ProbeResults
from tests.support.pods import container, observed, pod, sandbox, seen
from workers.compute.crash_loop_backoff import crash_loop_limits
from workers.compute.kill_spec import ALIVE, kill_all
from workers.compute.pod_actions import compute_pod_actions
from workers.compute.types import ContainerStart, ContainerWait, PodActions

NOW = 1_800_000_000.0
LIMITS = crash_loop_limits(300.0)
CREATED, RUNNING, EXITED, UNKNOWN = ContainerState


def compute(of: Pod, status: RuntimePodStatus) -> PodActions:
    return compute_pod_actions(of, status, NOW, LIMITS)


def start(name: str, attempt: int = 0, **fields: Any) -> ContainerStart:
    return ContainerStart(name=name, attempt=attempt, **{"backoff_s": 0.0, **fields})


def killed(actions: PodActions) -> dict[str, str]:
    return {kill.id: kill.message for kill in actions.containers_to_kill}


def removed(actions: PodActions) -> list[str]:
    return [c.id for c in actions.containers_to_remove]


# --- the sandbox -------------------------------------------------------------------------------------------------


def test_a_new_pod_gets_a_sandbox_and_every_container() -> None:
    actions = compute(pod("a", "b"), observed(pod("a", "b"), sandboxes=()))
    assert (actions.create_sandbox, actions.attempt, actions.sandbox_id) == (True, 0, "")
    assert actions.containers_to_start == (start("a"), start("b"))


def test_a_pod_as_it_should_be_is_left_alone() -> None:
    wanted = pod("a", "b")
    actions = compute(wanted, observed(wanted, seen(wanted, "a", RUNNING), seen(wanted, "b", RUNNING)))
    assert actions.is_empty()
    assert (actions.sandbox_id, actions.reason) == ("sandbox-0", "2 of 2 containers as they should be")


@pytest.mark.parametrize(
    ("sandboxes", "attempt", "replaced"),
    [
        ([{"state": SandboxState.NOT_READY}], 1, "sandbox-0"),
        ([{"hash": "of another definition"}], 1, "sandbox-0"),
        ([{"host_network": True}], 1, ""),
        ([{"attempt": 4}, {"attempt": 3}], 5, "sandbox-4"),
    ],
    ids=["not ready", "redefined", "network mode", "two ready"],
)
def test_a_changed_sandbox_is_replaced_with_everything_in_it(
    sandboxes: list[dict[str, Any]], attempt: int, replaced: str
) -> None:
    wanted = pod("a")
    status = observed(
        wanted, seen(wanted, "a", RUNNING, 2), sandboxes=tuple(sandbox(wanted, **fields) for fields in sandboxes)
    )
    actions = compute(wanted, status)
    assert (actions.kill_pod, actions.create_sandbox) == (True, True)
    assert (actions.attempt, actions.sandbox_id) == (attempt, replaced)
    assert actions.containers_to_start == (start("a", 3),)


def test_a_lost_sandbox_of_a_pod_that_never_restarts_is_not_replaced_but_a_redefined_one_is() -> None:
    wanted = pod("a", restart_policy="Never")
    a = seen(wanted, "a", RUNNING)
    lost = observed(wanted, a, sandboxes=(sandbox(wanted, state=SandboxState.NOT_READY),))
    assert (compute(wanted, lost).kill_pod, compute(wanted, lost).create_sandbox) == (True, False)
    redefined = observed(wanted, a, sandboxes=(sandbox(wanted, hash="old"),))
    assert compute(wanted, redefined).containers_to_start == (start("a", 1),)
    stopped = sandbox(wanted, hash="old", state=SandboxState.NOT_READY)
    half_way = observed(wanted, seen(wanted, "a", EXITED, exit_code=143), sandboxes=(stopped,))
    assert compute(wanted, half_way).create_sandbox, "a sync died between stopping it and making the next one"
    assert compute(wanted, half_way).containers_to_start == (start("a", 1, backoff_s=10.0),)


def test_what_succeeded_does_not_run_again_in_the_next_sandbox() -> None:
    wanted = pod("a", "b", restart_policy="OnFailure")
    status = observed(
        wanted,
        seen(wanted, "a", EXITED),
        seen(wanted, "b", EXITED, exit_code=1),
        sandboxes=(sandbox(wanted, state=SandboxState.NOT_READY),),
    )
    assert compute(wanted, status).containers_to_start == (start("b", 1, backoff_s=10.0),)


# --- containers --------------------------------------------------------------------------------------------------


def test_only_the_changed_container_is_replaced() -> None:
    before = pod("a", "b", "c")
    after = pod("a", container("b", args=("sleep", "1000001")), "c")
    actions = compute(after, observed(before, *(seen(before, name, RUNNING, 4) for name in "abc")))
    assert killed(actions) == {"b-4": "Container b definition changed, will be restarted"}
    assert actions.containers_to_start == (start("b", 5, replaces="b-4"),)
    assert actions.containers_to_kill[0].grace_period_s == 30
    assert not actions.create_sandbox


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never"])
def test_an_edit_runs_whatever_the_policy_and_however_far_the_last_sync_came(policy: str) -> None:
    """Dead between killing the old container and making the new one: that one still gets made."""
    before, after = pod("a", "b"), pod("a", container("b", args=("sleep", "1000001")))
    after = msgspec.structs.replace(after, spec=msgspec.structs.replace(after.spec, restart_policy=policy))
    half_way = observed(before, seen(before, "a", RUNNING), seen(before, "b", EXITED, exit_code=0))
    assert compute(after, half_way).containers_to_start == (start("b", 1, backoff_s=10.0),)


def test_a_redefined_sandbox_is_refilled_however_far_the_last_sync_came() -> None:
    wanted = pod("a", restart_policy="Never")
    half_way = observed(
        wanted,
        seen(wanted, "a", EXITED, exit_code=143, sandbox_id="sandbox-0"),
        sandboxes=(sandbox(wanted, 1), sandbox(wanted, 0, state=SandboxState.NOT_READY, hash="old")),
    )
    assert compute(wanted, half_way).containers_to_start == (start("a", 1, backoff_s=10.0),)


def test_an_unknown_container_is_killed_and_restarted() -> None:
    wanted = pod("a", "b", restart_policy="Never")
    actions = compute(wanted, observed(wanted, seen(wanted, "a", UNKNOWN), seen(wanted, "b", RUNNING)))
    assert killed(actions) == {"a-0": 'Container is in "unknown" state, try killing it before restart'}
    assert actions.containers_to_start == (start("a", 1),)


def test_an_interrupted_start_goes_on_with_the_same_container() -> None:
    wanted = pod("a", restart_policy="Never")
    actions = compute(wanted, observed(wanted, seen(wanted, "a", CREATED, 3, backoff_s=40.0)))
    assert actions.containers_to_start == (start("a", 3, backoff_s=40.0, created_id="a-3"),)
    assert removed(actions) == []


@pytest.mark.parametrize("fields", [{"hash": "old"}, {"sandbox_id": "gone"}])
def test_a_created_container_that_does_not_fit_is_replaced(fields: dict[str, Any]) -> None:
    wanted = pod("a")
    actions = compute(wanted, observed(wanted, seen(wanted, "a", CREATED, 3, **fields)))
    assert [(s.attempt, s.created_id) for s in actions.containers_to_start] == [(4, "")]
    assert removed(actions) == ["a-3"]


def test_a_crash_loop_waits_and_then_goes_on() -> None:
    wanted = pod("a")
    crashed = seen(wanted, "a", EXITED, 2, exit_code=1, backoff_s=20.0, created_at=NOW - 16, finished_at=NOW - 15)
    waiting = compute(wanted, observed(wanted, crashed))
    assert waiting.waiting == (ContainerWait(name="a", backoff_s=20.0, retry_at=NOW + 5),)
    assert (waiting.containers_to_start, waiting.kill_pod, waiting.is_empty()) == ((), False, True)
    later = compute_pod_actions(wanted, observed(wanted, crashed), NOW + 5, LIMITS)
    assert later.containers_to_start == (start("a", 3, backoff_s=40.0),)


@pytest.mark.parametrize(
    ("policy", "exit_codes", "kill_pod"),
    [("Never", (0, 1), True), ("OnFailure", (0, 0), True), ("OnFailure", (0, 1), False), ("Always", (0, 0), False)],
)
def test_a_pod_whose_containers_are_all_done_is_stopped(
    policy: str, exit_codes: tuple[int, int], kill_pod: bool
) -> None:
    wanted = pod("a", "b", restart_policy=policy)
    ended = (seen(wanted, name, EXITED, exit_code=code) for name, code in zip("ab", exit_codes, strict=True))
    assert compute(wanted, observed(wanted, *ended)).kill_pod is kill_pod


@pytest.mark.parametrize("exit_code", [0, 137])
def test_of_a_pod_that_restarts_nothing_no_init_container_runs_twice_when_nothing_is_left(exit_code: int) -> None:
    wanted = pod("a", init_containers=(container("init"),), restart_policy="Never")
    gone = seen(wanted, "init", ContainerState.EXITED, is_remembered=True, exit_code=exit_code)
    actions = compute(wanted, observed(wanted, gone, sandboxes=()))
    goes_on = exit_code == 0
    assert (actions.kill_pod, actions.create_sandbox, actions.init_containers_to_start) == (True, goes_on, ())
    assert actions.containers_to_start == ((start("a"),) if goes_on else ())
    assert actions.init_containers_to_prune == (), "what is removed is forgotten"
    edited = msgspec.structs.replace(gone, hash="of another manifest")
    again = compute(wanted, observed(wanted, edited, sandboxes=()))
    assert [each.name for each in again.init_containers_to_start] == ["init"], "another one is wanted now"


@pytest.mark.parametrize("ended", [("a",), ("a", "b")])
def test_of_a_pod_of_which_nothing_is_left_only_what_has_not_ended_starts_again(ended: tuple[str, ...]) -> None:
    wanted = pod("a", "b", restart_policy="Never")
    gone = [seen(wanted, name, ContainerState.EXITED, is_remembered=True) for name in ended]
    actions = compute(wanted, observed(wanted, *gone, sandboxes=()))
    starting = {"a", "b"}.difference(ended)
    assert actions.create_sandbox is bool(starting)
    assert {start.name for start in actions.containers_to_start} == starting


@pytest.mark.parametrize("probe", ["liveness", "startup"])
@pytest.mark.parametrize(("policy", "again"), [("Always", True), ("OnFailure", True), ("Never", False)])
def test_a_failed_probe_kills_and_the_policy_says_whether_it_starts_again(probe: str, policy: str, again: bool) -> None:
    wanted = pod(container("a", **{f"{probe}_probe": Probe(termination_grace_period_seconds=5)}), restart_policy=policy)
    failed = {"a-0": ProbeResults(**{probe: ProbeResult.FAILURE})}
    actions = compute_pod_actions(
        wanted, observed(wanted, seen(wanted, "a", RUNNING)), NOW, LIMITS, probe_results=failed
    )
    assert killed(actions) == {"a-0": f"Container a failed {probe} probe{', will be restarted' if again else ''}"}
    assert actions.containers_to_kill[0].grace_period_s == 5
    assert (actions.containers_to_start, actions.kill_pod) == ((start("a", 1),) if again else (), not again)


def test_the_containers_own_policy_goes_before_the_pods_when_a_probe_fails() -> None:
    wanted = pod(container("a", restart_policy="Never"), "b")
    running = observed(wanted, seen(wanted, "a", RUNNING), seen(wanted, "b", RUNNING))
    failed = {"a-0": ProbeResults(liveness=ProbeResult.FAILURE)}
    actions = compute_pod_actions(wanted, running, NOW, LIMITS, probe_results=failed)
    assert (list(killed(actions)), actions.containers_to_start, actions.kill_pod) == (["a-0"], (), False)


# --- what should not run -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stray", "why"),
    [
        ({"name": "gone", "attempt": 0}, "Container gone is not part of the pod"),
        ({"name": "a", "attempt": 1}, "Container a runs beside its successor"),
        ({"name": "a", "attempt": 1, "state": UNKNOWN}, "Container a runs beside its successor"),
        ({"name": "a", "attempt": 1, "sandbox_id": "old"}, "Container a runs outside of the pod's sandbox"),
    ],
)
def test_strays_are_killed_and_removed_and_the_right_one_stays(stray: dict[str, Any], why: str) -> None:
    wanted = pod("a")
    fields = {"state": RUNNING, **stray}
    other = seen(wanted, **fields)
    actions = compute(wanted, observed(wanted, seen(wanted, "a", RUNNING, 2), other))
    assert killed(actions) == {other.id: why}
    assert actions.containers_to_kill[0].remove
    assert actions.containers_to_start == ()


def test_a_dead_container_that_was_started_by_hand_beside_its_successors_end_goes() -> None:
    wanted = pod("a")
    by_hand = seen(wanted, "a", RUNNING, 1)
    actions = compute(wanted, observed(wanted, by_hand, seen(wanted, "a", EXITED, 2, finished_at=NOW - 99)))
    assert killed(actions) == {"a-1": "Container a runs beside its successor"}
    assert [s.attempt for s in actions.containers_to_start] == [3]


def test_a_container_that_runs_in_a_lost_sandbox_is_replaced() -> None:
    wanted = pod("a")
    outside = seen(wanted, "a", RUNNING, 2, sandbox_id="old")
    actions = compute(wanted, observed(wanted, outside))
    assert killed(actions) == {"a-2": "Container a runs outside of the pod's sandbox"}
    assert actions.containers_to_start == (start("a", 3),)


# --- what nobody needs -------------------------------------------------------------------------------------------


def test_of_the_dead_the_newest_of_each_name_stays() -> None:
    wanted = pod("a", "b")
    dead = [seen(wanted, "a", EXITED, n) for n in range(3)]
    gone = seen(wanted, "c", EXITED, 1)
    actions = compute(wanted, observed(wanted, seen(wanted, "a", RUNNING, 3), *dead, gone, seen(wanted, "b", RUNNING)))
    assert removed(actions) == ["a-1", "a-0", "c-1"]


@pytest.mark.parametrize(("keep", "gone"), [(0, "21"), (1, "21"), (2, "1"), (3, ""), (-1, "")])
def test_so_many_of_the_dead_stay_and_what_is_needed_in_any_case(keep: int, gone: str) -> None:
    wanted = pod("a")
    dead = [seen(wanted, "a", EXITED, n, finished_at=NOW - 999) for n in (1, 2, 3)]
    actions = compute_pod_actions(wanted, observed(wanted, *dead), NOW, LIMITS, gc=GcPolicy(max_per_pod_container=keep))
    assert removed(actions) == [f"a-{n}" for n in gone]
    assert actions.containers_to_start == (start("a", 4, backoff_s=10.0),)


def test_what_the_node_has_too_many_of_goes_unless_it_is_still_needed() -> None:
    wanted = pod("a", "b")
    of_a = [seen(wanted, "a", EXITED, 1), seen(wanted, "a", RUNNING, 2)]
    of_b = [seen(wanted, "b", EXITED, n, finished_at=NOW - 1, created_at=NOW - 2, backoff_s=10.0) for n in (1, 2)]
    ids = ["a-1", "a-2", "b-1", "b-2"]
    status = observed(wanted, *of_a, *of_b)
    actions = compute_pod_actions(
        wanted, status, NOW, LIMITS, gc=GcPolicy(max_per_pod_container=5), dead_containers=ids
    )
    assert removed(actions) == ["a-1", "b-1"], "not what runs, and not the exit that says how long to wait"
    assert [wait.name for wait in actions.waiting] == ["b"]


def test_an_old_sandbox_stays_until_its_containers_have_successors() -> None:
    wanted = pod("a", "b")
    old, new = sandbox(wanted, 0, state=SandboxState.NOT_READY), sandbox(wanted, 1)
    a, b = seen(wanted, "a", EXITED), seen(wanted, "b", EXITED)
    a1, b1 = (seen(wanted, name, RUNNING, 1, sandbox_id="sandbox-1") for name in "ab")
    half = compute(wanted, observed(wanted, a, b, a1, sandboxes=(new, old)))
    assert (removed(half), half.sandboxes_to_remove) == (["a-0"], ())
    full = compute(wanted, observed(wanted, a, b, a1, b1, sandboxes=(new, old)))
    assert (removed(full), full.sandboxes_to_remove) == ([], (old,)), "with everything in it"


# --- everything goes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("override_s", "grace_periods_s"), [(None, {"a": 45, "b": 45}), (5, {"a": 5, "b": 5}), (0, {"a": 0, "b": 0})]
)
def test_a_pod_is_stopped_within_its_grace_period(override_s: int | None, grace_periods_s: dict[str, int]) -> None:
    wanted = pod("a", "b", termination_grace_period_seconds=45)
    status = observed(wanted, seen(wanted, "a", RUNNING), seen(wanted, "b", UNKNOWN), seen(wanted, "a", EXITED, 1))
    assert {kill.name: kill.grace_period_s for kill in kill_all(wanted, status, override_s)} == grace_periods_s


def test_an_orphan_is_stopped_by_its_labels() -> None:
    wanted = pod("a")
    target = seen(wanted, "a", RUNNING, grace_period_s=77, stop_signal="SIGINT")
    (kill,) = kill_all(None, observed(wanted, target))
    assert (kill.grace_period_s, kill.message, kill.stop_signal) == (77, "Stopping container a", "SIGINT")


# --- from anywhere, through any interruption ---------------------------------------------------------------------

NAMES = ("a", "b", "gone")


@st.composite
def statuses(draw: st.DrawFn, of: Pod) -> RuntimePodStatus:
    """Observations that a history of crashes, edits and people could leave behind."""
    attempts = draw(st.lists(st.integers(0, 4), max_size=3, unique=True))
    hashes = st.sampled_from([sandbox_hash(of), "old"])
    sandboxes = [
        sandbox(of, n, state=draw(st.sampled_from(SandboxState)), hash=draw(hashes))
        for n in sorted(attempts, reverse=True)
    ]
    homes = [s.id for s in sandboxes] or ["sandbox-0"]
    containers = [
        seen(
            of,
            name,
            draw(st.sampled_from(ContainerState)),
            attempt,
            sandbox_id=draw(st.sampled_from(homes)),
            backoff_s=draw(st.sampled_from([0.0, 10.0, 300.0])),
            finished_at=NOW - draw(st.integers(0, 1000)),
            exit_code=draw(st.integers(0, 1)),
        )
        for name in NAMES
        for attempt in draw(st.lists(st.integers(0, 5), max_size=3, unique=True))
    ]
    is_edited: bool = draw(st.booleans())
    if containers and is_edited:
        containers[0] = msgspec.structs.replace(containers[0], hash="old")
    return observed(of, *containers, sandboxes=tuple(sandboxes))


def steps(of: Pod, status: RuntimePodStatus, actions: PodActions) -> Iterator[RuntimePodStatus]:
    """The status after each single effect of the actions, in the order of a sync."""

    def changed(**fields: Any) -> RuntimePodStatus:
        nonlocal status
        status = msgspec.structs.replace(status, **fields)
        return status

    def without(ids: set[str]) -> tuple[RuntimeContainerStatus, ...]:
        return tuple(c for c in status.containers if c.id not in ids)

    def ended(id: str) -> tuple[RuntimeContainerStatus, ...]:
        end = {"state": EXITED, "exit_code": 137, "finished_at": NOW}
        return tuple(msgspec.structs.replace(c, **end) if c.id == id else c for c in status.containers)

    for kill in kill_all(of, status) if actions.kill_pod else actions.containers_to_kill:
        yield changed(containers=without({kill.id}) if kill.remove else ended(kill.id))
    if actions.kill_pod:
        for n, box in enumerate(status.sandboxes):
            down = msgspec.structs.replace(box, state=SandboxState.NOT_READY)
            yield changed(sandboxes=(*status.sandboxes[:n], down, *status.sandboxes[n + 1 :]))
    home = actions.sandbox_id
    if actions.create_sandbox:
        made = sandbox(of, actions.attempt)
        home = made.id
        yield changed(sandboxes=(made, *status.sandboxes))
    for begin in actions.containers_to_start:
        new = seen(of, begin.name, CREATED, begin.attempt, sandbox_id=home, backoff_s=begin.backoff_s, created_at=NOW)
        if not begin.created_id:
            yield changed(containers=observed(of, *status.containers, new).containers)
        running = msgspec.structs.replace(new, state=RUNNING)
        yield changed(containers=tuple(running if c.id == new.id else c for c in status.containers))
    for dead in actions.containers_to_remove:
        yield changed(containers=without({dead.id}))
    for box in actions.sandboxes_to_remove:
        inside = {c.id for c in status.containers if c.sandbox_id == box.id}
        yield changed(containers=without(inside), sandboxes=tuple(s for s in status.sandboxes if s.id != box.id))


def check(of: Pod, status: RuntimePodStatus, actions: PodActions) -> None:
    """No decision starts a container beside one of its name, or removes what may run."""
    assert all(c.state not in ALIVE for c in actions.containers_to_remove)
    stopped = {kill.id for kill in (kill_all(of, status) if actions.kill_pod else actions.containers_to_kill)}
    left = {c.name for c in status.containers if c.state in ALIVE and c.id not in stopped}
    starting = [begin.name for begin in actions.containers_to_start]
    assert len(starting) == len(set(starting))
    assert left.isdisjoint(starting)
    removed_boxes = {box.id for box in actions.sandboxes_to_remove}
    assert all(c.id in stopped or c.state not in ALIVE for c in status.containers if c.sandbox_id in removed_boxes)
    names = {(c.name, c.attempt) for c in status.containers}
    assert not {(s.name, s.attempt) for s in actions.containers_to_start if not s.created_id} & names, "name in use"


MAX_ROUNDS = 6


@given(st.data(), st.sampled_from(["Always", "OnFailure", "Never"]))
def test_any_interruption_converges(data: st.DataObject, policy: str) -> None:
    """Syncs that die after any of their effects, then syncs that come through: it ends, and ends right."""
    of = pod("a", "b", restart_policy=policy)
    status = data.draw(statuses(of))
    now = NOW
    for _ in range(data.draw(st.integers(0, 4))):
        actions = compute_pod_actions(of, status, now, LIMITS)
        check(of, status, actions)
        after = list(steps(of, status, actions))
        if after:
            status = after[data.draw(st.integers(0, len(after) - 1))]
    for _ in range(MAX_ROUNDS):
        now += 301  # every back-off is over
        actions = compute_pod_actions(of, status, now, LIMITS)
        check(of, status, actions)
        if actions.is_empty():
            break
        for after_step in steps(of, status, actions):
            status = after_step
    expected_to_rest(of, status, now, policy)


def expected_to_rest(of: Pod, status: RuntimePodStatus, now: float, policy: str) -> None:
    running = sorted(c.name for c in status.containers if c.state in ALIVE)
    assert len(running) == len(set(running)), "twice"
    assert "gone" not in running
    last = compute_pod_actions(of, status, now, LIMITS)
    done = last.kill_pod and not last.create_sandbox
    assert last.is_empty() or (done and not running)
    if policy == "Always":
        assert running == ["a", "b"]
        assert len(status.sandboxes) == 1


# --- what probes say ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never"])
@pytest.mark.parametrize("probe", ["liveness", "startup"])
def test_after_a_failed_probe_the_policy_decides_and_no_rule(policy: RestartPolicy, probe: str) -> None:
    """There is no exit code yet that a rule could match."""
    every_code = ContainerRestartRuleOnExitCodes(operator="NotIn", values=(0,))
    rules = (ContainerRestartRule(action="Restart", exit_codes=every_code),)
    wanted = pod(container("a", restart_policy=policy, restart_policy_rules=rules), "b")
    a = seen(wanted, "a", RUNNING)
    failed = {a.id: ProbeResults(**{probe: ProbeResult.FAILURE})}
    status = observed(wanted, a, seen(wanted, "b", RUNNING))
    actions = compute_pod_actions(wanted, status, NOW, LIMITS, probe_results=failed)
    again = policy != "Never"
    assert killed(actions) == {"a-0": f"Container a failed {probe} probe" + ", will be restarted" * again}
    assert [s.name for s in actions.containers_to_start] == ["a"] * again


# --- restarts that somebody has asked for ------------------------------------------------------------------------


def asked(of: Pod, status: RuntimePodStatus, **restarts: int | None) -> PodActions:
    by_id = {id.replace("_", "-"): grace_s for id, grace_s in restarts.items()}
    return compute_pod_actions(of, status, NOW, LIMITS, restarts=by_id)


@pytest.mark.parametrize(("grace_s", "wanted_s"), [(None, 30), (7, 7)])
def test_one_that_somebody_wants_to_begin_anew_is_replaced_and_no_other(grace_s: int | None, wanted_s: int) -> None:
    of = pod("a", "b", restart_policy="Never")
    status = observed(of, seen(of, "a", RUNNING, 3, backoff_s=160.0, created_at=NOW), seen(of, "b", RUNNING))
    actions = asked(of, status, a_3=grace_s)
    assert killed(actions) == {"a-3": "Container a is restarted, as somebody has asked for"}
    assert [kill.grace_period_s for kill in actions.containers_to_kill] == [wanted_s]
    assert (actions.containers_to_start, actions.waiting) == ((start("a", 4),), ())


@pytest.mark.parametrize("policy", ["Always", "Never"])
def test_one_that_was_stopped_for_it_starts_whatever_its_policy_and_back_off_say(policy: RestartPolicy) -> None:
    """So the death of a worker between the two loses nothing."""
    of = pod("a", restart_policy=policy)
    status = observed(of, seen(of, "a", EXITED, 1, exit_code=143, backoff_s=300.0, created_at=NOW, finished_at=NOW))
    assert asked(of, status, a_1=None).containers_to_start == (start("a", 2),)
    assert asked(of, status, a_0=None).containers_to_start == ()


@pytest.mark.parametrize("policy", ["OnFailure", "Never"])
def test_one_that_was_stopped_for_it_starts_though_its_sandbox_is_gone(policy: RestartPolicy) -> None:
    """With all that was in it. What has ended beside it has not to begin anew."""
    of = pod("a", "b", init_containers=(container("i"),), restart_policy=policy)
    gone = [seen(of, name, EXITED, is_remembered=True) for name in ("i", "a", "b")]
    actions = asked(of, observed(of, *gone, sandboxes=()), a_0=None)
    assert actions.create_sandbox
    assert [each.name for each in actions.init_containers_to_start] == ([] if policy == "Never" else ["i"])
    assert actions.containers_to_start == ((start("a", 1),) if policy == "Never" else ())


@pytest.mark.parametrize("state", [RUNNING, EXITED])
def test_a_sidecar_that_somebody_wants_to_begin_anew_is_replaced_beside_the_others(state: ContainerState) -> None:
    of = pod("a", init_containers=(container("s", restart_policy="Always"),))
    sidecar = seen(of, "s", state, 1, backoff_s=300.0, created_at=NOW, finished_at=NOW)
    actions = asked(of, observed(of, sidecar, seen(of, "a", RUNNING)), s_1=None)
    assert list(killed(actions)) == (["s-1"] if state is RUNNING else [])
    assert (actions.init_containers_to_start, actions.containers_to_start) == ((start("s", 2),), ())
