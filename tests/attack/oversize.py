"""Attacks by what makes Podman's answers large: what cannot be read can be ended all the same."""

from __future__ import annotations

from typing import Final

from tests.attack.attack import Attack
from tests.attack.ground import Ground
from tests.e2e.manifests import STAY, Json, container, pod

ESCAPED: Final = {"name": "BIG", "value": "<" * 100_000}
"""Podman writes six bytes for each of these, and a command twice into the answer to an inspect."""
WORDS: Final = 16
"""Somewhat less than a process may have on its command line."""

PODMANS_BYTES: Final = 512 << 20


def _large(script: str) -> Json:
    return container(command=["sh", "-c", script, "sh", *["$(BIG)"] * WORDS], env=[ESCAPED])


def _goes(ground: Ground) -> None:
    agent = ground.agent
    agent.until_ready(["oversize"])
    agent.remove("oversize")
    agent.until_gone(["oversize"])


def _restarts(ground: Ground) -> None:
    """The end of its container is seen, with its exit code."""
    ground.until(lambda: _last_exit_code(ground) == 3, "its end is seen, and it is started again")


def _last_exit_code(ground: Ground) -> int | None:
    known = ground.agent.pods().get("oversize-ends", {"status": {}})
    statuses = known["status"].get("containerStatuses", [])
    states = [status.get("lastState", {}).get("terminated", {}) for status in statuses]
    return next((state["exitCode"] for state in states if state), None)


ATTACKS: Final = (
    Attack(
        "oversize-inspect",
        "A container's command is as long as can be: Podman's answer about the container is larger than is read.",
        "be known by the list alone; it is observed and deleted",
        _goes,
        (pod("oversize", _large(STAY)),),
        PODMANS_BYTES,
    ),
    Attack(
        "oversize-inspect-ends",
        "Such a container ends, again and again.",
        "be restarted",
        _restarts,
        (pod("oversize-ends", _large("sleep 1; exit 3")),),
        PODMANS_BYTES,
        is_quick=False,
    ),
)
