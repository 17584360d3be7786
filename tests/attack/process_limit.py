"""Attacks on the number of processes that the user may have (RLIMIT_NPROC)."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psutil

from tests.attack.attack import Attack, Strike, all_of
from tests.attack.ground import Ground
from tests.attack.hung import SHORT_GAP_S, SHORT_S
from tests.e2e.agent import is_ready
from tests.e2e.manifests import Json, container, pod

ROOM: Final = 1500
"""Processes that the user may have beside those that there are."""
MORE: Final = ROOM + 200
"""Processes that the bomb makes, unless it is refused: others use this host, too."""
HELD_S: Final = 12.0
"""Some probes of the canary while the bomb holds what it has."""
BOMB: Final = f"""
(i=0; while [ $i -lt {MORE} ]; do sleep 1000 & i=$((i + 1)); done; echo everything)
echo the bomb has what it gets
exec sleep 1000
"""
"""The inner shell ends when it is refused a process; those that it has made go on."""
FEWEST: Final = 1
"""A limit at which the kernel refuses every further process and thread."""
STARVED_S: Final = 4.0
"""Some ticks of the master, and probes of the canary."""
ROLES: Final = ("master", "zygote", "node", "pods-0", "pods-1", "dialer", "api", "podman")


def _threads_of_the_user() -> int:
    """Counted as the kernel counts for RLIMIT_NPROC; processes in the user's namespaces have other ids, and count, too:
    these are a few."""
    uid = Path("/proc/self").stat().st_uid
    tasks = 0
    for process in psutil.process_iter(["uids", "num_threads"]):
        uids = process.info["uids"]
        if uids is not None and uids.real == uid:
            tasks += process.info["num_threads"] or 0
    return tasks


@contextmanager
def _limited(processes: list[psutil.Process], most: int) -> Iterator[None]:
    """Limit the processes that these may have, and all that they start, as if they had been started so."""
    before = {}
    for process in processes:
        before[process] = process.rlimit(psutil.RLIMIT_NPROC)
        process.rlimit(psutil.RLIMIT_NPROC, (min(most, before[process][1]), before[process][1]))
    try:
        yield
    finally:
        for process, limits in before.items():
            if process.is_running():
                process.rlimit(psutil.RLIMIT_NPROC, limits)


def _beside() -> Json:
    """A pod whose probe forks."""
    probe = {"exec": {"command": ["sh", "-c", "true | true"]}, "periodSeconds": 1, "failureThreshold": 1}
    return pod("beside", container(readinessProbe=probe))


def _bomb(ground: Ground) -> None:
    """The bomb is refused some of what it wants, and commands run in other containers."""
    agent = ground.agent
    most = min(_threads_of_the_user() + ROOM, resource.getrlimit(resource.RLIMIT_NPROC)[1])
    with _limited(agent.marked_processes(), most):
        agent.run(_beside())
        ground.write(pod("bomb", container(script=BOMB), terminationGracePeriodSeconds=1))
        ground.until(lambda: "what it gets" in agent.output("bomb"), "it is refused")
        assert "everything" not in agent.output("bomb"), "it has all that it wants"
        ground.last(HELD_S)
        assert is_ready(agent.pods()["beside"])
        agent.remove("bomb")
        ground.until(lambda: "bomb" not in agent.pods(), "it goes")


def _no_processes(*roles: str) -> Strike:
    """For a while the kernel gives these processes no more, and no thread."""

    def strike(ground: Ground) -> None:
        name = f"beside-{roles[0]}-alone"
        pids = ground.agent.processes()
        with _limited([psutil.Process(pids[role]) for role in roles], FEWEST):
            ground.write(pod(name))
            ground.last(STARVED_S)
        ground.agent.until_ready([name])

    return strike


def _none_at_all(ground: Ground) -> None:
    """For the whole agent at once: no command can be run."""
    with _limited(ground.agent.marked_processes(), FEWEST):
        ground.write(pod("beside-nothing"))
        ground.last(SHORT_S)
    ground.agent.until_ready(["beside-nothing"])


ATTACKS: Final = (
    Attack(
        "process-limit",
        "A container makes as many processes as it may, where the user has a limit of them.",
        "be refused more, while others are probed",
        _bomb,
        is_quick=False,
    ),
    Attack(
        "no-processes",
        "The user's limit of processes is reached for each process of the agent, one after the other.",
        "wait for its start",
        all_of(*(_no_processes(role) for role in ROLES)),
        replaced=frozenset({"podman"}),
        is_quick=False,
    ),
    Attack(
        "no-processes-at-all",
        "The user's limit of processes is reached for the whole agent, for a moment.",
        "wait for its start",
        _none_at_all,
        replaced=frozenset({"podman"}),
        longest_gap_s=SHORT_GAP_S,
        is_quick=False,
    ),
)
