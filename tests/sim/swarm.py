"""Small seeds: of everything that a simulation may hold each has a little, drawn by its number.

A seed that has everything is long, and what happens in it hides what else happens: a pod that is edited twice a second
never crashes often enough to be held back. Many small ones, each without most kinds of noise, come to more orders of
events for the same CPU time (*swarm testing*).
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from tests.sim.noise import ACTS, MISFORTUNES, NOISE
from tests.sim.options import Options, Size
from tests.sim.scenarios.table import SCENARIOS, is_possible
from tests.sim.world import World

PODS: Final = (1, 2, 2, 3)
NOISE_S: Final = (10.0, 20.0, 30.0)
PACE_S: Final = (0.3, 0.6, 1.0)
"""How long the noise lasts, and the mean time from one act to the next."""
PLAYED: Final[Mapping[str, float]] = {
    "run short": 0.2,
    "restart": 0.18,
    "claim": 0.03,
    "rotate": 0.12,
    "misreport": 0.15,
    "answer late": 0.15,
    "lose a slice": 0.06,
    "drain": 0.06,
    "go down": 0.06,
    "preempt": 0.2,
}
"""Part of the seeds in which each scenario is played."""
PLAYED_BESIDE: Final[Mapping[str, float]] = {"resize": 0.1}
"""Likewise, of those that were thought of later: drawn apart, so that each seed stays what it was."""
NOISES: Final = 0.35
"""Part of the kinds of noise that a seed has, but for these."""
OFTEN: Final[Mapping[str, float]] = {
    "change_manifest": 0.8,
    "read_sources": 0.6,
    "end_a_process": 0.6,
    "kill_worker": 0.6,
    "hang_worker": 0.5,
    "uncordon": 0.3,
    "stay_up": 0.3,
}
OF_ITS_OWN: Final = 0.8
"""Part of the kinds of noise without which an option of the seed would be of little use."""
CRITICAL: Final = 0.5
"""Part of the seeds with shutdowns that have a critical pod as well, whose turn comes later."""
WARM_UP_S: Final = (0.0, 0.0, 5.0)
"""How long nothing goes wrong: what runs can be disturbed in more ways than what is about to start."""
THERE: Final = 0.8
"""Part of the pods that are there from the beginning."""
UNLUCKY: Final = 0.7
"""Part of the misfortunes that a seed has."""
PARTS: Final[Mapping[str, float]] = {
    "probes": 0.6,
    "objects": 0.5,
    "resizes": 0.4,
    "poison": 0.35,
    "pressure": 0.15,
    "pauses": 0.1,
    "restarts": 0.4,
    "claims": 0.05,
    "shutdown": 0.6,
}
"""Part of the seeds that have each of the options without a scenario that needs it."""

NOTHING: Final = Options(objects=False, pressure=False, pauses=False, restarts=False, claims=False, shutdown=False)


def small(seed: int, options: Options) -> Options:
    """Options of a small seed: a part of what these allow."""
    rng = random.Random(f"small {seed}")
    allowed = msgspec.structs.replace(options, claims=options.claims is not False, pauses=options.pauses is not False)
    played = [name for name, part in PLAYED.items() if is_possible(name, allowed) and rng.random() < part]
    apart = random.Random(f"beside {seed}")
    played += [name for name, part in PLAYED_BESIDE.items() if is_possible(name, allowed) and apart.random() < part]
    needed = {SCENARIOS[name].needs for name in played}
    parts = {part: part in needed or rng.random() < chance for part, chance in PARTS.items()}
    parts |= {part: True for part in ("claims", "pauses") if getattr(options, part)}
    parts["pressure"] |= parts["shutdown"] and rng.random() < CRITICAL
    numbers = tuple(sorted(rng.sample(range(1, options.pods + 1), min(options.pods, rng.choice(PODS)))))
    chosen = msgspec.structs.replace(
        allowed,
        size=Size.SMALL,
        pods=len(numbers),
        numbers=numbers,
        noise_s=min(options.noise_s, rng.choice(NOISE_S)),
        pace_s=rng.choice(PACE_S),
        scenarios=tuple(played),
        misfortunes=_some(rng, MISFORTUNES, UNLUCKY),
        **{part: is_there and bool(getattr(allowed, part)) for part, is_there in parts.items()},
    )
    kinds = [name for name, act in ACTS.items() if NOISE[act].needs(chosen) and rng.random() < _chance(name)]
    return msgspec.structs.replace(chosen, noises=tuple(kinds) or ("change_manifest",))


def _chance(noise: str) -> float:
    return OFTEN.get(noise, NOISES if NOISE[ACTS[noise]].needs(NOTHING) else OF_ITS_OWN)


async def begin_small(world: World) -> None:
    """Most of its pods are there before anything goes wrong."""
    options = world.options
    world.trace.note(f"small: {options.pods} pods, {options.noise_s:g} s, {', '.join(options.scenarios or ())}")
    world.trace.note(f"noise: {' '.join(options.noises or ())}; {' '.join(options.misfortunes or ())}")
    world.desired |= {uid: world.maker.make(uid) for uid in world.uids if world.rng.random() < THERE}
    world.agent.state(world.desired)
    await world.step(world.rng.choice(WARM_UP_S))


def _some(rng: random.Random, names: Sequence[str], part: float) -> tuple[str, ...]:
    return tuple(name for name in names if rng.random() < part)
