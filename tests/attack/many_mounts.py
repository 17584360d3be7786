"""Attacks by the number of a pod's mounts."""

from __future__ import annotations

from typing import Final

from tests.attack.attack import Attack
from tests.attack.ground import Ground
from tests.e2e.manifests import STAY, Json, container, pod

SUB_PATHS: Final = 10_000
TRIED_S: Final = 120.0
GONE_S: Final = 90.0


def _many(count: int) -> Json:
    mounts = [{"name": "v", "mountPath": f"/m/{n}", "subPath": str(n)} for n in range(count)]
    return pod("sub-paths", container(script=STAY, volumeMounts=mounts), volumes=[{"name": "v", "emptyDir": {}}])


def _goes(ground: Ground) -> None:
    """Whether its container runs or not."""
    agent = ground.agent
    told = {"Started", "Failed", "FailedSync"}
    ground.until(lambda: bool(told & agent.reasons("sub-paths").keys()), "it was tried", TRIED_S)
    agent.remove("sub-paths")
    ground.until(lambda: "sub-paths" not in agent.pods(), "it goes", GONE_S)


ATTACKS: Final = (
    Attack(
        "many-sub-paths",
        f"A pod mounts {SUB_PATHS:,} sub-paths of its volume.",
        "take its time, or be told that it has too many; it is deleted",
        _goes,
        (_many(SUB_PATHS),),
        is_quick=False,
    ),
)
