"""A storm of every fault that we can make, over an agent on real Podman: `tests.chaos` says what survives."""

from __future__ import annotations

import pytest

from tests.chaos.plan import make_plan
from tests.chaos.run import run
from tests.support.podman_service import PodmanService

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

SEED = 20261120
MINUTE_S = 60.0


def say(line: str) -> None:
    """At once: whoever waits for minutes wants to see it go on."""
    print(line, flush=True)


@pytest.mark.parametrize(
    ("pods", "duration_s"),
    [
        pytest.param(60, 4 * MINUTE_S, marks=[pytest.mark.slow, pytest.mark.timeout(1500)], id="60-pods"),
    ],
)
def test_what_a_storm_leaves(podman_service: PodmanService, pods: int, duration_s: float) -> None:
    outcome = run(make_plan(SEED, duration_s, pods), podman_service.new_instance(), say)
    assert outcome.is_good, f"\n{outcome}"
