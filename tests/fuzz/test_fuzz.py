"""A hundred and fifty hostile manifests; `python -m tests.fuzz` runs as many as one likes."""

from __future__ import annotations

from tests.fuzz.run import run_seed

SEEDS = range(1, 151)
LEAST_ACCEPTED = 10
"""Fewer would say that nothing is tried any more."""


def test_hostile_manifests_are_refused_or_harmless() -> None:
    assert sum(run_seed(seed) for seed in SEEDS) >= LEAST_ACCEPTED
