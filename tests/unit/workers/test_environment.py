"""The environment of a container."""

from __future__ import annotations

from ipc.api import EnvVar
from tests.unit.workers.pods import container, pod
from workers.environment import EnvironmentSources, make_environment


def test_of_two_values_of_a_name_the_last_one_counts() -> None:
    env = (EnvVar(name="A", value="1"), EnvVar(name="B", value="2"), EnvVar(name="A", value="3"))
    of = pod(container("main", env=env))
    assert make_environment(of.spec.containers[0], EnvironmentSources(pod=of)) == {"A": "3", "B": "2"}
