"""After every prefix of the planned actions, and after each that failed or timed out, deciding again converges.

`Model` watches on the way: never two containers of one name, no regular container before initialization is over, no
init container before those ahead of it, no sidecar for regular containers that are done, no attempt twice, nothing
started before a restart of all containers has removed them all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.k8s.api.pod_containers import every_container
from ipc.k8s.api.v1.container import (
    Container,
    ContainerRestartRule,
    ContainerRestartRuleOnExitCodes,
    EphemeralContainer,
)
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.hashing import sandbox_hash
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimePodStatus, SandboxState
from tests.support.pod_model import Flavour, Model
from tests.support.pods import IMAGE, container, observed, pod, sandbox, seen, sidecar

MAX_ROUNDS = 24
"""Syncs, each with whatever ends after it. Three init containers that fail once, and a restart of all of them."""

Exits = dict[str, tuple[int | None, ...]]


def edited(of: Pod, name: str) -> Pod:
    """With another image for that container."""

    def one(c: Container) -> Container:
        return msgspec.structs.replace(c, image="localhost/other:1") if c.name == name else c

    init = tuple(one(c) for c in of.spec.init_containers)
    regular = tuple(one(c) for c in of.spec.containers)
    return msgspec.structs.replace(of, spec=msgspec.structs.replace(of.spec, init_containers=init, containers=regular))


EXIT_42 = ContainerRestartRule(
    action="RestartAllContainers", exit_codes=ContainerRestartRuleOnExitCodes(operator="In", values=(42,))
)
TRIGGER = container("main", restart_policy="OnFailure", restart_policy_rules=(EXIT_42,))
INIT_TRIGGER = container("i2", restart_policy="OnFailure", restart_policy_rules=(EXIT_42,))
DEBUG = EphemeralContainer(name="debug", image=IMAGE)
ONCE: tuple[int, ...] = (0,)
SECOND_TRY = (1, 0)

INIT_AND_MAIN = pod("main", init_containers=(container("i1"), container("i2"), container("i3")))
ALL_KINDS = pod(
    "a",
    "b",
    init_containers=(container("i1"), sidecar("s1"), container("i2"), sidecar("s2")),
    ephemeral_containers=(DEBUG,),
)

SCENARIOS: dict[str, tuple[Pod, Exits, list[str]]] = {
    "plain": (pod("main"), {}, ["main"]),
    "three containers": (pod("a", "b", "c"), {"b": (1, 1, None)}, ["a", "b", "c"]),
    "init": (INIT_AND_MAIN, {"i1": ONCE, "i2": SECOND_TRY, "i3": ONCE}, ["main"]),
    "sidecars": (pod("main", init_containers=(sidecar("s1"), sidecar("s2"))), {"s1": (3, None)}, ["main", "s1", "s2"]),
    "all kinds": (ALL_KINDS, {"i1": SECOND_TRY, "i2": ONCE}, ["a", "b", "debug", "s1", "s2"]),
    "OnFailure": (
        pod("job", restart_policy="OnFailure", init_containers=(container("i1"), sidecar("s1"))),
        {"i1": SECOND_TRY, "job": SECOND_TRY},
        [],
    ),
    "Never": (
        pod("a", "b", restart_policy="Never", init_containers=(container("i1"), sidecar("s1"))),
        {"i1": ONCE, "a": (0,), "b": (1,)},
        [],
    ),
    "ephemeral": (pod("main", ephemeral_containers=(DEBUG,)), {"debug": (0,)}, ["main"]),
    "restart all": (
        pod(TRIGGER, "other", init_containers=(container("i1"), sidecar("s1"))),
        {"i1": ONCE, "main": (42, None)},
        ["main", "other", "s1"],
    ),
    "restart all by an init container": (
        pod("main", init_containers=(container("i1"), sidecar("s1"), INIT_TRIGGER)),
        {"i1": ONCE, "i2": (42, 0)},
        ["main", "s1"],
    ),
}
STARTED = {
    "init": ["i1", "i2", "i2", "i3", "main"],
    "sidecars": ["s1", "s1", "s2", "main"],
    "all kinds": ["i1", "debug", "i1", "s1", "i2", "s2", "a", "b"],
    "OnFailure": ["i1", "i1", "s1", "job", "job"],
    "Never": ["i1", "s1", "a", "b"],
    "ephemeral": ["main", "debug"],
    "restart all": ["i1", "s1", "main", "other"] * 2,
    "restart all by an init container": [*["i1", "s1", "i2"] * 2, "main"],
}
EDITS = [
    ("init", "i1"),
    ("init", "i2"),
    ("init", "i3"),
    ("init", "main"),
    ("all kinds", "i1"),
    ("all kinds", "s1"),
    ("all kinds", "i2"),
    ("all kinds", "s2"),
    ("all kinds", "b"),
    ("restart all", "i1"),
    ("restart all", "other"),
]


def converge(model: Model) -> int:
    """How many syncs it took until nothing was left to do."""
    for round in range(MAX_ROUNDS):
        actions = model.sync()
        if model.is_over:
            assert model.running() == []
            return round
        ended = model.advance()
        if actions.is_empty() and not ended and not actions.waiting:
            return round
    raise AssertionError(f"not at rest after {MAX_ROUNDS} syncs: {actions}")


def is_as_expected(model: Model, name: str) -> bool:
    """Whether it is as expected: what never starts again may be missing."""
    _, _, expected = SCENARIOS[name]
    once = {"debug"} if model.failed_starts else set[str]()
    return set(expected) - once <= set(model.running()) <= set(expected)


def calls_of(name: str, **fields: Any) -> int:
    of, exits, _ = SCENARIOS[name]
    model = Model(of, exits, **fields)
    converge(model)
    assert is_as_expected(model, name)
    return model.calls


def faults(name: str) -> Iterator[tuple[int, Flavour]]:
    return ((number, flavour) for number in range(1, calls_of(name) + 1) for flavour in Flavour)


@pytest.mark.parametrize("name", STARTED)
def test_everything_starts_in_order(name: str) -> None:
    of, exits, expected = SCENARIOS[name]
    model = Model(of, exits)
    converge(model)
    assert (model.started, model.running()) == (
        STARTED[name],
        [n for n in expected if exits.get(n, (None,))[-1] is None],
    )


@pytest.mark.parametrize("forgets", [False, True], ids=["", "forgetful master"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_every_interruption_converges(name: str, forgets: bool) -> None:
    of, exits, _ = SCENARIOS[name]
    for number, flavour in faults(name):
        model = Model(of, exits, {number: flavour}, forgets=forgets)
        converge(model)
        assert is_as_expected(model, name), f"call {number} {flavour.value}"


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_lost_sandbox_is_replaced_however_far_that_comes(name: str) -> None:
    """A reboot at rest; then every interruption."""
    of, exits, expected = SCENARIOS[name]

    def rebooted() -> Model:
        model = Model(of, exits)
        converge(model)
        model.lose_sandbox()
        return model

    clean = rebooted()
    before = clean.calls
    converge(clean)
    assert clean.running() == ([c for c in expected if c != "debug"])
    for number in range(before + 1, clean.calls + 1):
        for flavour in Flavour:
            model = rebooted()
            model.faults[number] = flavour
            converge(model)
            assert model.running() == clean.running(), f"call {number} {flavour.value}"


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never"])
def test_a_redefined_sandbox_is_replaced_however_often_that_is_interrupted(policy: str) -> None:
    fields: dict[str, Any] = {"restart_policy": policy, "init_containers": (sidecar("s1"),)}

    def renamed() -> Model:
        model = Model(pod("a", "b", **fields), {})
        converge(model)
        model.of = pod("a", "b", hostname="renamed", **fields)
        return model

    clean = renamed()
    before = clean.calls
    converge(clean)
    for number in range(before + 1, clean.calls + 1):
        for flavour in (Flavour.LOST, Flavour.UNHEARD):  # a start that failed is an end, which Never leaves as it is
            model = renamed()
            model.faults[number] = flavour
            converge(model)
            assert model.running() == ["a", "b", "s1"], f"call {number} {flavour.value}"
            assert model.status.sandboxes[0].hash == sandbox_hash(model.of)


@pytest.mark.parametrize(("name", "changed"), EDITS)
def test_an_edit_at_any_moment_is_carried_out(name: str, changed: str) -> None:
    of, exits, _ = SCENARIOS[name]
    after = edited(of, changed)
    total = calls_of(name)
    for number in range(1, total + 1):
        for fault in (None, *Flavour):
            faults = {} if fault is None else {number + 1: fault}
            model = Model(of, exits, faults, edits={number: after})
            converge(model)
            assert is_as_expected(model, name), f"edited at call {number}, then {fault}"
            assert model.outdated() == [], f"edited at call {number}, then {fault}"


@pytest.mark.parametrize("ends_first", [True, False])
def test_a_pod_that_restarts_nothing_and_loses_everything_runs_nothing_twice(ends_first: bool) -> None:
    """Whatever call was the last one before. Nothing is missing of it, if nothing was under way."""
    init = (container("i1"), sidecar("s1"), container("i2"), sidecar("s2"))
    of = pod("a", "b", restart_policy="Never", init_containers=init)
    exits: Exits = {"i1": ONCE, "i2": ONCE, "a": (0,), "b": (1,)}
    whole = Model(of, exits)
    converge(whole)
    for number in range(1, whole.calls + 1):
        model = Model(of, exits, {number: Flavour.UNHEARD})
        while model.calls < number:
            model.sync()
            if model.calls < number or ends_first:
                model.advance()
        model.lose_everything()
        converge(model)
        assert model.is_over, number
        runs = {name: model.started.count(name) for name in exits}
        assert max(runs.values()) == 1, (number, model.started)
        assert not ends_first or min(runs.values()) == 1, (number, model.started)


@pytest.mark.parametrize("changed", ["i1", "i2", "i3"])
def test_an_edited_init_container_of_an_initialized_pod_does_not_run_again(changed: str) -> None:
    of, exits, _ = SCENARIOS["init"]
    model = Model(of, exits)
    converge(model)
    before = list(model.started)
    model.of = edited(of, changed)
    assert model.sync().is_empty()
    model.end("main", 1)
    converge(model)
    assert model.started == [*before, "main"]


@given(st.data())
def test_many_interruptions_converge(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(SCENARIOS)))
    of, exits, _ = SCENARIOS[name]
    calls = st.integers(1, 60)
    planned = data.draw(st.dictionaries(calls, st.sampled_from(Flavour), max_size=6))
    model = Model(of, exits, planned)
    for _ in range(data.draw(st.integers(0, 12))):
        model.sync()
        if model.is_over:
            break
        if data.draw(st.booleans()):
            model.advance()
    model.faults.clear()
    if not model.is_over:
        converge(model)
    assert is_as_expected(model, name)


@st.composite
def statuses(draw: st.DrawFn, of: Pod) -> RuntimePodStatus:
    """Observations that a history of crashes, edits and people could leave behind."""
    attempts = draw(st.lists(st.integers(0, 2), max_size=2, unique=True))
    boxes = [
        sandbox(of, n, state=draw(st.sampled_from(SandboxState)), hash=draw(st.sampled_from([sandbox_hash(of), "old"])))
        for n in sorted(attempts, reverse=True)
    ]
    homes = [box.id for box in boxes] or ["sandbox-0"]
    names = ["gone", *(found.container.name for found in every_container(of.spec))]
    containers = [
        seen(
            of,
            name,
            draw(st.sampled_from(ContainerState)),
            attempt,
            sandbox_id=draw(st.sampled_from(homes)),
            exit_code=draw(st.sampled_from([0, 1, 42])),
            **draw(st.sampled_from([{}, {"hash": "old"}])),
        )
        for name in names
        for attempt in draw(st.lists(st.integers(0, 3), max_size=2, unique=True))
    ]
    return observed(of, *containers, sandboxes=tuple(boxes))


@given(st.data(), st.sampled_from(["all kinds", "restart all", "init"]))
def test_any_state_converges(data: st.DataObject, name: str) -> None:
    of, _, expected = SCENARIOS[name]
    exits: Exits = {"i1": ONCE, "i2": ONCE, "i3": ONCE}
    model = Model.in_the_middle(of, exits, data.draw(statuses(of)))
    converge(model)
    has_run = {"debug"} if name == "all kinds" else {"main"} if name == "restart all" else set()
    assert set(expected) - has_run <= set(model.running()) <= set(expected)
    regular = {container.name for container in of.spec.containers}
    assert [n for n in model.outdated() if n in regular] == []
