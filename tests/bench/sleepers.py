"""The manifests of the pods that `raw_pods.make_pods` makes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from tests.e2e.manifests import container, pod

Json = dict[str, Any]

CONTAINER = "c0"


def sleepers(prefix: str, count: int, command: Sequence[str], image: str) -> dict[str, Json]:
    """By name: one container that sleeps, as process 1."""
    sleeper = container(CONTAINER, image=image, imagePullPolicy="IfNotPresent", command=list(command))
    names = (f"{prefix}-{number}" for number in range(count))
    return {name: pod(name, sleeper, terminationGracePeriodSeconds=1) for name in names}


def load() -> str:
    """How busy this machine is and was."""
    return f"{os.cpu_count()} CPUs, load {' '.join(f'{figure:.1f}' for figure in os.getloadavg())}"
