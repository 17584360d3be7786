"""Whether this host has the program that gives pods their network: slirp4netns or pasta.

The kubelet asks its runtime for the condition NetworkReady (pkg/kubelet/kubelet.go, updateRuntimeUp). Podman has none:
a sandbox whose program is missing fails when it starts. So the program is looked for, and where it is not in the usual
places, Podman is asked, whose PATH and configuration may be others.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Awaitable, Callable
from typing import Final

from ipc.host.clock import Clock
from ipc.k8s.network.network_programs import HELPER_DIRS, program_problem, wanted_program
from workers.kubecontainer.runtime import NetworkPrograms, RuntimeCallError

ASK_PERIOD_S: Final = 30.0
"""How often Podman is asked while a program is missing: it takes 0.4 s over the answer."""


def network_problem(mode: str, version: str, programs: NetworkPrograms) -> str:
    """Why no pod can have a network of its own, in upstream's words (pkg/kubelet/container/runtime.go,
    RuntimeCondition.String); empty when it can."""
    wanted = wanted_program(mode, version, programs.default)
    why = program_problem(wanted, version)
    if not why and wanted not in programs.found:
        why = f"Podman finds no {wanted}, which makes the network of a pod"
    if not why:
        return ""
    return f"container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:{why}"


def find_program(name: str) -> str:
    """Path of that program in PATH or in Podman's own places; empty when none of them has it."""
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *HELPER_DIRS))
    return shutil.which(name, path=path) or ""


class NetworkCheck:
    """Owns what was found last."""

    def __init__(
        self,
        mode: str,
        clock: Clock,
        ask: Callable[[], Awaitable[NetworkPrograms]],
        find: Callable[[str], str] = find_program,
    ) -> None:
        self._mode = mode
        self._clock = clock
        self._ask = ask
        self._find = find
        self._problem = ""
        self._ask_at = 0.0

    async def problem(self, version: str) -> str:
        """Why no pod can have a network of its own with that version of Podman's API; empty when it can."""
        wanted = wanted_program(self._mode, version)
        if not program_problem(wanted, version) and self._find(wanted):
            self._problem, self._ask_at = "", 0.0
        elif (now := self._clock.now().mono) >= self._ask_at:
            self._ask_at = now + ASK_PERIOD_S
            try:
                self._problem = network_problem(self._mode, version, await self._ask())
            except RuntimeCallError:
                return self._problem  # no news: who has called goes on to notice that Podman does not answer
        return self._problem
