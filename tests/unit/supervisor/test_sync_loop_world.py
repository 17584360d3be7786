"""Whatever happens in whatever order: the promises hold, and once it is quiet everything comes to what is wanted."""

from __future__ import annotations

import pytest

from tests.fakes.world import World

SEEDS = 300
NOISE_STEPS = 600


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_world_comes_to_rest_and_keeps_nothing(seed: int) -> None:
    world = World(seed)
    world.make_noise(NOISE_STEPS)
    world.settle()
    world.start_over()
