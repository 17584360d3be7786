"""Faults and when they happen, made from a seed before the run. Pure: the same seed gives the same plan."""

from __future__ import annotations

import enum
import random
from collections.abc import Callable
from typing import Final, NamedTuple

from tests.e2e.status_observer import INFRA

PODMAN: Final = "podman"
ROLES: Final = {"master": 1, "zygote": 1, "pods-0": 3, "pods-1": 3, "node": 3, "api": 2, "dialer": 2, PODMAN: 3}
"""Processes of the agent, and how often each is hit in proportion."""
STARVED: Final = {**ROLES, "zygote": 1}

FAULTS_PER_S: Final = 0.5
FAULTS_PER_POD_S: Final = 1 / 120
"""More pods, more faults: one in a second with sixty of them."""
SIDECAR_EVERY: Final = 6
SECOND_EVERY: Final = 4


class Kind(enum.StrEnum):
    """A fault, named by what somebody does."""

    KILL_PROCESS = "kill-process"
    STOP_PROCESS = "stop-process"
    KILL_MONITOR = "kill-monitor"
    STOP_MONITOR = "stop-monitor"
    KILL_CONTAINER = "kill-container"
    PODMAN_KILL = "podman-kill"
    PODMAN_RM = "podman-rm"
    PODMAN_POD_RM = "podman-pod-rm"
    EDIT = "edit"
    RELABEL = "relabel"
    DELETE = "delete"
    ADD = "add"
    BREAK = "break"
    FILL_DISK = "fill-disk"
    STARVE = "starve"


class Fault(NamedTuple):
    """One act of the storm."""

    at_s: float
    """Since the storm began."""
    kind: Kind
    target: str = ""
    """A role or a pod; empty when the fault needs none."""
    part: str = ""
    """The container of the pod."""
    lasts_s: float = 0.0
    """Until it is undone; 0.0 for what cannot be."""

    def __str__(self) -> str:
        lasts = f"for {self.lasts_s:.1f} s" if self.lasts_s else ""
        return " ".join(word for word in (self.kind, self.target, self.part, lasts) if word)


class Plan(NamedTuple):
    """Everything that is decided before the run."""

    seed: int
    duration_s: float
    calm: tuple[str, ...]
    """Pods whose containers, monitors and manifests nobody touches."""
    stormy: tuple[str, ...]
    faults: tuple[Fault, ...]
    """By time."""


class _Frequency(NamedTuple):
    weight: int
    draw: Callable[[_Draw], Fault]


def parts_of(pod: str) -> tuple[str, ...]:
    """The names of a pod's lasting containers; a function of its number, so that a plan needs no manifests."""
    number = int(pod.rpartition("-")[2])
    second = ("second",) if number % SECOND_EVERY == 1 else ()
    sidecar = ("sidecar",) if number % SIDECAR_EVERY == 2 else ()
    return ("main", *second, *sidecar)


