"""One run: an agent, its pods, the storm, the calm after it, and the outcome."""

from __future__ import annotations

import contextlib
import http.client
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Final, NamedTuple

from ipc.host.clock import monotonic
from tests.chaos import checks, disk
from tests.chaos.plan import Plan
from tests.chaos.poison import POISON, Poison
from tests.chaos.storm import Keeper, Storm
from tests.chaos.wanted import Wanted
from tests.chaos.watch import Watch
from tests.e2e.agent import Agent

START_S: Final = 60.0
PER_POD_S: Final = 5.0
"""Generous: others may use the machine."""
CONVERGENCE_S: Final = 240.0
SETTLING_S: Final = 150.0
"""Directories without a pod are looked for every minute."""
MAX_BACKOFF_S: Final = 5
MAX_SHOWN: Final = 6
TELL_EVERY_S: Final = 15.0

Say = Callable[[str], None]
Check = Callable[[], list[str]]


class Outcome(NamedTuple):
    """Outcome of a run."""

    plan: Plan
    hits: Counter[str]
    misses: Counter[str]
    exits: Counter[int]
    took_s: float
    """From the end of the storm until everything was as it should be."""
    broken: dict[str, list[str]]
    """By promise: what broke it. Empty for those that were kept."""

    @property
    def is_good(self) -> bool:
        return not any(self.broken.values())

    def __str__(self) -> str:
        hit = (
            f"{kind} {count}" + (f" (+{self.misses[kind]} missed)" if self.misses[kind] else "")
            for kind, count in sorted(self.hits.items())
        )
        lines = [
            f"seed {self.plan.seed}: {sum(self.hits.values())} faults in {self.plan.duration_s:g} s: {', '.join(hit)}",
            f"the agent ended {self.exits.total()} times: {dict(self.exits)}; whole again after {self.took_s:.1f} s",
        ]
        for promise, findings in self.broken.items():
            lines.append(f"{'BROKEN' if findings else 'kept  '}  {promise}")
            lines += [f"          {finding}" for finding in findings[:MAX_SHOWN]]
            lines += [f"          … {len(findings) - MAX_SHOWN} more"] * (len(findings) > MAX_SHOWN)
        return "\n".join(lines)


def run(plan: Plan, instance: str, say: Say) -> Outcome:
    """The whole of it, told as it goes on; nothing of it stays."""
    pods = (*plan.calm, *plan.stormy)
    say(f"seed {plan.seed}: {len(plan.faults)} faults planned, {len(pods)} pods, {len(plan.calm)} of them calm")
    with _agent(instance) as (agent, state):
        wanted, keeper = Wanted(agent), Keeper(agent)
        agent.start()
        wanted.add(*pods)
        agent.until_ready(pods, START_S + PER_POD_S * len(pods))
        say(f"{len(pods)} pods are Ready")
        sizes, pod_table = checks.sizes(agent), agent.eye.pod_table()
        storm = Storm(plan, agent, wanted, keeper, state, say)
        watch = Watch(agent, plan.calm)
        poison = Poison(agent)
        with watch.on():
            with poison.on():
                wanted.add(POISON)
                storm.rage()
            say(f"the storm is over; {POISON} has killed {poison.kills} workers")
            wanted.edit(POISON)
            over = monotonic()
            whole = _settle(keeper, _whole(agent, wanted), CONVERGENCE_S, say)
            took_s = monotonic() - over
            say("looking at what is left")
            clean = _settle(keeper, _clean(agent, wanted), SETTLING_S, say)
        now = agent.eye.pod_table()
        restarted = [
            f"{key[0]}/{key[1]} was restarted"
            for key in pod_table
            if key[0] in plan.calm and pod_table[key] != now.get(key)
        ]
        broken = {
            **whole,
            **clean,
            f"no container ever ran twice ({watch.samples} looks)": watch.twins,
            "calm pods never noticed": watch.disturbed + restarted,
            f"restart counts never fell ({watch.answers} answers)": watch.falls,
            "the poison pod was isolated": poison.findings(),
            "no process has grown": checks.leaks(sizes, checks.sizes(agent)),
            "no bug shows in the log": checks.bugs(agent),
        }
        outcome = Outcome(plan, storm.hits, storm.misses, keeper.exits, took_s, broken)
        say(str(outcome))
        return outcome


def _whole(agent: Agent, wanted: Wanted) -> dict[str, Check]:
    return {
        "every wanted pod is Ready": lambda: checks.not_ready(agent, wanted),
        "the newest manifests run, each container once": lambda: checks.not_as_written(agent, wanted),
        "the status is what Podman shows": lambda: checks.lies(agent, wanted),
    }


def _clean(agent: Agent, wanted: Wanted) -> dict[str, Check]:
    return {
        "nothing is left behind": lambda: checks.left_behind(agent, wanted),
        "the agent's processes are there, once each": lambda: checks.strangers(agent),
    }


@contextlib.contextmanager
def _agent(instance: str) -> Iterator[tuple[Agent, Path]]:
    with contextlib.ExitStack() as stack:
        place = Path(mkdtemp(prefix="rl-disk-", dir="/tmp"))
        stack.callback(lambda: _remove(place))
        state = stack.enter_context(disk.small_disk(place))
        agent = Agent(
            instance,
            {
                "stateDir": str(state),
                "memoryDir": str(state / "memory"),
                "crashLoopBackOff": {"maxContainerRestartPeriod": f"{MAX_BACKOFF_S}s"},
            },
        )
        stack.callback(agent.close)
        yield agent, state


def _remove(place: Path) -> None:
    """Remove the place; what is mounted there is gone."""
    (place / "seen" / "state").unlink(missing_ok=True)
    for directory in (place / "seen", place / "disk", place):
        directory.rmdir()


def _settle(keeper: Keeper, wanted: dict[str, Check], deadline_s: float, say: Say) -> dict[str, list[str]]:
    """The last findings of all, once none of them has any or the time is over; now and then what they are."""
    findings: dict[str, list[str]] = {}
    told_at = monotonic()

    def are_fine() -> bool:
        nonlocal told_at
        findings.update({promise: _told(check) for promise, check in wanted.items()})
        waits_for = [each for found in findings.values() for each in found]
        if waits_for and monotonic() - told_at > TELL_EVERY_S:
            told_at = monotonic()
            say(f"waiting: {'; '.join(waits_for[:MAX_SHOWN])}")
        return not waits_for

    keeper.until(are_fine, deadline_s)
    return findings


def _told(check: Check) -> list[str]:
    """Nobody answers while the agent starts."""
    try:
        return check()
    except (OSError, http.client.HTTPException, AssertionError) as error:
        return [f"cannot be told: {error!r}"]
