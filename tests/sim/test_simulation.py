"""Events in whatever order: the promises hold, and once it is quiet everything comes to what is wanted."""

from __future__ import annotations

import contextlib
import itertools
import subprocess
import sys
from time import process_time
from types import FrameType

import msgspec
import pytest

from tests.sim.mutations import MUTATIONS, OF_CLAIMS
from tests.sim.noise import ACTS, MISFORTUNES, PROBES_FAIL, PULLS_FAIL
from tests.sim.options import LARGE_EVERY, Options, Size
from tests.sim.processes import AHEAD, outcomes
from tests.sim.scenarios.table import SCENARIOS
from tests.sim.simulation import simulate_chosen, simulate_seed
from tests.sim.swarm import small

SEEDS = 600
SEEDS_IN_ANY_CASE = 24
BUDGET_S = 10.0
"""When this much CPU time has gone, no further seed begins: as many as on a quiet machine, whatever runs beside."""
MIXED = Options(size=Size.MIXED, claims=None, pauses=None)
QUICK = Options(pods=4, noise_s=45.0)
PAUSED_SEEDS = 3
CLAIMING = Options(pods=4, noise_s=45.0, pressure=False, claims=True)
CLAIMING_SEEDS = 3
FOUND = (67, 209, 1398)
"""Restart counts that fell; a pod that was gone, which a new node worker's relist passed over."""
RIGHTLY_SO = (33, 404)
"""A pod goes on while the images of its edit cannot be pulled; an orphan that comes between a removal and the look
after it."""
PASSED_OVER = 100_093
NOISES_OF_A_NAMESAKE = (
    *("change_manifest", "read_sources", "end_a_process", "remove_by_hand", "drain", "uncordon", "go_down", "stay_up"),
    *("kill_api_server", "reboot"),
)
HASH_SEEDS = ("1", "2")
REPLAYED = f"{LARGE_EVERY - 1}..{LARGE_EVERY}"
"""A small seed and a large one."""
MAX_SEEDS = 300
"""Within which every broken rule is found."""
WEIGHED = (1, 2, 3, 4)
MAX_CALLS = 820
"""Calls of Python functions for each line of a trace, 60 of them by the rule that every wait has an end. A seed
is worth what happens in it, and costs calls."""


@pytest.mark.timeout(600)
def test_every_seed_comes_to_rest_and_keeps_every_promise() -> None:
    end_at = process_time() + BUDGET_S
    for seed in range(SEEDS):
        if seed >= SEEDS_IN_ANY_CASE and process_time() > end_at:
            break
        outcome = simulate_seed(seed, MIXED)
        assert not outcome.broken, "\n".join((*outcome.tail[-40:], f"seed {seed}: {outcome.broken}"))


@pytest.mark.timeout(600)
def test_pods_that_somebody_pauses_and_resumes_keep_every_promise() -> None:
    for seed in range(PAUSED_SEEDS):
        outcome = simulate_seed(seed, msgspec.structs.replace(QUICK, pauses=True, pressure=False))
        assert not outcome.broken, "\n".join((*outcome.tail[-40:], f"seed {seed}: {outcome.broken}"))


@pytest.mark.timeout(600)
def test_claims_that_come_and_go_while_pods_have_them_keep_every_promise() -> None:
    for seed in range(CLAIMING_SEEDS):
        outcome = simulate_seed(seed, CLAIMING)
        assert not outcome.broken, "\n".join((*outcome.tail[-40:], f"seed {seed}: {outcome.broken}"))


def test_a_seed_is_replayed_exactly_also_in_another_process() -> None:
    """Nothing in it hangs on the hashes of strings, on addresses or on the time of day."""
    traces = [_trace_in_process(hash_seed) for hash_seed in HASH_SEEDS]
    assert traces[0] == traces[1]
    assert traces[0].count("\n") > 500


def _trace_in_process(hash_seed: str) -> str:
    command = [sys.executable, "-m", "tests.sim", "--seeds", REPLAYED, "-v"]
    ran = subprocess.run(
        command, env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": "."}, capture_output=True, text=True, check=True
    )
    return ran.stdout