def make_plan(seed: int, duration_s: float, pods: int) -> Plan:
    """Half of the pods are calm."""
    calm = tuple(f"calm-{number:03}" for number in range(pods // 2))
    stormy = tuple(f"storm-{number:03}" for number in range(pods - len(calm)))
    draw = _Draw(seed, stormy)
    faults = []
    rate = FAULTS_PER_S + pods * FAULTS_PER_POD_S
    at_s = draw.random.expovariate(rate)
    while at_s < duration_s:
        faults.append(draw.fault(at_s))
        at_s += draw.random.expovariate(rate)
    return Plan(seed, duration_s, calm, stormy, tuple(faults))


class _Draw:
    """The random choices, and which pods there are at that point of the plan."""

    def __init__(self, seed: int, stormy: tuple[str, ...]) -> None:
        self.random = random.Random(seed)
        self.pods = list(stormy)
        self.least_pods = len(stormy) // 2
        self.added = 0
        self.at_s = 0.0

    def fault(self, at_s: float) -> Fault:
        self.at_s = at_s
        (chosen,) = self.random.choices(list(_FREQUENCIES.values()), [f.weight for f in _FREQUENCIES.values()])
        return chosen.draw(self)

    def role(self, roles: dict[str, int]) -> str:
        return self.random.choices(list(roles), list(roles.values()))[0]

    def pod(self) -> str:
        return self.random.choice(self.pods)

    def part(self, pod: str) -> str:
        return self.random.choice((*parts_of(pod), INFRA))

    def lasts_s(self, shortest_s: float, longest_s: float) -> float:
        return self.random.uniform(shortest_s, longest_s)


def _process(kind: Kind, longest_s: float = 0.0) -> Callable[[_Draw], Fault]:
    def draw(by: _Draw) -> Fault:
        role = by.role(ROLES)
        return Fault(by.at_s, kind, role, lasts_s=by.lasts_s(1, longest_s) if longest_s else 0.0)

    return draw


def _container(kind: Kind, longest_s: float = 0.0) -> Callable[[_Draw], Fault]:
    def draw(by: _Draw) -> Fault:
        pod = by.pod()
        return Fault(by.at_s, kind, pod, by.part(pod), by.lasts_s(1, longest_s) if longest_s else 0.0)

    return draw


def _own_container(by: _Draw) -> Fault:
    """A fault for a process that is found by its environment, which an infra container does not have."""
    pod = by.pod()
    return Fault(by.at_s, Kind.KILL_CONTAINER, pod, by.random.choice(parts_of(pod)))


def _pod(kind: Kind) -> Callable[[_Draw], Fault]:
    return lambda by: Fault(by.at_s, kind, by.pod())


def _break(by: _Draw) -> Fault:
    return Fault(by.at_s, Kind.BREAK, by.pod(), lasts_s=by.lasts_s(2, 20))


def _delete(by: _Draw) -> Fault:
    """Not too many of them: then one is added."""
    if len(by.pods) <= by.least_pods:
        return _add(by)
    pod = by.pod()
    by.pods.remove(pod)
    return Fault(by.at_s, Kind.DELETE, pod)


def _add(by: _Draw) -> Fault:
    """A name comes only once, so that counts of restarts can be compared."""
    pod = f"late-{by.added:03}"
    by.added += 1
    by.pods.append(pod)
    return Fault(by.at_s, Kind.ADD, pod)


_FREQUENCIES: Final = {
    Kind.KILL_PROCESS: _Frequency(10, _process(Kind.KILL_PROCESS)),
    Kind.STOP_PROCESS: _Frequency(8, _process(Kind.STOP_PROCESS, 12)),
    Kind.KILL_MONITOR: _Frequency(6, _container(Kind.KILL_MONITOR)),
    Kind.STOP_MONITOR: _Frequency(6, _container(Kind.STOP_MONITOR, 15)),
    Kind.KILL_CONTAINER: _Frequency(12, _own_container),
    Kind.PODMAN_KILL: _Frequency(6, _container(Kind.PODMAN_KILL)),
    Kind.PODMAN_RM: _Frequency(6, _container(Kind.PODMAN_RM)),
    Kind.PODMAN_POD_RM: _Frequency(3, _pod(Kind.PODMAN_POD_RM)),
    Kind.EDIT: _Frequency(8, _pod(Kind.EDIT)),
    Kind.RELABEL: _Frequency(3, _pod(Kind.RELABEL)),
    Kind.DELETE: _Frequency(4, _delete),
    Kind.ADD: _Frequency(4, _add),
    Kind.BREAK: _Frequency(4, _break),
    Kind.FILL_DISK: _Frequency(2, lambda by: Fault(by.at_s, Kind.FILL_DISK, lasts_s=by.lasts_s(3, 15))),
    Kind.STARVE: _Frequency(4, _process(Kind.STARVE, 8)),
}
