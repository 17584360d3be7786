"""Containers that tell what becomes of them, and what they have told, in the order in which it happened."""

from __future__ import annotations

import re
from typing import Final

from tests.e2e.agent import Agent
from tests.e2e.manifests import STAY
from tests.support.podman_service import podman

GATE: Final = "trap 'exit 0' TERM; until [ -e /go ]; do sleep 0.1; done"
"""A script's step that ends when the test says so."""
TELLS_ITS_END: Final = f"echo up; {STAY.replace('exit 0', 'echo asked; sleep 0.3; echo gone; exit 0')}"
"""Runs until it is asked to stop; then it takes a moment."""

_LINE: Final = re.compile(r"\[pod/[^/]+/(?P<container>[^]]+)\] (?P<time>\S+) (?P<words>.*)")


def let_through(agent: Agent, pod: str, container: str) -> None:
    """Open the gate of a container that runs. Through the kernel: it may be gone before `podman exec` has an answer."""
    podman("unshare", "touch", f"/proc/{agent.eye.container(pod, container).pid}/root/go")


def told_by(agent: Agent, pod: str) -> list[str]:
    """``container: words`` of all lines of all present containers of a pod, by the time at which they were written."""
    return in_order(agent.cli(*log_words(pod)).out)


def log_words(pod: str) -> tuple[str, ...]:
    """The command whose output ``in_order`` reads."""
    return ("logs", pod, "--all-containers", "--prefix", "--timestamps")


def in_order(logs: str) -> list[str]:
    """``container: words`` of all lines of logs that somebody has read, by the time at which they were written."""
    found = [match for line in logs.splitlines() if (match := _LINE.fullmatch(line))]
    return [f"{m['container']}: {m['words']}" for m in sorted(found, key=lambda match: match["time"])]
