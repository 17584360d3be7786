"""A whole agent of real processes without Podman: the real master, zygote and API server; pod workers that only say
that they have synced, and a node worker that never sees anything."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import yaml

from ipc.host import clock
from ipc.link.messages.base import Ready, Shutdown
from ipc.link.messages.catalogue import LINKS
from ipc.link.messages.node_worker import NodeWorkerCommand, Relisted
from ipc.link.messages.pod_worker import PodWorkerCommand, SyncDone, SyncPod
from ipc.link.wire.boot import ChildContext, Role
from ipc.link.wire.framing import FrameDecoder, encode_frame
from supervisor.agent import run_agent
from supervisor.client.http import AgentClient
from supervisor.config.resolution.config_file import load_settings
from tests.support.podman_service import wait_until
from workers import main

DEADLINE_S: Final = 30.0
TURN_S: Final = 0.05
SYNC_S: Final = 0.1
"""How long a sync takes."""
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWNET: Final = 0x40000000
"""linux/sched.h."""
POISON_IMAGE: Final = "localhost/poison"
GOOD_IMAGE: Final = "localhost/good"

Json = dict[str, Any]
Life = Callable[[ChildContext, Path], int]


class Line(NamedTuple):
    """A pod worker's note of a sync."""

    what: str
    """begin, end, or died."""
    slot: int
    incarnation: int
    uid: str


class _Link:
    """A child's end, without an event loop; beats its heart at every turn."""

    def __init__(self, context: ChildContext, receive: Any) -> None:
        faulthandler.enable(file=context.crash_fd)  # instead of pytest's
        self._context = context
        self._frames = FrameDecoder()
        self._decoder = msgspec.msgpack.Decoder(receive)
        self._row = context.board.worker_writer(context.slot)
        self._row.begin(os.getpid(), context.incarnation)
        self.say(Ready(pid=os.getpid()))

    def say(self, message: msgspec.Struct) -> None:
        self._context.link.sendall(encode_frame(msgspec.msgpack.encode(message)))

    def turn(self) -> list[Any] | None:
        """Message that has come in a while; None at the end."""
        self._row.beat(clock.monotonic())
        if not select.select([self._context.link], [], [], TURN_S)[0]:
            return []
        data = self._context.link.recv(1 << 16)
        heard = [self._decoder.decode(frame) for frame in self._frames.feed(data)]
        return None if not data or any(isinstance(message, Shutdown) for message in heard) else heard


def sync_pods(context: ChildContext, journal: Path) -> int:
    """Answers every SyncPod a moment later. A poison pod kills it."""
    link, due = _Link(context, PodWorkerCommand), list[tuple[float, SyncPod]]()
    with journal.open("a", buffering=1) as notes:

        def note(what: str, sync: SyncPod) -> None:
            notes.write(f"{what} {context.slot} {context.incarnation} {sync.uid}\n")

        while (heard := link.turn()) is not None:
            now = clock.monotonic()
            for sync in (message for message in heard if isinstance(message, SyncPod)):
                note("begin", sync)
                due.append((now + SYNC_S, sync))
            for at, sync in due:
                if at <= now and _is_poison(sync):
                    note("died", sync)
                    os.kill(os.getpid(), signal.SIGKILL)
                if at <= now:
                    note("end", sync)
                    link.say(_done(sync))
            due = [(at, sync) for at, sync in due if at > now]
    return 0


def ignore_shutdown(context: ChildContext, journal: Path) -> int:
    """Goes on as if nothing had been said."""
    link = _Link(context, PodWorkerCommand)
    while True:
        link.turn()


def hang_in_python(context: ChildContext, journal: Path) -> int:
    """The real life of a worker, up to where its role begins: that blocks the loop for ever."""

    async def never_comes_back(context: ChildContext, channel: Any, clock: Any, row_writer: Any) -> int:
        await channel.send(Ready(pid=os.getpid()))
        block_the_loop_here()
        return 0

    roles = {role: main.on_link(LINKS[role], never_comes_back) for role in main.ROLES}
    main.ROLES = roles  # type: ignore[misc]  # of this forked process alone
    return main.main(context)


def block_the_loop_here() -> None:
    """Block the loop; this name is in the stack."""
    select.select([], [], [])


def _is_poison(sync: SyncPod) -> bool:
    return sync.pod is not None and sync.pod.spec.containers[0].image == POISON_IMAGE


def _done(sync: SyncPod) -> SyncDone:
    return SyncDone(uid=sync.uid, generation=sync.generation, incarnation=sync.incarnation, kind=sync.kind)


def _see_nothing(context: ChildContext) -> int:
    link = _Link(context, NodeWorkerCommand)
    while link.turn() is not None:
        link.say(Relisted(started_at=clock.monotonic(), changed=()))
    return 0


