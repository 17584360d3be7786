"""Where attacks take place: an agent on real Podman, a canary that is probed each second, and a registry that lies."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import psutil

from supervisor.config.settings import PodmanSettings
from supervisor.processes.podman_service import write_conf
from tests.attack.hostile_registry import HostileRegistry
from tests.e2e.agent import Agent, Json, free_ports
from tests.e2e.manifests import STAY, container, pod
from tests.e2e.pod_servers import PodServers
from tests.e2e.status_observer import batched
from tests.support.podman_service import COMMAND_DEADLINE_S, IMAGE, podman, wait_until
from tests.support.registry import registries_conf
from tests.support.servers.local_servers import Handler

CANARY: Final = "canary"
UNTIL_S: Final = 60.0
REMOVED_AT_ONCE: Final = 50
NODE: Final = "e2e"
BLOCK: Final = signal.SIGRTMIN + 4
"""A signal at which each of the agent's own processes hangs, in the kernel."""
HANGING: Final = f"""
import os, signal
signal.signal({int(BLOCK)}, lambda *_: os.read(os.pipe()[0], 1))
"""
INHERITED: Final = "inherited-by-mistake"
"""A file that is open in the agent's parent as it starts it."""


class Ground:
    """The agent with its canary; helps attacks to do what they do, and clears up after them."""

    def __init__(self, instance: str, directory: Path) -> None:
        self.directory = directory
        """For what attacks need: on a disk, not the agent's."""
        self._log = directory / "canary"
        self._log.mkdir()
        self._inherited = directory / INHERITED
        self._inherited.touch()
        self._conf = write_conf(PodmanSettings(), directory, os.environ)
        self.registry = HostileRegistry()
        self.port, self.read_only_port = free_ports(2)
        """Ports of the kubelet's server; a token that nobody knows is let in."""
        tokens = directory / "tokens"
        tokens.write_text(f"{secrets.token_hex()},admin,1\n")
        server = {
            "address": "127.0.0.1",
            "port": self.port,
            "readOnlyPort": self.read_only_port,
            "authentication": {"tokenFile": str(tokens)},
        }
        fast = {"syncFrequency": "1s", "imagePullTimeout": "8s", "serializeImagePulls": False}
        self.agent = Agent(instance, {**fast, "server": server})
        self.agent.program = ("sh", "-c", f'exec 7<{self._inherited}; exec rootlet "$@"', "rootlet")
        self.agent.environment |= registries_conf(directory, self.registry.address)
        (directory / "sitecustomize.py").write_text(HANGING)
        self.agent.environment["PYTHONPATH"] = str(directory)
        self._ids: list[str] = []
        self._files: list[bytes] = []
        self._servers: PodServers | None = None
        self._processes: list[subprocess.Popen[Any]] = []

    def start(self) -> None:
        self.agent.start()
        self.agent.run(self._canary())
        wait_until(lambda: len(self.probed()) > 1, UNTIL_S)

    def close(self) -> None:
        with contextlib.ExitStack() as stack:
            stack.callback(self.registry.close)
            stack.callback(self.agent.close)
            stack.callback(self._forget)

    # --- the canary ---

    def _canary(self) -> Json:
        """Writes down each second when it was probed, where the test can read it without the agent."""
        probe = {
            "exec": {"command": ["sh", "-c", "read up idle < /proc/uptime; echo $up >> /canary/probed"]},
            "periodSeconds": 1,
            "timeoutSeconds": 5,
        }
        mounts = [{"name": "log", "mountPath": "/canary"}]
        volume = {"name": "log", "hostPath": {"path": str(self._log)}}
        return pod(CANARY, container(readinessProbe=probe, volumeMounts=mounts), volumes=[volume])

    def probed(self) -> list[float]:
        """When the canary was probed, in seconds since the host has booted."""
        try:
            return [float(line) for line in (self._log / "probed").read_text().split()]
        except FileNotFoundError:
            return []

    def longest_gap_s(self, since: float) -> float:
        """Between two probes of the canary, of which the later came after ``since``."""
        times = self.probed()
        first = next((index for index, at in enumerate(times) if at > since), len(times))
        after = times[max(0, first - 1) :]
        return max(later - before for before, later in pairwise(after)) if len(after) > 1 else uptime_s() - since

    # --- what attacks do ---

    def until(self, condition: Callable[[], bool], what: str, deadline_s: float = UNTIL_S) -> None:
        self.agent.until(condition, what, deadline_s)

    def last(self, seconds: float) -> None:
        """An attack that has no end goes on for so long."""
        time.sleep(seconds)

    def write(self, *manifests: Mapping[str, Any]) -> None:
        self.agent.write(*manifests)

    def is_refused(self, name: str, words: str) -> bool:
        told = (event["message"] for event in self.agent.events())
        return any(f"{name}.yaml" in message and words in message for message in told)

    def serve(self, pod: str, port: int, handler: Handler) -> None:
        """In that pod, which must run, until the attack is over."""
        if self._servers is None:
            self._servers = PodServers(self.agent)
        self._servers.serve(pod, port, handler)

    def put(self, directory: Path, name: bytes, content: bytes) -> bytes:
        """A file; it goes when the attack is over."""
        path = os.path.join(os.fsencode(directory), name)
        with open(path, "wb") as file:
            file.write(content)
        self._files.append(path)
        return path

    def link(self, name: str, target: str) -> None:
        """A symbolic link in the manifest directory."""
        path = self.agent.manifests / name
        path.symlink_to(target)
        self._files.append(os.fsencode(path))

    def fifo(self, name: str) -> None:
        path = self.agent.manifests / name
        os.mkfifo(path)
        self._files.append(os.fsencode(path))

    def stranger(self, labels: Mapping[str, str], *options: str, image: str = IMAGE) -> str:
        """A container that somebody else runs; its id."""
        words = [f"--label={key}={value}" for key, value in labels.items()]
        id = self._podman("create", *options, *words, image, "sh", "-c", STAY)
        self._ids.append(id)
        self.agent.eye.strangers.add(id)
        self._podman("start", id)
        return id

    def _podman(self, *words: str) -> str:
        """Without a keyring for each container: a user has 200 of them."""
        done = subprocess.run(
            ["podman", *words],
            env={**os.environ, "CONTAINERS_CONF": str(self._conf)},
            capture_output=True,
            text=True,
            timeout=COMMAND_DEADLINE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def run(self, *command: str, **how: Any) -> subprocess.Popen[Any]:
        """A process that ends with the attack at the latest."""
        process = subprocess.Popen(command, **how)
        self._processes.append(process)
        return process

    def inherited_by(self) -> list[str]:
        """Names of the agent's processes, other than its master, that have what its parent left open."""
        others = (p for p in self.agent.marked_processes() if p.pid != self.agent.process.pid)
        return [process.name() for process in others if _has_open(process, str(self._inherited))]

    # --- after an attack ---

    def clear(self) -> None:
        """Everything but the canary goes: manifests, what was left of it in Podman, files, processes, servers."""
        self._forget()
        for path in self.agent.manifests.iterdir():
            if path.name != f"{CANARY}.yaml":
                path.unlink()
        self.until(lambda: set(self.agent.pods()) <= {CANARY}, "the attack's pods are gone", 120.0)

    def _forget(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
        self._processes.clear()
        if self._servers is not None:
            self._servers.close()
            self._servers = None
        for path in self._files:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        self._files.clear()
        for some in batched(self._ids, REMOVED_AT_ONCE):
            podman("rm", "--force", "--ignore", "--time", "0", *some)
        self.agent.eye.strangers.difference_update(self._ids)
        self._ids.clear()

    # --- its size ---

    def pss_bytes(self) -> dict[str, int]:
        """By the name of each of the agent's processes; those whose memory may not be read are left out."""
        found = {}
        for name, pid in self.agent.processes().items():
            with contextlib.suppress(psutil.AccessDenied, psutil.NoSuchProcess):
                found[name] = int(psutil.Process(pid).memory_full_info().pss)
        return found


def uptime_s() -> float:
    """Seconds since the host has booted: the clock by which the canary writes."""
    return float(Path("/proc/uptime").read_text().split()[0])


@contextlib.contextmanager
def ground(instance: str) -> Iterator[Ground]:
    """With a running agent; nothing of it stays."""
    with tempfile.TemporaryDirectory(prefix="rl-attack-", dir="/tmp") as directory:
        made = Ground(instance, Path(directory))
        try:
            made.start()
            yield made
        finally:
            made.close()


def _has_open(process: psutil.Process, path: str) -> bool:
    try:
        return path in (file.path for file in process.open_files())
    except (psutil.AccessDenied, psutil.NoSuchProcess):
        return False