@pytest.mark.parametrize("seed", FOUND)
def test_a_seed_that_has_found_something_holds(seed: int) -> None:
    assert not simulate_seed(
        seed,
        Options(
            probes=False, objects=False, poison=False, resizes=False, pressure=False, restarts=False, shutdown=False
        ),
    ).broken


@pytest.mark.parametrize("seed", RIGHTLY_SO)
def test_what_is_right_is_no_complaint(seed: int) -> None:
    outcome = simulate_seed(seed, MIXED)
    assert not outcome.broken, outcome.broken


def test_what_happens_costs_no_more_calls_than_it_did() -> None:
    """Speed that nobody measures rots; seconds would measure the machine."""
    calls, noted = map(sum, zip(*map(_weigh, WEIGHED), strict=True))
    assert calls < MAX_CALLS * noted, calls / noted


def _weigh(seed: int) -> tuple[int, int]:
    """How many functions written in Python are called for a seed, and how many lines its trace has."""
    calls = 0

    def count(frame: FrameType, event: str, arg: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        noted = simulate_seed(seed, QUICK).noted
    finally:
        sys.setprofile(before)
    return calls, noted


def test_small_seeds_have_everything_between_them_and_nothing_that_was_not_asked_for() -> None:
    every = [small(seed, MIXED) for seed in range(300)]
    assert {name for each in every for name in each.noises or ()} == ACTS.keys()
    assert {name for each in every for name in each.misfortunes or ()} == set(MISFORTUNES)
    assert {name for each in every for name in each.scenarios or ()} == SCENARIOS.keys()
    calm = msgspec.structs.replace(MIXED, claims=False, pauses=False, shutdown=False, poison=False, pods=2, noise_s=8.0)
    for each in (small(seed, calm) for seed in range(300)):
        assert not any((each.claims, each.pauses, each.shutdown, each.poison))
        assert not {"change_claim", "pause", "drain", "go_down"}.intersection(each.noises or ())
        assert not {"claim", "drain", "go down"}.intersection(each.scenarios or ())
        assert each.pods <= 2
        assert each.noise_s <= 8.0


def test_processes_give_the_outcomes_of_one_in_the_order_of_the_seeds() -> None:
    seeds = range(1, 3)
    alone = list(outcomes(seeds, QUICK, jobs=1))
    assert list(outcomes(seeds, QUICK, jobs=2)) == alone
    assert [outcome.seed for outcome in alone] == list(seeds)


def test_no_seed_begins_when_nobody_asks_for_more() -> None:
    seeds = iter(range(1, 1000))
    with contextlib.closing(outcomes(seeds, Options(pods=1, noise_s=1.0), jobs=2)) as every:
        assert next(every).seed == 1
    assert next(seeds) == AHEAD * 2 + 1


def test_what_a_relist_passes_over_is_not_forgotten_by_a_new_agent() -> None:
    """In this seed a container of a pod that no source has stated yet ends while a relist is under way."""
    assert not simulate_seed(PASSED_OVER, Options(pressure=False, restarts=False, shutdown=False)).broken


def test_what_a_call_that_was_given_up_makes_of_a_pod_that_has_gone_is_found_by_its_namesake() -> None:
    late = Options(
        size=Size.SMALL,
        numbers=(1, 4, 5),
        pods=3,
        noise_s=10.0,
        pace_s=0.3,
        objects=False,
        resizes=False,
        poison=False,
        pressure=False,
        restarts=False,
        noises=NOISES_OF_A_NAMESAKE,
        misfortunes=("times_out_with_effect", "takes_effect_late", "kills_podman", "no_look", PROBES_FAIL, PULLS_FAIL),
        scenarios=(),
    )
    assert not simulate_chosen(337, late).broken


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_broken_rule_is_found(name: str) -> None:
    """A simulation that finds nothing would hold nothing."""
    with MUTATIONS[name]():
        seeds = itertools.product(range(1, MAX_SEEDS + 1), (False, True))
        assert any(simulate_seed(seed, Options(probes=probes)).broken for seed, probes in seeds)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", OF_CLAIMS)
def test_a_broken_rule_of_claims_is_found(name: str) -> None:
    with OF_CLAIMS[name]():
        assert any(simulate_seed(seed, CLAIMING).broken for seed in range(1, MAX_SEEDS + 1))
