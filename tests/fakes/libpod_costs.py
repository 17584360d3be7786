"""How long Podman 4.3.1 takes for each libpod call, for `tests.fakes.libpod_server`.

Measured rootless (crun, overlay, slirp4netns) on two CPUs by `tests/bench/test_podman_calls.py`: raw calls, one at a
time, the least of 15 (reads) or 35 (mutations), because the machine had other work too and Podman waits for nobody else
in the quickest one. The lists' part per container is that of a quiet machine (122 ms for 200, docs/performance.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec


class Cost(msgspec.Struct, frozen=True):
    """How long a call takes, in seconds."""

    base_s: float
    per_container_s: float = 0.0
    """For every container that there is."""

    def of(self, containers: int) -> float:
        return self.base_s + self.per_container_s * containers


CALL_COSTS: Final[Mapping[str, Cost]] = {
    "list containers": Cost(0.0030, 0.00060),
    "list empty pods": Cost(0.0010, 0.00008),
    "list pods": Cost(0.0033),
    "inspect container": Cost(0.0022),
    "inspect pod": Cost(0.0031),
    "inspect image": Cost(0.0020),
    "create pod": Cost(0.0128),
    "create container": Cost(0.0203),
    "start container": Cost(0.0495),
    "kill container": Cost(0.0177),
    "remove container": Cost(0.0466),
    "remove pod": Cost(0.1142),
}
"""By the names that the server gives its calls."""