class Agent:
    """`run_agent` in a process of its own, with its configuration in a file."""

    def __init__(self, lifecycle: Callable[[ChildContext], Life], *, own_network: bool = False, **changes: Any) -> None:
        """``life`` chooses that of a pod worker. ``own_network``: in a network namespace with nothing in it, in which
        `in_network` has all rights. ``changes`` replace settings."""
        self._directory = tempfile.TemporaryDirectory(prefix="rl-", dir="/tmp")  # a socket's path must be short
        directory = Path(self._directory.name)
        self._log, self._journal, self._config = directory / "log", directory / "journal", directory / "rootlet.yaml"
        self._manifests = directory / "manifests"
        self._manifests.mkdir()
        self._journal.touch()
        self._settings: Json = {
            "apiVersion": "rootlet.dev/v1alpha1",
            "kind": "RootletConfiguration",
            "instanceName": "model",
            "nodeName": "model",
            "staticPodPath": str(self._manifests),
            "stateDir": str(directory / "state"),
            "memoryDir": str(directory / "memory"),
            "podLogsDir": str(directory / "logs"),
            "adminSocket": str(directory / "run" / "agent.sock"),
            "containerRuntimeEndpoint": f"unix://{directory}/nobody.sock",
            "syncFrequency": "1s",
            "fileCheckFrequency": "1s",
            "evictionHard": {},
            "workers": {"stopTimeout": "2s", **changes.pop("workers", {})},
            **changes,
        }
        self._configure()
        self.client = AgentClient(Path(self._settings["adminSocket"]))
        self.exit_code: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            if own_network:
                enter_own_network()
            sys.stderr = self._log.open("a", buffering=1)
            os.dup2(sys.stderr.fileno(), 2)
            settings = load_settings(self._config)
            os._exit(run_agent(settings, lambda: lambda context: self._live(context, lifecycle), self._config))

    def _live(self, context: ChildContext, lifecycle: Callable[[ChildContext], Life]) -> int:
        if context.role in (Role.API_SERVER, Role.DIALER):
            return main.main(context)
        return _see_nothing(context) if context.role is Role.NODE_WORKER else lifecycle(context)(context, self._journal)

    # --- what it wants ---

    def _configure(self) -> None:
        self._config.write_text(yaml.safe_dump(self._settings))

    def reload(self, **changes: Any) -> None:
        self._settings |= changes
        self._configure()
        os.kill(self.pid, signal.SIGHUP)

    def state(self, *names: str, image: str = GOOD_IMAGE, **fields: Any) -> None:
        for name in names:
            spec = {"containers": [{"name": "main", "image": image}], **fields}
            meta = {"name": name, "uid": name}
            new = self._manifests / f".{name}.new"
            new.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}))
            new.replace(self._manifests / f"{name}.yaml")

    # --- what it says ---

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def journal(self) -> list[Line]:
        """Whole lines only."""
        text = self._journal.read_text()
        words = (line.split() for line in text[: text.rfind("\n") + 1].splitlines())
        return [Line(what, int(slot), int(incarnation), uid) for what, slot, incarnation, uid in words]

    def workers(self) -> dict[str, Json]:
        """By name; empty while nobody listens."""
        return {worker["name"]: worker for worker in self.client.workers()} if self._is_listening() else {}

    def _is_listening(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(self._settings["adminSocket"]) == 0

    def events(self, reason: str) -> list[Json]:
        return [event for event in self.client.get("/api/v1/events")["items"] if event["reason"] == reason]

    def is_running(self, names: Iterable[str]) -> bool:
        """Whether these workers, and no others, run beside the node worker, the API server and the dialer."""
        states = {name: worker["state"] for name, worker in self.workers().items()}
        return states == dict.fromkeys(("node", "api", "dialer", *names), "Running")

    def in_network(self, *command: str) -> None:
        """A command in its network namespace. Raises CalledProcessError."""
        enter = ["nsenter", "--target", str(self.pid), "--user", "--net", "--preserve-credentials", "--"]
        subprocess.run([*enter, *command], check=True, capture_output=True, timeout=DEADLINE_S)

    # --- its life ---

    def until(self, condition: Callable[[], bool], what: str, deadline_s: float = DEADLINE_S) -> None:
        try:
            wait_until(condition, deadline_s, 0.02)
        except AssertionError as late:
            raise AssertionError(f"{what}: {late}\n{self.log}\n{self.workers()}") from late

    def has_ended(self) -> bool:
        if self.exit_code is None:
            self.exit_code = reaped(self.pid)
        return self.exit_code is not None

    def close(self) -> None:
        if not self.has_ended():
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        self._directory.cleanup()


def enter_own_network() -> None:
    """Leave this process's user and network namespaces for new ones, in which it is root. Raises OSError."""
    uid, gid = os.getuid(), os.getgid()
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUSER | CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        Path("/proc/self", name).write_text(text)


def by_incarnation(pod_table: Mapping[int, Life], otherwise: Life = sync_pods) -> Callable[[ChildContext], Life]:
    """The incarnations of every pod worker that live in another way."""
    return lambda context: pod_table.get(context.incarnation, otherwise)


def reaped(pid: int) -> int | None:
    """The exit code of a child that has ended, and None of one that has not; without waiting."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None
