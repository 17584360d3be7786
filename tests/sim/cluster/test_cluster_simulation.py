"""An API server that does anything, or nothing: no pod restarts because of it, and in the end both know the same."""

from __future__ import annotations

import itertools
import subprocess
import sys
from time import process_time

import msgspec
import pytest

from tests.sim.cluster.mutations import CLUSTER_MUTATIONS
from tests.sim.cluster.simulation import HOUR_S, ClusterOptions, simulate_cluster
from tests.sim.trace import KEPT_LINES
from tests.support.variants import seldom

SEEDS = 100
SEEDS_IN_ANY_CASE = 4
BUDGET_S = 6.0
"""When this much CPU time has gone, no further seed begins."""
QUICK = ClusterOptions(noise_s=60.0, away_s=100.0)
HASH_SEEDS = ("1", "2")
_PRINTED = """
from tests.sim.cluster.test_cluster_simulation import QUICK, simulate_cluster
print(*simulate_cluster(2, QUICK).tail, sep="\\n")
"""
MAX_SEEDS = 100
"""Within which every broken rule is found."""


def _check(seed: int, options: ClusterOptions) -> None:
    outcome = simulate_cluster(seed, options)
    assert not outcome.broken, "\n".join((*outcome.tail[-40:], f"seed {seed}: {outcome.broken}"))
    assert outcome.noted > KEPT_LINES / 4


@pytest.mark.timeout(300)
def test_no_fault_of_an_api_server_restarts_a_pod_or_loses_a_status() -> None:
    end_at = process_time() + BUDGET_S
    for seed in itertools.takewhile(lambda seed: seed < SEEDS_IN_ANY_CASE or process_time() < end_at, range(1, SEEDS)):
        _check(seed, QUICK)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [1, 2])
def test_an_hour_s_partition_changes_nothing(seed: int) -> None:
    """With a death of the agent meanwhile, or without, by the seed."""
    _check(seed, msgspec.structs.replace(QUICK, away_s=HOUR_S))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("skew_s", [seldom(-600.0), 600.0])
def test_a_server_whose_clock_is_minutes_ahead_or_behind_is_none_the_worse(skew_s: float) -> None:
    _check(3, msgspec.structs.replace(QUICK, skew_s=skew_s))


@pytest.mark.timeout(300)
def test_a_seed_is_replayed_exactly_also_in_another_process() -> None:
    first, second = (_trace_in_process(hash_seed) for hash_seed in HASH_SEEDS)
    assert first == second
    assert first.count("\n") > KEPT_LINES / 4


def _trace_in_process(hash_seed: str) -> str:
    command = [sys.executable, "-c", _PRINTED]
    environment = {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": "."}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", CLUSTER_MUTATIONS)
def test_a_broken_rule_is_found(name: str) -> None:
    """A simulation that finds nothing would hold nothing."""
    with CLUSTER_MUTATIONS[name]():
        assert any(simulate_cluster(seed, ClusterOptions()).broken for seed in range(1, MAX_SEEDS + 1))
