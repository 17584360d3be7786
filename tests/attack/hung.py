"""Attacks on the agent's own processes: each is stopped, ended, or left without what the kernel gives to others."""

from __future__ import annotations

import os
import signal
from typing import Final

import psutil

from tests.attack.attack import Attack, Strike, all_of
from tests.attack.ground import BLOCK, Ground
from tests.e2e.manifests import pod

POD_WORKERS: Final = ("pods-0", "pods-1")
HUNG_GAP_S: Final = 5.0
"""A worker that computes instead may take longer where others keep the CPUs busy: what it waits does not count."""
SHORT_S: Final = 1.5
"""The canary misses a probe or two: one that cannot be run is run again when the next is due, as the kubelet does."""
SHORT_GAP_S: Final = 5.0
"""Bound of the canary's gap then: it is 2 s or 3 s, by how many of its probes fell into that time."""
STARVED_S: Final = 8.0
"""Some ticks of the master, and looks at all that it looks at by itself."""


def _stop(role: str) -> Strike:
    """The process of that name is stopped, and goes on as the same."""

    def strike(ground: Ground) -> None:
        pid = ground.agent.processes()[role]
        os.kill(pid, signal.SIGSTOP)
        ground.until(lambda: psutil.Process(pid).status() != psutil.STATUS_STOPPED, f"{role} goes on")

    return strike


def _stop_workers(ground: Ground) -> None:
    for role in (*POD_WORKERS, "node"):
        os.kill(ground.agent.processes()[role], signal.SIGSTOP)
    ground.agent.run(pod("beside-the-stopped"))


def _hang(role: str) -> Strike:
    """The process of that name hangs. Another one takes its place and goes on."""

    def strike(ground: Ground) -> None:
        agent = ground.agent
        before = agent.workers()[role]["incarnation"]
        os.kill(agent.processes()[role], BLOCK)
        ground.until(lambda: agent.workers()[role]["incarnation"] > before, f"{role} has a successor")
        agent.run(pod(f"after-{role}"))

    return strike


def _dies_meanwhile(ground: Ground) -> None:
    """A worker is killed while nobody can reap it. Its successor is another process: that is what is expected."""
    agent = ground.agent
    before = agent.workers()
    os.kill(agent.processes()["zygote"], signal.SIGSTOP)
    for name in POD_WORKERS:
        os.kill(before[name]["pid"], signal.SIGKILL)

    def are_replaced() -> bool:
        now = agent.workers()
        return all(now[name]["incarnation"] > before[name]["incarnation"] for name in POD_WORKERS)

    ground.until(are_replaced, "their successors are there")


def _no_descriptors(role: str, seconds: float = STARVED_S) -> Strike:
    """Soft limits of files: for a while that process can open none more."""

    def strike(ground: Ground) -> None:
        process = psutil.Process(ground.agent.processes()[role])
        before = process.rlimit(psutil.RLIMIT_NOFILE)
        process.rlimit(psutil.RLIMIT_NOFILE, (process.num_fds(), before[1]))
        try:
            ground.write(pod(f"beside-{role}"))
            ground.last(seconds)
        finally:
            process.rlimit(psutil.RLIMIT_NOFILE, before)
        ground.agent.until_ready([f"beside-{role}"])

    return strike


ATTACKS: Final = (
    Attack(
        "stopped-workers",
        "Pod workers and node worker are stopped by a signal.",
        "be continued",
        _stop_workers,
    ),
    Attack(
        "stopped-helpers",
        "Dialer, zygote and Podman's service are stopped by a signal, one after the other.",
        "be continued",
        all_of(*(_stop(role) for role in ("dialer", "zygote", "podman"))),
    ),
    Attack(
        "stopped-zygote",
        "The zygote is stopped, and the pod workers are killed then.",
        "have successors",
        _dies_meanwhile,
        replaced=frozenset(POD_WORKERS),
    ),
    Attack(
        "no-descriptors",
        "Master, zygote and node worker may open no more files, one after the other, and pod workers for a moment.",
        "wait for its start",
        all_of(
            *(_no_descriptors(role) for role in ("master", "zygote", "node")),
            *(_no_descriptors(role, SHORT_S) for role in POD_WORKERS),
        ),
        longest_gap_s=SHORT_GAP_S,
        is_quick=False,
    ),
    # The last one: a pod in whose step the next worker died would be in quarantine.
    Attack(
        "hung-workers",
        "Each pod worker waits in the kernel without an end, one after the other.",
        "have successors",
        all_of(*map(_hang, POD_WORKERS)),
        replaced=frozenset(POD_WORKERS),
        longest_gap_s=HUNG_GAP_S,
        is_quick=False,
    ),
)
