"""How large and how wild a simulation is, and what of it the seed decides."""

from __future__ import annotations

import enum
import random
from typing import Final

import msgspec

from tests.sim.frame import STEP_S

CLAIMS: Final = 0.3
PAUSES: Final = 0.3
"""Parts of the large seeds that choose these."""
LARGE_EVERY: Final = 6
"""Interval at which a seed of mixed sizes is large."""


class Size(enum.StrEnum):
    """How much happens in a seed."""

    SMALL = enum.auto()
    """Few pods, some kinds of noise, a scenario or two: what they are the seed decides (`tests.sim.swarm`)."""
    LARGE = enum.auto()
    """All that the options have."""
    MIXED = enum.auto()
    """Small ones, and one in `LARGE_EVERY` that is large."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How large and how wild. A small seed has at most what is asked for here."""

    size: Size = Size.LARGE
    pods: int = 5
    numbers: tuple[int, ...] = ()
    """Numbers of the pods, in place of the first ones: a pod's priority is that of its number."""
    noise_s: float = 90.0
    pace_s: float = STEP_S
    """Mean time from one act of the noise to the next."""
    probes: bool = True
    objects: bool = True
    """ConfigMaps beside pods."""
    resizes: bool = True
    """Resources, and edits that change them."""
    poison: bool = True
    """One pod more, in whose steps workers hang and die."""
    pressure: bool = True
    """Memory, processes and disks that run short, and a critical pod."""
    pauses: bool | None = False
    """Somebody pauses pods and resumes them; None: the seed chooses."""
    restarts: bool = True
    """Somebody has single containers restarted."""
    claims: bool | None = False
    """PersistentVolumes and claims, which come and go and which pods have; None: the seed chooses."""
    shutdown: bool = True
    """The node is drained, and the host goes down."""
    noises: tuple[str, ...] | None = None
    """Kinds of noise (`tests.sim.noise`), the rare ones oftener; None: all, as often as the table has it."""
    misfortunes: tuple[str, ...] | None = None
    """Misfortunes of Podman's calls and events (`tests.sim.runtime.Odds`), more often; None: all."""
    scenarios: tuple[str, ...] | None = None
    """Parts of the quiet time (`tests.sim.scenarios.table`); None: all, by their odds."""
    verbose: bool = False


def chosen_by(seed: int, options: Options) -> Options:
    """The options of a large seed with what is left to it."""
    rng = random.Random(seed + 8)
    claims, pauses = (rng.random() < part for part in (CLAIMS, PAUSES))
    return msgspec.structs.replace(
        options,
        size=Size.LARGE,
        claims=claims if options.claims is None else options.claims,
        pauses=pauses if options.pauses is None else options.pauses,
    )


def is_small(seed: int, size: Size) -> bool:
    return size is Size.SMALL or (size is Size.MIXED and seed % LARGE_EVERY != 0)
