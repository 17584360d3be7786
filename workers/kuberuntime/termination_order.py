"""Order in which the containers of a pod get their stop signals.

Mirrors terminationOrdering (pkg/kubelet/kuberuntime/kuberuntime_termination_order.go): regular containers first, and
all at once; each sidecar when they and the sidecar that started after it are down. The time that a container waits
for its turn is taken from its grace period.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from ipc.k8s.api.v1.pod import Pod, PodSpec
from ipc.k8s.kubecontainer.restart_policy import is_restartable_init


def prerequisites(spec: PodSpec) -> dict[str, tuple[str, ...]]:
    """Sidecar -> containers that have to be down before it is stopped. A container without an entry does not wait."""
    regular = tuple(container.name for container in spec.containers)
    sidecars = [container.name for container in spec.init_containers if is_restartable_init(container)]
    return {name: (*regular, *sidecars[index + 1 : index + 2]) for index, name in enumerate(sidecars)}


class TerminationOrder:
    """Containers that are down, and waiting for them (terminationOrdering). For one event loop."""

    def __init__(self, before: Mapping[str, tuple[str, ...]], running: Iterable[str]) -> None:
        """``before`` as of `prerequisites`; containers that are not among the ``running`` are not waited for."""
        self._down = {name: asyncio.Event() for name in running}
        self._before = before

    def must_wait(self, name: str) -> bool:
        """Whether that container has to wait for others."""
        return any(not down.is_set() for down in self._prerequisites(name))

    async def wait_turn(self, name: str, timeout_s: float) -> bool:
        """Wait until all that stop before that container are down (waitForTurn); False when the time is over before."""
        try:
            async with asyncio.timeout(timeout_s):
                for down in self._prerequisites(name):
                    await down.wait()
        except TimeoutError:
            return False
        return True

    def terminated(self, name: str) -> None:
        """Note that a container is down (containerTerminated)."""
        if name in self._down:
            self._down[name].set()

    def _prerequisites(self, name: str) -> list[asyncio.Event]:
        return [self._down[other] for other in self._before.get(name, ()) if other in self._down]


def termination_order(pod: Pod | None, running: Iterable[str]) -> TerminationOrder:
    """The order of these containers. Without a manifest sidecars are unknown, and no container waits."""
    return TerminationOrder(prerequisites(pod.spec) if pod is not None else {}, running)
