"""Attacks by others on the same host: other users, and the same user's other containers."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from tests.attack.attack import Attack
from tests.attack.crowd import crowd
from tests.attack.ground import Ground
from tests.e2e.manifests import pod
from tests.support.podman_service import podman

MANY: Final = 300
AT_ONCE: Final = 4
LABELS: Final = {
    "io.kubernetes.pod.uid": "stranger",
    "io.kubernetes.pod.name": "stranger",
    "io.kubernetes.pod.namespace": "default",
    "io.kubernetes.container.name": "main",
    "io.kubernetes.container.preStopHandler": '{"exec":{"command":["touch","/hooked"]}}',
}
REACH: Final = """
import os, socket, sys
os.setresgid(1, 1, 1); os.setresuid(1, 1, 1)
for path in sys.argv[2:]:
    try:
        os.listdir(path) if os.path.isdir(path) else open(path).close()
        print("read", path)
    except OSError: pass
client = socket.socket(socket.AF_UNIX)
try:
    client.connect(sys.argv[1]); print("connected")
except OSError: pass
"""
"""As another user of the host: what it reached."""
HELPERS_S: Final = 60.0


def _labelled(ground: Ground) -> None:
    """Strangers with labels are told about and left alone."""
    ids = [
        ground.stranger({"rootlet.dev/instance": ground.agent.instance, **LABELS, "rootlet.dev/attempt": attempt})
        for attempt in ("9" * 5000, "9" * 23, "-1")
    ]
    ground.agent.run(pod("beside-strangers"))
    ground.until(lambda: all(id[:12] in ground.agent.log_text() for id in ids), "they are told about")
    states = {podman("inspect", "--format", "{{.State.Status}}", id).strip() for id in ids}
    assert states == {"running"}
    assert "stranger" not in ground.agent.pods()


def _other_user(ground: Ground) -> None:
    """One of the user's subordinate ids is another user for the kernel."""
    agent = ground.agent
    directories = [agent.state, agent.socket.parent, agent.memory, Path(agent.settings["podLogsDir"])]
    files = [
        path for path in agent.state.rglob("*") if path.is_file() and not path.is_relative_to(agent.state / "pods")
    ]
    arguments = [str(agent.socket), *map(str, (*directories, *files))]
    done = subprocess.run(
        ["podman", "unshare", sys.executable, "-c", REACH, *arguments],
        capture_output=True,
        text=True,
        timeout=HELPERS_S,
        check=True,
    )
    reached = [line for line in done.stdout.splitlines() if str(agent.socket.parent) not in line or "connected" in line]
    assert not reached, reached
    assert not stat.S_IMODE(os.stat(agent.socket).st_mode) & 0o077


def _inherited(ground: Ground) -> None:
    """None of the agent's processes, Podman's service among them, has it."""
    assert os.stat(f"/proc/{ground.agent.process.pid}/fd/7"), "the agent was given it"
    assert not ground.inherited_by()


def _many(ground: Ground) -> None:
    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(lambda _: ground.stranger({}, "--network=none"), range(MANY)))
    ground.agent.run(pod("beside-many"))
    ground.last(10)


ATTACKS: Final = (
    Attack(
        "stranger-labels",
        "The same user runs containers with the agent's labels: attempts of 5,000 digits, of 23, of -1; a hook.",
        "be left alone: an event tells of it",
        _labelled,
        is_quick=False,
    ),
    Attack(
        "other-user",
        "Another user of the host opens the agent's sockets, and reads its directories and files.",
        "be refused by the kernel",
        _other_user,
    ),
    Attack(
        "inherited-descriptor",
        "Whoever starts the agent has left a file open for it.",
        "be had by the master alone",
        _inherited,
    ),
    Attack(
        "many-strangers",
        f"The same user runs {MANY} other containers.",
        "be left alone",
        _many,
        is_quick=False,
    ),
    Attack(
        "crowd",
        "100,000 containers of others are on the same Podman, which is simulated: a list takes 50 s.",
        "be left alone",
        crowd,
        is_quick=False,
    ),
)
