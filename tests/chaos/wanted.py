"""The manifests of the storm: what is wanted at every moment, and how a process tells whose it is."""

from __future__ import annotations

from typing import Any, Final

from tests.chaos.plan import parts_of
from tests.e2e.agent import Agent
from tests.e2e.manifests import container, pod

Json = dict[str, Any]

WHO: Final = "ROOTLET_CHAOS_WHO"
"""Environment variable of every container: ``instance/pod/container/edition``."""


def who(instance: str, name: str, part: str, edition: int) -> str:
    return f"{instance}/{name}/{part}/{edition}"


class Wanted:
    """Writes the manifest directory, and remembers what it has to mean."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.editions: dict[str, int] = {}
        """Number of changes of the main container of each pod that is wanted."""
        self._labels: dict[str, dict[str, str]] = {}

    def add(self, *names: str) -> None:
        for name in names:
            self.editions[name] = 0
            self._write(name)

    def edit(self, name: str) -> None:
        """Another main container."""
        self.editions[name] += 1
        self._write(name)

    def relabel(self, name: str) -> None:
        """Nothing that a container knows of."""
        labels = self._labels.get(name, {})
        self._labels[name] = {"turn": str(int(labels.get("turn", 0)) + 1)}
        self._write(name)

    def delete(self, name: str) -> None:
        del self.editions[name]
        self._agent.remove(name)

    def spoil(self, name: str) -> None:
        """Replace its file by what is no manifest; what is wanted stays."""
        self._agent.write_file(f"{name}.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: [\n")

    def mend(self, name: str) -> None:
        """Unless the pod is not wanted any more."""
        if name in self.editions:
            self._write(name)

    def containers(self) -> dict[tuple[str, str], int]:
        """Containers that have to run in the end: editions by pod and container."""
        return {
            (name, part): edition if part == "main" else 0
            for name, edition in self.editions.items()
            for part in parts_of(name)
        }

    def _write(self, name: str) -> None:
        regular, sidecars = [], []
        for part in parts_of(name):
            edition = self.editions[name] if part == "main" else 0
            env = [{"name": WHO, "value": who(self._agent.instance, name, part, edition)}]
            if part == "sidecar":
                sidecars.append(container(part, env=env, restartPolicy="Always"))
            else:
                regular.append(container(part, env=env))
        self._agent.write(
            pod(
                name,
                *regular,
                labels=self._labels.get(name),
                **({"initContainers": sidecars} if sidecars else {}),
                terminationGracePeriodSeconds=2,
            )
        )
