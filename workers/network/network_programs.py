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
from workers.kubecontainer.runtime import NetworkPrograms, RuntimeCallError

SLIRP4NETNS: Final = "slirp4netns"
PASTA: Final = "pasta"
PASTA_SINCE: Final = 5
"""Major version of Podman from which on pods get pasta when nothing else is said."""
HELPER_DIRS: Final = (
    "/usr/local/libexec/podman",
    "/usr/local/lib/podman",
    "/usr/libexec/podman",
    "/usr/lib/podman",
)
"""Podman's own places for such programs (containers/common, pkg/config/config_linux.go, DefaultHelperBinariesDir)."""
ASK_PERIOD_S: Final = 30.0
"""How often Podman is asked while a program is missing: it takes 0.4 s over the answer."""


def wanted_program(mode: str, version: str, default: str = "") -> str:
    """The program that a pod's network takes in that mode of the configuration. A bridge needs Podman's default."""
    if mode in (SLIRP4NETNS, PASTA):
        return mode
    major = version.partition(".")[0]
    return default or (PASTA if major.isdecimal() and int(major) >= PASTA_SINCE else SLIRP4NETNS)


def network_problem(mode: str, version: str, programs: NetworkPrograms) -> str:
    """Why no pod can have a network of its own, in upstream's words (pkg/kubelet/container/runtime.go,
    RuntimeCondition.String); empty when it can."""
    wanted = wanted_program(mode, version, programs.default)
    if wanted in programs.found:
        return ""
    why = f"Podman finds no {wanted}, which makes the network of a pod"
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
        if self._find(wanted_program(self._mode, version)):
            self._problem, self._ask_at = "", 0.0
        elif (now := self._clock.now().mono) >= self._ask_at:
            self._ask_at = now + ASK_PERIOD_S
            try:
                self._problem = network_problem(self._mode, version, await self._ask())
            except RuntimeCallError:
                return self._problem  # no news: who has called goes on to notice that Podman does not answer
        return self._problem
