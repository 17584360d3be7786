"""How large and how wild a simulation is."""

from __future__ import annotations

import random
from typing import Final

import msgspec

CLAIMS: Final = 0.3
PAUSES: Final = 0.3
"""Parts of the seeds that choose these."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How large and how wild."""

    pods: int = 5
    noise_s: float = 90.0
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
    verbose: bool = False


def chosen_by(seed: int, options: Options) -> Options:
    """The options with what is left to the seed."""
    rng = random.Random(seed + 8)
    claims, pauses = (rng.random() < part for part in (CLAIMS, PAUSES))
    return msgspec.structs.replace(
        options,
        claims=claims if options.claims is None else options.claims,
        pauses=pauses if options.pauses is None else options.pauses,
    )
