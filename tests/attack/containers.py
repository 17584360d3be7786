"""Attacks by what runs in containers: on their monitors, cgroups, networks, logs and termination messages."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Final

import psutil

from tests.attack.attack import Attack, all_of, ends, lasts, ready
from tests.attack.ground import Ground
from tests.e2e.agent import restart_count
from tests.e2e.manifests import STAY, Json, container, pod

TRAP: Final = "trap '' TERM INT HUP"
PRIVILEGED: Final[Json] = {"securityContext": {"privileged": True}}
BREEDS: Final = f"{TRAP}; breed() {{ while true; do sleep 0.2; setsid sh -c '{TRAP}; sleep 600' & done; }}; "
"""Processes in sessions of their own that ignore every polite signal."""
CGROUP: Final = (
    "for key in pids.max=1 memory.max=4096 cpu.max=1000 cgroup.freeze=1 cgroup.kill=1; do "
    "for file in /sys/fs/cgroup/${key%%=*} /sys/fs/cgroup/*/${key%%=*} /sys/fs/cgroup/*/*/${key%%=*}; do "
    f"echo ${{key#*=}} > $file; done; done; {STAY}"
)
"""Every knob of its own cgroup, and of those below it."""
FLOOD: Final = f"head -c 60000000 /dev/zero; busybox yes '' | head -c 2000000; echo flooded; {STAY}"
HELD_GONE_S: Final = 40.0


def _kills_its_monitor(ground: Ground) -> None:
    agent = ground.agent
    ground.until(lambda: "killed 0" in agent.output("kills-monitor", "watcher"), "its monitor is dead")
    restarts = restart_count(agent.pods()["kills-monitor"], "main")
    ground.last(3)
    assert restart_count(agent.pods()["kills-monitor"], "main") == restarts, "its container lives on"


def _holds_a_network(ground: Ground) -> None:
    """A process of the test's, of the same user as the pod's, has the pod's network open while that goes."""
    agent = ground.agent
    agent.until_ready(["held"])
    infra = next(seen for (name, _), seen in agent.eye.running("held").items())
    ground.run("sh", "-c", f"exec 9</proc/{infra.pid}/ns/net; exec sleep 600")
    ground.last(0.5)
    agent.remove("held")
    ground.until(lambda: "held" not in agent.pods(), "it goes all the same", HELD_GONE_S)
    agent.run(pod("held"))


