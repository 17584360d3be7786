"""A node that runs short: what it has, who takes it away, and the steps that follow.

Thresholds are relative to what this machine has now, with room for whatever else runs on it. Disks: the state directory
lies in memory, where hardly anybody else writes.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import shutil
import subprocess
import tarfile
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

from ipc.host.clock import monotonic
from ipc.k8s.eviction.signals import Signal
from tests.bench.own_storage import VARIABLE, own_config
from tests.e2e.agent import MEMORY, POLL_S, Agent, Json
from tests.e2e.innocents import Crowd
from tests.e2e.manifests import STAY, container, pod
from tests.support.podman_service import PATIENCE, ensure_image, podman
from workers.eviction.node_signals import SignalPaths, observe_node

if TYPE_CHECKING:
    from tests.e2e.conftest import NewAgent  # whose fixtures are made of what is here

MIB: Final = 1024 * 1024
PART: Final = 256 * MIB
"""Memory that one process of a hog holds."""
MIN_MEMORY_GAP: Final = 256 * MIB
MAX_MEMORY_GAP: Final = 2048 * MIB
FILLED_S: Final = 150.0
"""For whoever takes something away: a machine may need long for 800 processes."""
EVICTED_S: Final = 90.0
"""A round every ten seconds, a measurement, and a machine that has other work."""
TEST_S: Final = 240 * PATIENCE
"""Most that a test may take: some evictions one after the other, between restarts."""
MEMINFO: Final = ("MemFree", "MemAvailable", "Active(file)", "Inactive(file)", "Shmem", "AnonPages", "SwapFree")


# --- what there is ---


def available(signal: Signal, directory: str = "") -> int:
    """Amount that the agent would observe now."""
    return (
        observe_node({signal}, SignalPaths(directories=(directory,) if directory else ()), 0.0)
        .signals[signal]
        .available
    )


def node_condition(agent: Agent, kind: str) -> Json:
    """Condition of the node; empty before the first status."""
    [node] = agent.get("/api/v1/nodes")["items"]
    found: Json = next((c for c in node["status"]["conditions"] if c["type"] == kind), {})
    return found


def has_condition(agent: Agent, kind: str) -> bool:
    return bool(node_condition(agent, kind).get("status") == "True")


@contextlib.contextmanager
def directory_in_memory() -> Iterator[Path]:
    """A directory on a file system that is memory."""
    MEMORY.mkdir(parents=True, exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="pressure-", dir=MEMORY))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def storage_in_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A Podman storage of its own on a file system that is memory, for this process and its children."""
    store = Path(tempfile.mkdtemp(prefix="rootlet-store-", dir="/dev/shm"))
    run = Path(tempfile.mkdtemp(prefix="store-", dir=os.environ["XDG_RUNTIME_DIR"]))
    try:
        with monkeypatch.context() as environment:
            environment.setenv(VARIABLE, str(own_config(store, store / "graph", run)))
            ensure_image(store)
            yield store
    finally:  # in the user's own storage again: this one is mounted while a command uses it
        podman("unshare", "rm", "-rf", str(store), str(run))


def disk_agent(make: NewAgent, directory: Path, threshold: Mapping[str, str], **more: Any) -> Agent:
    """A running agent whose pods' directories lie there."""
    settings = {"evictionPressureTransitionPeriod": "5s", **more}
    agent = make(
        stateDir=str(directory / "state"), podLogsDir=str(directory / "logs"), evictionHard=dict(threshold), **settings
    )
    agent.start()
    return agent


def imagefs_agent(make: NewAgent, store: Path, state: Path, **more: Any) -> tuple[Agent, int]:
    """A running agent that evicts when 128 MiB more lie in that storage, and its threshold."""
    threshold = available(Signal.NODEFS_AVAILABLE, str(store)) - 128 * MIB
    return disk_agent(make, state, {Signal.IMAGEFS_AVAILABLE.value: str(threshold)}, **more), threshold


