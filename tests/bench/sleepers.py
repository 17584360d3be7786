"""The manifests of the pods that `raw_pods.make_pods` makes, and figures about many samples."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

from tests.e2e.manifests import container, pod

Json = dict[str, Any]

CONTAINER = "c0"


def sleepers(prefix: str, count: int) -> dict[str, Json]:
    """By name: one container that sleeps, as process 1."""
    sleeper = container(CONTAINER, imagePullPolicy="IfNotPresent", command=["sleep", "1000000"])
    names = (f"{prefix}-{number}" for number in range(count))
    return {name: pod(name, sleeper, terminationGracePeriodSeconds=1) for name in names}


def quantile(samples: Sequence[float], part: float) -> float:
    """The smallest sample that so large a part of them does not exceed."""
    return sorted(samples)[max(0, math.ceil(part * len(samples)) - 1)]


def load() -> str:
    """How busy this machine is and was."""
    return f"{os.cpu_count()} CPUs, load {' '.join(f'{figure:.1f}' for figure in os.getloadavg())}"
