"""Many seeds at once, one process per CPU. Seeds have nothing in common, and their outcomes come in their order."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from functools import partial
from typing import Final

from tests.sim.cluster.mutations import CLUSTER_MUTATIONS
from tests.sim.cluster.simulation import ClusterOptions, simulate_cluster
from tests.sim.frame import Outcome
from tests.sim.mutations import MUTATIONS, OF_CLAIMS
from tests.sim.options import Options
from tests.sim.simulation import simulate_seed

ALL_MUTATIONS: Final = {**MUTATIONS, **OF_CLAIMS, **CLUSTER_MUTATIONS}
AHEAD: Final = 4
"""Seeds that are given out per process: a long one holds nobody up."""
GARBAGE: Final = 50_000
"""New objects from which on garbage is looked for: a seed makes little that is in a cycle."""


def available_cpus() -> int:
    """CPUs that this process may run on."""
    return len(os.sched_getaffinity(0))


def outcomes(
    seeds: Iterable[int], options: Options | ClusterOptions, jobs: int, mutation: str = ""
) -> Generator[Outcome, None, None]:
    """Outcome of each seed, with a rule broken if one is named. No further seed is taken from ``seeds`` when nobody
    asks for the next outcome; with one job they run in this process."""
    simulate = partial(_simulate, options=options, mutation=mutation)
    if jobs == 1:
        yield from map(simulate, seeds)
        return
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("fork"), initializer=_prepare)
    under_way: deque[Future[Outcome]] = deque()
    try:
        for seed in seeds:
            under_way.append(pool.submit(simulate, seed))
            if len(under_way) >= AHEAD * jobs:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _prepare() -> None:
    gc.freeze()
    gc.set_threshold(GARBAGE)


def _simulate(seed: int, options: Options | ClusterOptions, mutation: str) -> Outcome:
    with ALL_MUTATIONS[mutation]() if mutation else contextlib.nullcontext():
        return simulate_seed(seed, options) if isinstance(options, Options) else simulate_cluster(seed, options)
