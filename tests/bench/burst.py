"""CPU of the sync loop for many pods of a cluster that come at once, until all are with their workers. No I/O.

    python -m tests.bench.burst --pods 110 --runs 15

Two trees can be compared on a machine that does other things: nobody waits for anybody here, the least of the runs
counts, and the calls of functions are the same each time.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import random
import statistics
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from ipc.host.clock import Instant, process_cpu
from ipc.k8s.api.annotations import API_SOURCE
from ipc.k8s.api.v1.pod import Pod
from ipc.link.messages.pod_worker import SyncPod
from supervisor.admission.predicates import UNKNOWN_NODE
from supervisor.config.settings import ClusterSection, Settings, WorkersSettings
from supervisor.loop.loop import SyncLoop
from supervisor.processes.worker_pool import API_SLOT, FIRST_POD_SLOT, NODE_SLOT
from supervisor.protocol.commands import LoopCommand, Send
from supervisor.protocol.events import LoopEvent, Observations, SourcesReady, StatusesDue, WorkerUp
from supervisor.protocol.source_updates import PodOperation, PodUpdate, in_parts
from tests.bench.sleepers import load, sleepers
from tests.support.podman_service import IMAGE

STEP_S: Final = 0.001
CHILDREN: Final = (NODE_SLOT, API_SLOT, FIRST_POD_SLOT, FIRST_POD_SLOT + 1)


class Spent(NamedTuple):
    """CPU of one burst, in seconds."""

    until_first: float
    """First SyncPod."""
    until_last: float
    """Last SyncPod."""
    all: float
    """Statuses, too."""


class Burst:
    """A sync loop with its children up, and pods that it does not know yet."""

    def __init__(self, pods: int) -> None:
        settings = Settings(workers=WorkersSettings(count=2), cluster=ClusterSection(kubeconfig="/k"))
        self._loop = SyncLoop(settings, 2 * pods, ("10.0.0.1",), random.Random(0), UNKNOWN_NODE)
        self._mono = 100.0
        for slot in CHILDREN:
            self._feed(WorkerUp(slot, 1))
        self._feed(SourcesReady())
        self._feed(Observations((), self._mono - STEP_S / 2, ()))
        self._update = PodUpdate(op=PodOperation.ADD, source=API_SOURCE, pods=_pods(pods))
        self._encoder = msgspec.msgpack.Encoder()
        self.syncs = 0

    def run(self) -> Spent:
        """Take the pods as the master does, and encode what goes to the children."""
        began, first = process_cpu(), 0.0
        for part in in_parts(self._update):
            self._take(msgspec.structs.replace(part, is_batched=True))
            first = first or process_cpu() - began
        begun = process_cpu() - began
        self._take(StatusesDue())
        return Spent(first, begun, process_cpu() - began)

    def _take(self, event: LoopEvent) -> None:
        for command in self._feed(event):
            if isinstance(command, Send):
                self._encoder.encode(command.message)
                self.syncs += isinstance(command.message, SyncPod)

    def _feed(self, event: LoopEvent) -> Sequence[LoopCommand]:
        self._mono += STEP_S
        return self._loop.handle(event, Instant(mono=self._mono, wall=self._mono))


def _pods(count: int) -> tuple[Pod, ...]:
    made = []
    for name, manifest in sleepers("burst", count, ("sleep", "3600"), IMAGE).items():
        metadata = {**manifest["metadata"], "namespace": "default", "uid": name}
        made.append(msgspec.convert({**manifest, "metadata": metadata}, Pod, strict=False))
    return tuple(made)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.burst", description=__doc__)
    parser.add_argument("--pods", type=int, default=110)
    parser.add_argument("--runs", type=int, default=15)
    options = parser.parse_args()
    spent = []
    for _ in range(options.runs):
        burst = Burst(options.pods)
        gc.collect()
        spent.append(burst.run())
        assert burst.syncs == options.pods, f"{burst.syncs} pods are with their workers"
    every, last, first = ([1000 * spent_s for spent_s in each] for each in reversed(tuple(zip(*spent, strict=True))))
    profile, burst = cProfile.Profile(), Burst(options.pods)
    profile.runcall(burst.run)
    calls = sum(entry.callcount for entry in profile.getstats())
    print(load())
    print(f"{options.pods} pods: least {min(every):.1f} ms of CPU, median {statistics.median(every):.1f}")
    print(f"  until the last part is out: least {min(last):.1f} ms, median {statistics.median(last):.1f}")
    print(f"  until the first part is out: least {min(first):.1f} ms, median {statistics.median(first):.1f}")
    print(f"  {calls} calls of functions")


if __name__ == "__main__":
    main()
