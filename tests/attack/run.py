"""Attacks one after the other against one agent: what each did to everybody else, and what of that is too much."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from ipc.host.clock import monotonic
from tests.attack.attack import GROWTH_BYTES, MIB, Attack
from tests.attack.ground import CANARY, Ground, uptime_s
from tests.e2e.agent import is_ready, restart_count

PODMAN: Final = "podman"
LINES: Final = 12
LINE_CHARS: Final = 300
"""Length of what is told about an error: the agent's log is part of it."""
GIVEN_BACK_S: Final = 10.0
"""How long memory may take to be given back."""

Say = Callable[[str], None]


class Outcome(NamedTuple):
    """Outcome of one attack."""

    name: str
    gap_s: float
    """The longest between two probes of the canary, from the attack's beginning to the end of its clearing up."""
    growth_bytes: int
    """Growth of the process of the agent that has grown most."""
    took_s: float
    faults: tuple[str, ...]
    """Promises that were broken; empty if everything held."""

    def __str__(self) -> str:
        words = f"gap {self.gap_s:5.2f} s  growth {self.growth_bytes / MIB:+6.1f} MiB  took {self.took_s:5.1f} s"
        return "\n".join([f"{'BROKEN' if self.faults else 'held  '}  {self.name:32} {words}", *self.faults])


class _Before(NamedTuple):
    """State that must be the same afterwards."""

    since: float
    processes: Mapping[str, int]
    sizes: Mapping[str, int]
    pod_table: object


def run(attacks: Iterable[Attack], ground: Ground, say: Say) -> list[Outcome]:
    """Each is told as soon as it is over. Goes on after one that broke something, as long as there is an agent."""
    outcomes = []
    for attack in attacks:
        outcomes.append(carry_out(attack, ground))
        say(str(outcomes[-1]))
        if ground.agent.process.poll() is not None:
            say(f"the agent ended with {ground.agent.process.returncode}\n{ground.agent.story()}")
            break
    return outcomes


def carry_out(attack: Attack, ground: Ground) -> Outcome:
    """One attack, the clearing up after it, and what everybody else felt."""
    began = monotonic()
    before = _Before(uptime_s(), ground.agent.processes(), ground.pss_bytes(), ground.agent.eye.pod_table(CANARY))
    faults: list[str] = []
    with _noting(faults, "of its own"):
        ground.write(*attack.manifests)
        attack.strike(ground)
    growth = 0
    with _noting(faults, "cleared up"):
        ground.clear()
        _until_probed(ground)
    gap_s = ground.longest_gap_s(before.since)
    with _noting(faults, "everybody else"):
        growth = _growth_bytes(before, ground, {PODMAN: attack.podman_bytes})
        faults += _felt(before, ground, growth)
        faults += () if attack.restarts else _felt_by_the_running(attack, before, ground, gap_s)
    return Outcome(attack.name, gap_s, growth, monotonic() - began, tuple(faults))


def _felt_by_the_running(attack: Attack, before: _Before, ground: Ground, gap_s: float) -> Iterable[str]:
    if gap_s >= attack.longest_gap_s:
        yield f"the canary was not probed for {gap_s:.2f} s"
    now = ground.agent.processes()
    kept = before.processes.keys() - attack.replaced
    if died := sorted(name for name in kept if now.get(name) != before.processes[name]):
        yield f"other processes than before: {died}"


def _felt(before: _Before, ground: Ground, growth: int) -> Iterable[str]:
    agent = ground.agent
    if growth > GROWTH_BYTES:
        yield f"a process has grown by {growth / MIB:.1f} MiB"
    canary = agent.pods()[CANARY]
    if not is_ready(canary) or restart_count(canary):
        yield "the canary is not Ready, or was restarted"
    if agent.eye.pod_table(CANARY) != before.pod_table:
        yield "the canary's containers are others"
    if "Traceback (most recent call last)" in agent.log_text():
        yield "a traceback stands in the log"


def _until_probed(ground: Ground) -> None:
    """Once more: a canary that is not probed any more has no gaps."""
    now = uptime_s()
    ground.until(lambda: ground.probed()[-1] > now, "the canary is probed after the attack")


def _growth_bytes(before: _Before, ground: Ground, granted: Mapping[str, int]) -> int:
    """Waits for a while for memory to be given back. ``granted``, by the names of processes, does not count."""

    def growth() -> int:
        now = ground.pss_bytes()
        grown = (size - before.sizes[name] - granted.get(name, 0) for name, size in now.items() if name in before.sizes)
        return max(grown, default=0)

    with contextlib.suppress(AssertionError):
        ground.until(lambda: growth() <= GROWTH_BYTES, "memory is given back", GIVEN_BACK_S)
    return growth()


@contextlib.contextmanager
def _noting(faults: list[str], what: str) -> Iterator[None]:
    """An error becomes a fault: the next attack is carried out all the same."""
    try:
        yield
    except Exception as error:
        lines = [line[:LINE_CHARS] for line in f"{what}: {type(error).__name__}: {error}".splitlines()]
        faults.append("\n".join([*lines[:1], *lines[1:][-LINES:]]))
