"""Servers "in a pod" that run in the test: a socket from the dialer listens there, whoever has it.

So the image needs nothing but a static binary, and a server may be any Python that misbehaves as the test wants.

    with dialer_process() as dialer:                        # or the socket of an agent's dialer
        client = DialerClient(str(dialer.path))
        sock = await listen_in_pod(client, network, 8080)   # 0.0.0.0:8080 in the pod
        server = await asyncio.start_server(serve, sock=sock)

`own_network` makes something like a pod without Podman: a process with a user namespace and a network of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import socket
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ipc.link.shm.board import Board
from ipc.link.wire.boot import ChildContext, Role, WorkerSettings
from supervisor.processes import listeners
from tests.fakes.ownership import LABEL_KEY
from tests.support.podman_service import podman, wait_until
from workers import main
from workers.dialer.client import DialerClient
from workers.podhttp.pod_network import PodNetwork
from workers.proc import procfs

DEADLINE_S: Final = 20.0
HEARTBEAT_S: Final = 0.1
BACKLOG: Final = 128
IDLE_TIMEOUT_S: Final = 3600.0
"""Long enough for the API server to stay."""

_SIOCGIFFLAGS: Final = 0x8913
_SIOCSIFFLAGS: Final = 0x8914
_IFF_UP: Final = 1
_IFREQ: Final = struct.Struct("16sH14x")


class DialerProcess:
    """A dialer without an agent. ``path`` of its socket, which stays when the process is replaced."""

    def __init__(self, directory: Path, idle_timeout_s: float) -> None:
        self.path = directory / "dial.sock"
        self._idle_timeout_s = idle_timeout_s
        self.board = Board.create(worker_slots=1, pod_rows=1)
        self.incarnation = 0
        self.exit_code: int | None = None
        self._listening = listeners.listen(self.path, socket.SOCK_SEQPACKET)
        self.start()

    def start(self) -> None:
        """The next incarnation; the one before must have ended."""
        self.incarnation += 1
        self.exit_code = None
        self._link, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                self._link.close()
                code = main.main(self._context(theirs))
            except SystemExit as left:
                code = left.code if isinstance(left.code, int) else 1
            finally:
                os._exit(code)
        theirs.close()

    def kill(self, signum: int = signal.SIGKILL) -> None:
        os.kill(self.pid, signum)

    def wait_end(self) -> int:
        """Exit code of the child."""
        if self.exit_code is None:
            _, status = os.waitpid(self.pid, 0)
            self.exit_code = os.waitstatus_to_exitcode(status)
            self._link.close()
        return self.exit_code

    def has_ended(self) -> bool:
        """Without waiting."""
        return self.exit_code is not None or bool(os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT))

    def say_leave(self) -> None:
        """Leave as if its master were gone."""
        self._link.shutdown(socket.SHUT_RDWR)

    def open_files(self) -> dict[str, str]:
        """File descriptor -> what it is; one that is closed meanwhile is none."""
        found = {}
        for fd in Path("/proc", str(self.pid), "fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                found[fd.name] = os.readlink(fd)
        return found

    def close(self) -> None:
        if self.exit_code is None:
            self.kill()
            self.wait_end()
        self._listening.close()
        self.path.unlink(missing_ok=True)

    def _context(self, link: socket.socket) -> ChildContext:
        settings = WorkerSettings(
            instance="test",
            label_key=LABEL_KEY,
            node_name="test",
            podman_socket="/nonexistent",
            pod_logs_dir="/nonexistent",
            dialer_socket=str(self.path),
            heartbeat_period_s=HEARTBEAT_S,
            idle_timeout_s=self._idle_timeout_s,
        )
        return ChildContext(
            slot=0,
            incarnation=self.incarnation,
            role=Role.DIALER,
            settings=settings,
            link=link,
            listen=self._listening,
            board=self.board,
        )


@contextlib.contextmanager
def dialer_process(idle_timeout_s: float = IDLE_TIMEOUT_S) -> Iterator[DialerProcess]:
    """A running dialer; ends with the context, whatever has become of it. Its socket has a short path."""
    with tempfile.TemporaryDirectory(prefix="rl-", dir="/tmp") as directory:
        dialer = DialerProcess(Path(directory), idle_timeout_s)
        try:
            yield dialer
        finally:
            dialer.close()


@contextlib.contextmanager
def own_network() -> Iterator[subprocess.Popen[bytes]]:
    """A process with a user namespace, and in it a network, of its own. Its loopback device is down."""
    ours = os.readlink("/proc/self/ns/net")
    with subprocess.Popen(["unshare", "--user", "--map-root-user", "--net", "sleep", "1000"]) as pod:
        try:
            wait_until(lambda: pod.poll() is not None or _comm(pod.pid) == "sleep", DEADLINE_S)
            assert os.readlink(f"/proc/{pod.pid}/ns/net") != ours
            yield pod
        finally:
            pod.kill()


def network_of(pid: int, ip: str = "") -> PodNetwork:
    """The network in which that process is now."""
    return PodNetwork(infra_pid=pid, infra_start_ticks=procfs.start_ticks(pid), ip=ip)


def network_of_pod(pod: str) -> PodNetwork:
    """Network of a Podman pod, by its name or id, that has one of its own."""
    infra = podman("pod", "inspect", pod, "--format", "{{.InfraContainerID}}").strip()
    pid, _, ip = podman("inspect", infra, "--format", "{{.State.Pid}} {{.NetworkSettings.IPAddress}}").partition(" ")
    return network_of(int(pid), ip.strip())


async def bring_up_loopback(dialer: DialerClient, network: PodNetwork) -> None:
    """In an `own_network`: 127.0.0.1 can be reached from then on. Our user has made it, so it may."""
    with await dialer.socket(network, socket.AF_INET) as sock:
        request = _IFREQ.pack(b"lo", 0)
        _, flags = _IFREQ.unpack(fcntl.ioctl(sock, _SIOCGIFFLAGS, request))
        fcntl.ioctl(sock, _SIOCSIFFLAGS, _IFREQ.pack(b"lo", flags | _IFF_UP))


async def listen_in_pod(
    dialer: DialerClient, network: PodNetwork, port: int = 0, address: str = "0.0.0.0", backlog: int = BACKLOG
) -> socket.socket:
    """A listening socket in that network. Port 0 is one that is free: ``getsockname()``."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = await dialer.socket(network, family)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((address, port))
    sock.listen(backlog)
    return sock


async def connect_in_pod(dialer: DialerClient, network: PodNetwork, port: int, address: str = "127.0.0.1") -> bytes:
    """Connect there and return what is said until the end. Raises DialError, OSError."""
    sock = await dialer.socket(network, socket.AF_INET6 if ":" in address else socket.AF_INET)
    try:
        await asyncio.get_running_loop().sock_connect(sock, (address, port))
        reader, writer = await asyncio.open_connection(sock=sock)
    except BaseException:
        sock.close()
        raise
    try:
        return await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()


def _comm(pid: int) -> str:
    try:
        return Path("/proc", str(pid), "comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""
