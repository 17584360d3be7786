"""Init containers and sidecars: our own situations beside upstream's tables."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ipc.k8s.api.v1.container import (
    Container,
    ContainerRestartRule,
    ContainerRestartRuleOnExitCodes,
    EphemeralContainer,
)
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.probe import Probe
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, SandboxState
from ipc.k8s.kubecontainer.probe_results import ProbeResult, ProbeResults
from tests.support.pods import IMAGE, container, observed, pod, sandbox, seen, sidecar
from workers.compute.crash_loop_backoff import crash_loop_limits
from workers.compute.pod_actions import compute_pod_actions
from workers.compute.types import ContainerWait, PodActions

NOW = 1_800_000_000.0
LIMITS = crash_loop_limits(300.0)
CREATED, RUNNING, EXITED, UNKNOWN = ContainerState
PROBE = Probe(termination_grace_period_seconds=7)


def initialized_by(*init: Container, **spec: Any) -> Pod:
    return pod("main", init_containers=init, **spec)


THREE = initialized_by(container("i1"), container("i2"), container("i3"))
MIXED = initialized_by(container("i1"), sidecar("s1"), container("i2"), sidecar("s2"))


def compute(of: Pod, *containers: RuntimeContainerStatus, **more: Any) -> PodActions:
    sandboxes = more.pop("sandboxes", None)
    return compute_pod_actions(of, observed(of, *containers, sandboxes=sandboxes), NOW, LIMITS, **more)


def outcome(actions: PodActions) -> tuple[list[str], list[str], list[str]]:
    """Names of init containers to start, of regular ones, and ids to kill."""
    return (
        [start.name for start in actions.init_containers_to_start],
        [start.name for start in actions.containers_to_start],
        [kill.id for kill in actions.containers_to_kill],
    )


def edited(of: Pod, name: str) -> Pod:
    init = tuple(
        msgspec.structs.replace(c, image="localhost/other:1") if c.name == name else c for c in of.spec.init_containers
    )
    return msgspec.structs.replace(of, spec=msgspec.structs.replace(of.spec, init_containers=init))


# --- in order ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("done", "expected", "reason"),
    [
        ((), (["i1"], []), "nothing initialized yet"),
        (("i1",), (["i2"], []), "1 of 3 init containers done"),
        (("i1", "i2"), (["i3"], []), "2 of 3 init containers done"),
        (("i1", "i2", "i3"), ([], ["main"]), "0 of 1 containers as they should be"),
        (("i3",), ([], ["main"]), "0 of 1 containers as they should be"),
    ],
)
def test_one_after_the_other(done: tuple[str, ...], expected: tuple[list[str], list[str]], reason: str) -> None:
    actions = compute(THREE, *(seen(THREE, name, EXITED) for name in done))
    assert outcome(actions) == (*expected, [])
    assert actions.reason == reason


def test_nothing_is_done_while_one_runs() -> None:
    actions = compute(THREE, seen(THREE, "i1", EXITED), seen(THREE, "i2", RUNNING))
    assert actions.is_empty()


def test_what_ended_in_an_earlier_sandbox_says_nothing_of_this_one() -> None:
    of = THREE
    before = [seen(of, name, EXITED) for name in ("i1", "i2", "i3", "main")]
    boxes = (sandbox(of, 1), sandbox(of, 0, state=SandboxState.NOT_READY))
    actions = compute(of, *before, sandboxes=boxes)
    assert [(s.name, s.attempt) for s in actions.init_containers_to_start] == [("i1", 1)]


def test_an_interrupted_start_goes_on_with_the_same_container() -> None:
    (start,) = compute(THREE, seen(THREE, "i1", CREATED, 2, backoff_s=20.0)).init_containers_to_start
    assert (start.created_id, start.attempt, start.backoff_s) == ("i1-2", 2, 20.0)


@pytest.mark.parametrize("state", [CREATED, RUNNING, EXITED, UNKNOWN])
def test_any_regular_container_of_this_sandbox_says_that_initialization_is_over(state: ContainerState) -> None:
    """Also one that has exited: it lies in this sandbox."""
    actions = compute(THREE, seen(THREE, "main", state))
    assert actions.init_containers_to_start == ()


# --- failures ----------------------------------------------------------------------------------------------------


def test_a_failed_one_waits_for_its_back_off() -> None:
    failed = seen(THREE, "i2", EXITED, 1, exit_code=1, backoff_s=10.0, created_at=NOW - 5, finished_at=NOW - 4)
    actions = compute(THREE, seen(THREE, "i1", EXITED), failed)
    assert actions.waiting == (ContainerWait(name="i2", backoff_s=10.0, retry_at=NOW + 6),)
    assert (outcome(actions), actions.kill_pod, actions.is_empty()) == (([], [], []), False, True)


RULE = ContainerRestartRule(action="Restart", exit_codes=ContainerRestartRuleOnExitCodes(operator="In", values=(3,)))


@pytest.mark.parametrize(
    ("pod_policy", "fields", "failure", "kill_pod"),
    [
        ("Never", {}, {"exit_code": 3}, True),
        ("Always", {"restart_policy": "Never"}, {"exit_code": 3}, True),
        ("Never", {"restart_policy": "OnFailure"}, {"exit_code": 3}, False),
        ("Never", {"restart_policy": "Never", "restart_policy_rules": (RULE,)}, {"exit_code": 3}, False),
        ("Never", {"restart_policy": "Never", "restart_policy_rules": (RULE,)}, {"exit_code": 4}, True),
        ("OnFailure", {}, {"oom_killed": True}, False),
        ("Never", {}, {"oom_killed": True}, True),
        ("Never", {}, {"state": UNKNOWN}, True),
        ("OnFailure", {}, {"state": UNKNOWN}, False),
    ],
)
def test_its_policy_says_whether_a_failure_is_for_good(
    pod_policy: str, fields: dict[str, Any], failure: dict[str, Any], kill_pod: bool
) -> None:
    of = initialized_by(container("i1", **fields), sidecar("s1"), restart_policy=pod_policy)
    actions = compute(of, seen(of, **{"name": "i1", "state": EXITED, **failure}))
    assert actions.kill_pod is kill_pod
    assert outcome(actions)[:2] == ([] if kill_pod else ["i1"], [])


def test_dead_ones_are_pruned_before_the_next_try() -> None:
    failed = [seen(THREE, "i1", EXITED, n, exit_code=1, finished_at=NOW - 999) for n in range(3)]
    actions = compute(THREE, *failed)
    assert [c.id for c in actions.init_containers_to_prune] == ["i1-1", "i1-0"]
    assert actions.containers_to_remove == ()


def test_all_of_them_go_with_the_sandbox_but_one_that_says_how_long_to_wait() -> None:
    crashed = seen(THREE, "i1", EXITED, 1, exit_code=1, backoff_s=300.0, created_at=NOW - 2, finished_at=NOW - 1)
    others = [seen(THREE, "i1", EXITED), seen(THREE, "i2", RUNNING)]
    gone = (sandbox(THREE, state=SandboxState.NOT_READY),)
    waiting = compute(THREE, crashed, *others, sandboxes=gone)
    assert ([c.id for c in waiting.init_containers_to_prune], outcome(waiting)) == (["i2-0", "i1-0"], ([], [], []))
    calm = compute_pod_actions(THREE, observed(THREE, crashed, *others, sandboxes=gone), NOW + 301, LIMITS)
    assert [c.id for c in calm.init_containers_to_prune] == ["i2-0", "i1-0", "i1-1"]
    assert [(s.name, s.attempt) for s in calm.init_containers_to_start] == [("i1", 2)]


# --- sidecars ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("startup", list(ProbeResult))
def test_the_next_one_waits_for_a_startup_probe(startup: ProbeResult) -> None:
    of = initialized_by(sidecar("s1", startup_probe=PROBE), container("i1"))
    actions = compute(of, seen(of, "s1", RUNNING), probe_results={"s1-0": ProbeResults(startup=startup)})
    started = {ProbeResult.SUCCESS: ["i1"], ProbeResult.FAILURE: ["s1"], ProbeResult.UNKNOWN: []}
    assert outcome(actions)[0] == started[startup]
    killed = [(kill.reason, kill.message, kill.grace_period_s) for kill in actions.containers_to_kill]
    failed = [("StartupProbe", "Init container s1 failed startup probe", 7)]
    assert killed == (failed if startup is ProbeResult.FAILURE else [])


def test_a_sidecar_that_is_not_alive_is_replaced_and_the_next_one_starts_all_the_same() -> None:
    of = initialized_by(sidecar("s1", liveness_probe=PROBE), container("i1"))
    actions = compute(of, seen(of, "s1", RUNNING), probe_results={"s1-0": ProbeResults(liveness=ProbeResult.FAILURE)})
    assert outcome(actions) == (["s1", "i1"], [], ["s1-0"])
    assert actions.containers_to_kill[0].message == "Init container s1 failed liveness probe"


@pytest.mark.parametrize("state", [None, EXITED, UNKNOWN])
def test_a_sidecar_starts_again_whenever_it_is_not_there(state: ContainerState | None) -> None:
    left = [seen(MIXED, "s1", state)] if state else []
    actions = compute(MIXED, *left, seen(MIXED, "s2", RUNNING), seen(MIXED, "main", RUNNING))
    assert outcome(actions) == (["s1"], [], ["s1-0"] if state is UNKNOWN else [])


@pytest.mark.parametrize("exit_code", [0, 1])
def test_sidecars_do_not_run_for_regular_containers_that_are_done(exit_code: int) -> None:
    of = initialized_by(sidecar("s1"), restart_policy="Never")
    actions = compute(of, seen(of, "s1", EXITED, exit_code=1), seen(of, "main", EXITED, exit_code=exit_code))
    assert (actions.kill_pod, outcome(actions), actions.waiting) == (True, ([], [], []), ())


def test_sidecars_run_beside_regular_containers_that_back_off() -> None:
    of = initialized_by(sidecar("s1"))
    waits = seen(of, "main", EXITED, exit_code=1, backoff_s=10.0, created_at=NOW - 2, finished_at=NOW - 1)
    actions = compute(of, seen(of, "s1", EXITED), waits)
    assert (outcome(actions)[0], actions.kill_pod) == (["s1"], False)


# --- a pod that restarts nothing, of whose sandbox nothing is left -------------------------------------------------

ONE_RUN = initialized_by(container("i1"), sidecar("s1"), container("i2"), sidecar("s2"), restart_policy="Never")
DONE: dict[str, Any] = {}
FAILED = {"exit_code": 1}
EDITED = {"hash": "of another manifest"}


def lost(of: Pod, **ends: dict[str, Any]) -> list[RuntimeContainerStatus]:
    """Ends in a sandbox of which nothing is left, as the record tells them."""
    return [seen(of, name, EXITED, is_remembered=True, sandbox_id="gone", **end) for name, end in ends.items()]


@pytest.mark.parametrize(
    ("ends", "inits", "forgotten"),
    [
        ({"i1": DONE}, ["s1"], []),
        ({"i1": DONE, "s1": FAILED}, ["s1"], ["s1"]),
        ({"s1": DONE}, ["i1"], ["s1"]),
        ({"i2": DONE}, ["s1"], []),
        ({"i1": DONE, "i2": DONE}, ["s1"], []),
        ({"i1": DONE | EDITED, "i2": DONE}, ["i1"], ["i2", "i1"]),
        ({"i1": FAILED | EDITED}, ["i1"], ["i1"]),
        ({"i1": DONE, "i2": FAILED}, [], []),
        ({"i1": DONE, "i2": DONE, "main": DONE}, [], []),
        ({"main": FAILED}, [], []),
        ({"main": FAILED | EDITED}, ["i1"], []),
    ],
)
def test_in_the_next_sandbox_it_goes_on_where_it_was(
    ends: dict[str, dict[str, Any]], inits: list[str], forgotten: list[str]
) -> None:
    actions = compute(ONE_RUN, *lost(ONE_RUN, **ends), sandboxes=())
    assert outcome(actions) == (inits, [], [])
    assert actions.create_sandbox is bool(inits)
    assert [run.name for run in actions.init_containers_to_prune] == forgotten


@pytest.mark.parametrize(("ended", "mains"), [("a", ["b"]), ("b", ["a"]), ("i1", ["a", "b"])])
def test_without_sidecars_regular_containers_start_with_it(ended: str, mains: list[str]) -> None:
    of = pod("a", "b", init_containers=(container("i1"),), restart_policy="Never")
    assert outcome(compute(of, *lost(of, **{ended: DONE}), sandboxes=())) == ([], mains, [])


@pytest.mark.parametrize(
    ("ends", "inside", "expected"),
    [
        ({"i1": DONE}, {}, (["s1"], [])),
        ({"i1": DONE}, {"s1": RUNNING}, (["i2"], [])),
        ({"i1": DONE, "i2": DONE}, {"s1": RUNNING}, (["s2"], [])),
        ({"i1": DONE, "i2": DONE}, {"s1": RUNNING, "s2": RUNNING}, ([], ["main"])),
        ({"i1": DONE}, {"s1": RUNNING, "i2": RUNNING}, ([], [])),
        ({"i1": DONE}, {"s1": RUNNING, "i2": EXITED}, (["s2"], [])),
        ({"i1": DONE | EDITED, "i2": DONE}, {"i1": RUNNING}, ([], [])),
        ({"i1": DONE | EDITED, "i2": DONE}, {"i1": EXITED, "s1": RUNNING}, (["i2"], [])),
    ],
)
def test_in_the_sandbox_that_was_made_then_what_was_done_before_counts(
    ends: dict[str, dict[str, Any]], inside: dict[str, ContainerState], expected: tuple[list[str], list[str]]
) -> None:
    here = [seen(ONE_RUN, name, state, 1) for name, state in inside.items()]
    actions = compute(ONE_RUN, *lost(ONE_RUN, **ends), *here)
    assert outcome(actions) == (*expected, [])
    going = {run.name for run in (*actions.init_containers_to_prune, *actions.containers_to_remove)}
    assert (going <= inside.keys(), actions.kill_pod) == (True, False), "what is removed is forgotten"


@pytest.mark.parametrize("policy", ["Always", "OnFailure"])
def test_where_everything_starts_again_nothing_of_before_counts(policy: str) -> None:
    of = initialized_by(container("i1"), container("i2"), restart_policy=policy)
    assert outcome(compute(of, *lost(of, i1=DONE))) == (["i1"], [], [])


def test_in_a_redefined_sandbox_it_begins_anew_and_what_was_done_is_forgotten() -> None:
    old = sandbox(ONE_RUN, hash="of another manifest", state=SandboxState.NOT_READY)
    actions = compute(ONE_RUN, *lost(ONE_RUN, i1=DONE), sandboxes=(old,))
    assert (outcome(actions)[0], [run.name for run in actions.init_containers_to_prune]) == (["i1"], ["i1"])


@pytest.mark.parametrize(
    ("ends", "inside", "goes_on"),
    [
        ({"i1": DONE}, {}, ["s1"]),
        ({"i1": DONE}, {"s1": EXITED}, []),
        ({"i1": DONE, "i2": FAILED}, {}, []),
        ({"i1": DONE, "i2": DONE, "main": DONE}, {}, []),
        ({"i1": DONE, "i2": DONE, "main": DONE | EDITED}, {}, ["s1"]),
    ],
)
def test_a_sandbox_in_which_nothing_has_begun_is_replaced_too(
    ends: dict[str, dict[str, Any]], inside: dict[str, ContainerState], goes_on: list[str]
) -> None:
    """After one of which nothing is left. Where something has begun, the pod is done (computePodActions)."""
    here = [seen(ONE_RUN, name, state, 1) for name, state in inside.items()]
    actions = compute(
        ONE_RUN, *lost(ONE_RUN, **ends), *here, sandboxes=(sandbox(ONE_RUN, state=SandboxState.NOT_READY),)
    )
    assert (actions.create_sandbox, outcome(actions)[0]) == (bool(goes_on), goes_on)
    if goes_on:
        after = compute(ONE_RUN, *lost(ONE_RUN, **ends), sandboxes=(sandbox(ONE_RUN, 1),))
        assert outcome(after)[0] == goes_on


def test_what_its_own_policy_tries_again_is_tried_again() -> None:
    of = initialized_by(container("i1"), container("i2", restart_policy="OnFailure"), restart_policy="Never")
    actions = compute(of, *lost(of, i1=DONE, i2=FAILED), sandboxes=())
    assert (outcome(actions), actions.create_sandbox) == ((["i2"], [], []), True)


# --- an edited manifest ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["i1", "i2"])
def test_an_initialized_pod_does_not_run_a_changed_one_again(name: str) -> None:
    running = [seen(MIXED, n, RUNNING) for n in ("s1", "s2", "main")]
    done = [seen(MIXED, n, EXITED) for n in ("i1", "i2")]
    assert compute(edited(MIXED, name), *running, *done).is_empty()


def test_a_changed_sidecar_is_replaced_in_place() -> None:
    of = edited(MIXED, "s1")
    actions = compute(of, *(seen(MIXED, n, RUNNING) for n in ("s1", "s2", "main")))
    assert outcome(actions) == (["s1"], [], ["s1-0"])
    assert actions.containers_to_kill[0].message == "Init container s1 definition changed"
    assert actions.containers_to_reset == ()
    assert not actions.create_sandbox


def test_a_changed_sidecar_is_replaced_before_it_has_started_too() -> None:
    before = initialized_by(sidecar("s1", startup_probe=PROBE), container("i1"))
    assert outcome(compute(edited(before, "s1"), seen(before, "s1", RUNNING))) == (["s1"], [], ["s1-0"])


@pytest.mark.parametrize("policy", ["Always", "Never"])
@pytest.mark.parametrize("end", [{"state": RUNNING}, {"state": EXITED}, {"state": EXITED, "exit_code": 1}])
def test_one_that_changes_before_initialization_is_over_runs_anew(policy: str, end: dict[str, Any]) -> None:
    before = msgspec.structs.replace(THREE, spec=msgspec.structs.replace(THREE.spec, restart_policy=policy))
    after = edited(before, "i2")
    actions = compute(after, seen(before, "i1", EXITED), seen(before, **{"name": "i2", **end}))
    assert outcome(actions) == (["i2"], [], ["i2-0"] if end["state"] is RUNNING else [])
    assert not actions.kill_pod


def test_what_ran_after_a_changed_one_begins_again_too() -> None:
    done, running = seen(MIXED, "i1", EXITED), [seen(MIXED, "s1", RUNNING), seen(MIXED, "i2", RUNNING, 1)]
    actions = compute(edited(MIXED, "i1"), done, *running, seen(MIXED, "i2", EXITED, 0, exit_code=1))
    assert outcome(actions) == (["i1"], [], [])
    resets = [
        (reset.container.id, reset.kill.grace_period_s if reset.kill else None) for reset in actions.containers_to_reset
    ]
    assert resets == [("s1-0", 30), ("i2-0", None), ("i2-1", 30)]
    assert actions.init_containers_to_prune == actions.containers_to_remove == ()


def test_one_that_is_no_longer_wanted_is_stopped() -> None:
    of = initialized_by(container("i1"), container("i3"))
    actions = compute(of, seen(THREE, "i1", EXITED), seen(THREE, "i2", RUNNING))
    assert outcome(actions) == (["i3"], [], ["i2-0"])
    assert actions.containers_to_kill[0].remove


def test_one_that_is_added_ahead_of_those_that_ran_does_not_run() -> None:
    of = initialized_by(container("new"), container("i1"), container("i2"))
    assert outcome(compute(of, seen(of, "i1", EXITED))) == (["i2"], [], [])


# --- ephemeral containers ----------------------------------------------------------------------------------------

DEBUG = EphemeralContainer(name="debug", image=IMAGE)
DEBUGGED = pod("main", init_containers=(container("i1"),), ephemeral_containers=(DEBUG,))


@pytest.mark.parametrize(("state", "starts"), [(None, True), (CREATED, True), (RUNNING, False), (EXITED, False)])
def test_an_ephemeral_container_starts_once_and_while_initialization_goes_on(
    state: ContainerState | None, starts: bool
) -> None:
    left = [seen(DEBUGGED, "debug", state)] if state else []
    actions = compute(DEBUGGED, seen(DEBUGGED, "i1", RUNNING), *left)
    assert [start.name for start in actions.ephemeral_containers_to_start] == (["debug"] if starts else [])
    assert (actions.containers_to_kill, actions.containers_to_remove) == ((), ())


def test_an_ephemeral_container_is_not_started_in_a_sandbox_that_is_just_made() -> None:
    actions = compute(DEBUGGED, sandboxes=())
    assert (outcome(actions)[0], actions.ephemeral_containers_to_start) == (["i1"], ())


def test_an_ephemeral_container_outside_of_the_sandbox_is_stopped_and_kept_lest_it_start_again() -> None:
    boxes = (sandbox(DEBUGGED, 1), sandbox(DEBUGGED, 0, state=SandboxState.NOT_READY))
    main = seen(DEBUGGED, "main", RUNNING, 1, sandbox_id="sandbox-1")
    for state in (RUNNING, EXITED):
        actions = compute(DEBUGGED, main, seen(DEBUGGED, "debug", state), sandboxes=boxes)
        assert [(kill.id, kill.remove) for kill in actions.containers_to_kill] == (
            [("debug-0", False)] if state is RUNNING else []
        )
        assert (actions.containers_to_remove, actions.sandboxes_to_remove) == ((), ())
        assert actions.ephemeral_containers_to_start == ()


def test_an_edited_ephemeral_container_stays_and_one_that_is_gone_from_the_manifest_goes() -> None:
    other = msgspec.structs.replace(DEBUG, image="localhost/other:1")
    running = [seen(DEBUGGED, "debug", RUNNING), seen(DEBUGGED, "main", RUNNING)]
    assert compute(pod("main", ephemeral_containers=(other,)), *running).is_empty()
    assert outcome(compute(pod("main"), *running))[2] == ["debug-0"]


# --- containers that move between the lists of the spec ------------------------------------------------------------


def test_a_regular_container_that_becomes_an_init_container_begins_anew() -> None:
    before, after = pod("a"), pod("b", init_containers=(container("a"),))
    actions = compute(after, seen(before, "a", RUNNING))
    assert [(kill.name, kill.message) for kill in actions.containers_to_kill] == [
        ("a", "Init container a definition changed")
    ]
    assert [start.name for start in actions.init_containers_to_start] == ["a"]
    assert actions.containers_to_start == ()


@pytest.mark.parametrize("was", ["regular", "sidecar"])
def test_what_becomes_an_init_container_of_an_initialized_pod_is_stopped(was: str) -> None:
    sidecar = container("a", restart_policy="Always")
    before = pod("a", "b") if was == "regular" else pod("b", init_containers=(sidecar,))
    after = pod("b", init_containers=(container("a"),))
    actions = compute(after, seen(before, "a", RUNNING), seen(before, "b", RUNNING))
    assert [kill.name for kill in actions.containers_to_kill] == ["a"]
    assert (actions.init_containers_to_start, actions.containers_to_start) == ((), ())


@pytest.mark.parametrize("policy", ["Always", "Never"])
def test_an_init_container_that_becomes_a_regular_one_runs_as_that(policy: str) -> None:
    before = pod("b", init_containers=(container("a"),), restart_policy=policy)
    after = pod("a", "b", restart_policy=policy)
    actions = compute(after, seen(before, "a", EXITED), seen(before, "b", RUNNING))
    assert [start.name for start in actions.containers_to_start] == ["a"]
    assert actions.containers_to_kill == ()