def _leaves_processes(ground: Ground) -> None:
    agent = ground.agent
    agent.until_ready(["breeds"])
    ground.last(3)
    agent.remove("breeds")
    ground.until(lambda: "breeds" not in agent.pods(), "it goes, and so does what it has bred", HELD_GONE_S)
    left = [p.pid for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", "6173"]]
    assert not left, f"left behind: {left}"


def _stops_its_monitor(ground: Ground) -> None:
    """A monitor that does not run notes nothing: the pod's end is seen by its process."""
    agent = ground.agent
    agent.until_ready(["stopped-monitor"])
    main = agent.eye.container("stopped-monitor", "main")
    monitor = psutil.Process(main.pid).parent()
    assert monitor is not None
    os.kill(monitor.pid, signal.SIGSTOP)
    try:
        os.kill(main.pid, signal.SIGKILL)
        ground.until(lambda: restart_count(agent.pods()["stopped-monitor"]) == 1, "it is restarted")
    finally:
        if monitor.is_running():
            os.kill(monitor.pid, signal.SIGCONT)


def _bounded_log(ground: Ground) -> None:
    """People are shown the end of it at once."""
    agent = ground.agent
    ground.until(lambda: "flooded" in agent.cli("logs", "floods", "--tail", "1").out, "the end of it is shown")


def _rotated_log(ground: Ground) -> None:
    [directory] = Path(ground.agent.settings["podLogsDir"]).glob("*_floods_*")

    def has_ten_mebibytes_at_most() -> bool:
        return (directory / "main" / "0.log").stat().st_size < 10 << 20

    ground.until(has_ten_mebibytes_at_most, "what is too large is rotated")
    assert len(list((directory / "main").glob("0.log.2*-*[0-9]*"))) <= 5


ATTACKS: Final = (
    Attack(
        "kills-its-monitor",
        "A container that sees the host's processes kills the conmon of a container of its pod.",
        "lose its log; its container runs on",
        _kills_its_monitor,
        (
            pod(
                "kills-monitor",
                container(
                    script=f"echo $$$$ > /shared/pid; {STAY}", volumeMounts=[{"name": "s", "mountPath": "/shared"}]
                ),
                container(
                    "watcher",
                    "until test -s /shared/pid; do sleep 0.1; done; read pid < /shared/pid; "
                    "while read key value; do test $key = PPid: && monitor=$value; done < /proc/$pid/status; "
                    f"kill -9 $monitor; echo killed $?; {STAY}",
                    volumeMounts=[{"name": "s", "mountPath": "/shared"}],
                ),
                hostPID=True,
                volumes=[{"name": "s", "emptyDir": {}}],
            ),
        ),
        is_quick=False,
    ),
    Attack(
        "stops-a-monitor",
        "A container's conmon is stopped, and the container ends then.",
        "be restarted",
        _stops_its_monitor,
        (pod("stopped-monitor"),),
        is_quick=False,
    ),
    Attack(
        "writes-to-its-cgroup",
        "A privileged container freezes, kills and limits whatever cgroup it can write to.",
        "be frozen or killed itself; it is deleted all the same",
        lasts(3),
        (
            pod(
                "cgroup",
                container(
                    script=CGROUP,
                    **PRIVILEGED,
                ),
                terminationGracePeriodSeconds=1,
            ),
        ),
        is_quick=False,
    ),
    Attack(
        "holds-its-network",
        "A process outside has the network namespace of a pod open while the pod is deleted and made again.",
        "be deleted and made again",
        _holds_a_network,
        (pod("held"),),
        is_quick=False,
    ),
    Attack(
        "leaves-processes",
        "A container in the host's PID namespace breeds processes that leave its session and ignore signals.",
        "be deleted with all of them",
        _leaves_processes,
        (
            pod(
                "breeds",
                container(script=f"{BREEDS.replace('600', '6173')} breed & {TRAP}; while true; do sleep 1; done"),
                hostPID=True,
                terminationGracePeriodSeconds=1,
            ),
        ),
        is_quick=False,
    ),
    Attack(
        "termination-messages",
        "Termination messages are large, a terminal's commands, no text, and 10 GiB of nothing.",
        "end, with a message of 4 KiB at most",
        all_of(ends("message-large", "xxx"), ends("message-bytes"), ends("message-sparse")),
        (
            pod("message-large", container(script="busybox yes xxx | head -c 1000000 > /dev/termination-log; exit 1")),
            pod("message-bytes", container(script="head -c 9000 /bin/busybox > /dev/termination-log; exit 1")),
            pod("message-sparse", container(script="busybox truncate -s 10G /dev/termination-log; exit 1")),
        ),
    ),
    Attack(
        "log-flood",
        "A container writes 60 MB without a line's end, and two million empty lines.",
        "be slow; the end of its log is shown, and the log is rotated",
        all_of(ready("floods"), _bounded_log, _rotated_log),
        (
            pod(
                "floods",
                container(script=FLOOD),
            ),
        ),
        is_quick=False,
    ),
    Attack(
        "ends-at-once",
        "Thirty containers end at once, with every exit code, and are restarted.",
        "be restarted with back-off",
        lasts(20),
        tuple(
            pod(f"ends-{n}", *(container(f"c{number}", f"exit {n * 10 + number}") for number in range(10)))
            for n in range(3)
        ),
        is_quick=False,
    ),
)
