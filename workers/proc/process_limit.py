"""Processes that containers leave to the agent, where the user has a limit of them (RLIMIT_NPROC).

The limit is each process's own, and what is counted is all that a user id has in the containers' user namespace. One
container that makes as many as it can would leave none to Podman, its monitors, the OCI runtime and probes: so
containers have a lower limit, and commands in them one between that and the agent's. Podman by itself gives them the
highest that there is.
"""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any, Final

from workers.kubecontainer.runtime import SpecDict
from workers.proc.rlimit_tag import PosixRlimit

LIMIT: Final = "RLIMIT_NPROC"
"""The limit's name in the OCI runtime specification."""
KEPT_FROM_CONTAINERS: Final = 4
"""The part of all processes that containers leave, as a divisor. The kernel does not count for them what the user has
outside of the namespace: a desktop's processes have to fit into it, too."""
KEPT_FROM_COMMANDS: Final = 8


_PID_MAX: Final = Path("/proc/sys/kernel/pid_max")
_PODMANS: Final = 1 << 20
"""The most that Podman gives itself and containers (libpod/define/config.go, RLimitDefaultValue)."""


def own_limit() -> int:
    """How many processes the user may have in all, by the limit of this process and that of the host. Podman 4.3 lowers
    its own limit to the host's, and a container can have none above Podman's. Raises OSError."""
    soft = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    stated = () if soft == resource.RLIM_INFINITY else (soft,)
    return min(_PODMANS, int(_PID_MAX.read_text()), *stated)


def left_to_containers(own: int) -> int:
    """Limit of a container, where the agent's is ``own``."""
    return own - own // KEPT_FROM_CONTAINERS


def left_to_commands(own: int) -> int:
    """Limit of a command in a container that has all processes which it may have."""
    return own - own // KEPT_FROM_COMMANDS


def with_process_limit(spec: SpecDict, own: int | None) -> SpecDict:
    """The body of a new container with `left_to_containers`."""
    if own is None:
        return spec
    most = left_to_containers(own)
    limits: list[Any] = list(spec.get("r_limits", ()))
    limits.append({"type": LIMIT.removeprefix("RLIMIT_").lower(), "soft": most, "hard": most})
    return {**spec, "r_limits": limits}


def of_a_command(container: PosixRlimit, own: int | None) -> PosixRlimit:
    """Limit of a command, given its container's. One that is not `left_to_containers` is somebody's choice."""
    if own is None or container["soft"] != left_to_containers(own):
        return container
    most = left_to_commands(own)
    return {"type": LIMIT, "soft": most, "hard": most}