COLLECTS_ALL: Final = {"imageGCScope": "AllImages", "imageMinimumGCAge": "1s"}
"""Settings of an agent that has a storage for itself."""


class MemoryRoom(NamedTuple):
    """Memory of a node whose agent has a threshold."""

    threshold: int
    left: int
    """Bytes between what is available and the threshold."""
    gap: int
    """Bytes that it was to be."""

    @property
    def is_short(self) -> bool:
        return available(Signal.MEMORY_AVAILABLE) < self.threshold


def limit_memory(agent: Agent) -> MemoryRoom:
    """Restart the agent with a threshold of memory well below what is available. What is left until then is measured
    after that: a restart reads files, and the kernel's cache of those that are in use counts as used."""
    free = available(Signal.MEMORY_AVAILABLE)
    gap = min(max(MIN_MEMORY_GAP, free // 4), MAX_MEMORY_GAP)
    threshold = free - gap
    agent.configure({"evictionHard": {"memory.available": str(threshold)}})
    agent.restart()
    room = MemoryRoom(threshold, available(Signal.MEMORY_AVAILABLE) - threshold, gap)
    assert room.left > gap // 2, f"somebody else has taken most of the room: {room}"
    return room


# --- who takes it away ---


def hog(share: int, part: int = PART, then: str = STAY, **fields: Any) -> Json:
    """Holds so many bytes of memory that belong to nobody else: buffers of writers that nobody reads from."""
    parts = -(-share // part)
    holder = f"dd if=/dev/zero bs={part} count=1 2>/dev/null | sleep 3600"
    return container(script=f"for i in $(seq {parts}); do {holder} & done; {then}", **fields)


@contextlib.contextmanager
def memory_taken(amount: int) -> Iterator[Callable[[], None]]:
    """Somebody who is no pod takes so much, until the end or until what is given is called."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
    with mmap.mmap(-1, amount, flags=flags) as taken:
        yield taken.close


def with_volume(name: str, script: str, **spec: Any) -> Json:
    """A pod that does this in an emptyDir of its own, then says so and stays."""
    script = f"cd /v; {script}; echo done; {STAY}"
    main = container(script=script, volumeMounts=[{"name": "v", "mountPath": "/v"}], **spec.pop("fields", {}))
    return pod(name, main, volumes=[{"name": "v", "emptyDir": {}}], **spec)


def writes(mib: int) -> str:
    """Script that fills a file."""
    return f"dd if=/dev/zero of=file bs=1M count={mib} 2>/dev/null"


def import_image(name: str, size: int) -> None:
    """An image with one file. It lies nowhere else meanwhile: file systems in memory are small."""
    layer = tarfile.TarInfo("file")
    layer.size = size
    command = ["podman", "import", "--quiet", "-", name]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process,
        Path("/dev/zero").open("rb") as zeros,
    ):
        assert process.stdin is not None
        with process.stdin, tarfile.open(fileobj=process.stdin, mode="w|") as tar:
            tar.addfile(layer, zeros)
    assert process.returncode == 0


# --- what follows ---


Step = Callable[[], bool]


def follow(agent: Agent, steps: Mapping[str, Step], deadline_s: float = EVICTED_S) -> dict[str, float]:
    """Seconds after which each step was first seen, in the order in which they were. The first one is the filler's,
    with time of its own. A slow machine is asked more rarely: whoever asks takes time from those who are watched."""
    begin, seen = monotonic(), dict[str, float]()
    first = next(iter(steps))

    def are_all_seen() -> bool:
        for name, step in steps.items():
            if name not in seen and step():
                seen[name] = monotonic() - begin
        return len(seen) == len(steps)

    try:
        agent.until(lambda: are_all_seen() or first in seen, first, FILLED_S, POLL_S * PATIENCE)
        agent.until(are_all_seen, f"the steps {', '.join(steps)}", deadline_s, POLL_S * PATIENCE)
    except AssertionError as error:
        error.add_note(f"seen were {seen}")
        raise
    return seen


def of_condition(agent: Agent, kind: str) -> dict[str, Step]:
    return {"condition": lambda: has_condition(agent, kind)}


def of_eviction(agent: Agent, name: str) -> dict[str, Step]:
    """Steps of a pod that goes."""

    def is_told() -> bool:
        return "Evicted" in agent.reasons(name)

    return {
        f"{name} evicted": is_told,
        f"{name} gone": lambda: is_told() and not agent.eye.containers(name, infra=True),
    }


def tell(offender: str, seen: Mapping[str, float], crowd: Crowd, went: str) -> None:
    """One line of what was measured, for docs/eviction.md; ``seen`` counts from its first step on, *short*."""
    [short, *steps] = seen.items()
    times = ", ".join(f"{name} {at - short[1]:.1f} s" for name, at in steps)
    _, gap = crowd.largest_gap()
    print(f"measured eviction: {offender}: {times}; went: {went}; ", end="")
    print(f"innocents: largest gap {gap:.1f} s, failed probes {crowd.failed_probes()}")


def evicted(agent: Agent) -> list[str]:
    """Names of pods that were evicted, in the order of their events; without those that were refused."""
    events = [event for event in agent.events() if "starved_resource" in event["metadata"].get("annotations", {})]
    return [event["involvedObject"]["name"] for event in events if event["reason"] == "Evicted"]


def until_evicted(agent: Agent, name: str) -> Json:
    """Status of the evicted pod."""

    def failed() -> bool:
        return bool(agent.pods().get(name, {}).get("status", {}).get("phase") == "Failed")

    agent.until(failed, f"{name} is evicted", EVICTED_S)
    status: Json = agent.pods()[name]["status"]
    assert status["reason"] == "Evicted", status
    return status


def assert_told(agent: Agent, name: str, resource: str) -> None:
    """Status, events and annotations say why."""
    status = until_evicted(agent, name)
    assert status["message"].startswith(f"The node was low on resource: {resource}. Threshold quantity: ")
    [target] = [c for c in status["conditions"] if c["type"] == "DisruptionTarget"]
    assert (target["status"], target["reason"]) == ("True", "TerminationByKubelet")
    assert target["message"] == status["message"]
    [event] = [event for event in agent.events(name) if event["reason"] == "Evicted"]
    assert (event["type"], event["message"]) == ("Warning", status["message"])
    assert event["metadata"]["annotations"]["starved_resource"] == resource
    assert f"Attempting to reclaim {resource}" in agent.messages("e2e", "EvictionThresholdMet")


def until_relieved(agent: Agent, kind: str) -> None:
    agent.until(lambda: node_condition(agent, kind)["status"] == "False", f"{kind} ends", 60)


@contextlib.contextmanager
def memory_told(agent: Agent) -> Iterator[None]:
    """When the body fails, the error says how much memory there was in each second, and who was evicted."""
    lines: list[str] = []
    end = threading.Event()

    def sample() -> None:
        begin = monotonic()
        while not end.wait(1.0):
            lines.append(f"{monotonic() - begin:5.0f} s: {_memory_now()}")

    sampler = threading.Thread(target=sample, daemon=True)
    sampler.start()
    try:
        yield
    except AssertionError as error:
        error.add_note("\n".join([f"evicted: {evicted(agent)}", "memory in MiB:", *lines]))
        raise
    finally:
        end.set()
        sampler.join()


def _memory_now() -> str:
    words: Sequence[list[str]] = [line.split() for line in Path("/proc/meminfo").read_text().splitlines()]
    known = {name.rstrip(":"): int(kib) // 1024 for name, kib, *_ in words}
    shown = " ".join(f"{name} {known.get(name, 0)}" for name in MEMINFO)
    return f"available to the agent {available(Signal.MEMORY_AVAILABLE) // MIB}, {shown}"
