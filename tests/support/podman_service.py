"""A real ``podman system service`` for tests: a child of the test session on a socket of its own.

It shares the user's Podman storage. What a test makes carries a label with an instance name that no other run has, and
only that is ever removed: at the end, also after Ctrl-C, and at the next start what a killed run has left.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import io
import itertools
import json
import os
import shutil
import signal
import subprocess
import tarfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from socket import AF_UNIX
from socket import socket as Socket
from time import sleep
from typing import Any, Final

import pytest

from ipc.host.clock import monotonic, wall
from supervisor.config.settings import PodmanSettings
from supervisor.processes.pause_process import revive
from supervisor.processes.podman_service import write_conf
from tests.support import podman_lists
from tests.support.podman_lists import Kind
from workers.kubecontainer.labels import INSTANCE

BY_DEFAULT: Final = PodmanSettings()
HOST_OF_PASTA: Final = "169.254.1.2"
"""Address of the host in pasta's networks, whose own is the host's (Podman 5.3, --map-guest-addr)."""
IMAGE: Final = "localhost/rootlet-test:latest"
"""A static busybox with its applets, and nothing else."""
SOCKET: Final = "podman.sock"
STORE: Final = "ROOTLET_TEST_STORE"
"""Environment variable: `TRANSIENT` for agents of that `podman.store`."""
TRANSIENT: Final = "transient"
START_DEADLINE_S: Final = 30.0
COMMAND_DEADLINE_S: Final = 120.0
EXISTS_TRIES: Final = 5
"""Podman cannot tell while another image goes, whose layer it has just read of."""
PATIENCE: Final = float(os.environ.get("ROOTLET_TEST_PATIENCE", "1"))
"""So many times its deadline a condition may take: an emulated machine is slow (tests/hosts/vm)."""
REMOVAL_S: Final = 30.0
REMOVAL_POLL_S: Final = 0.5
POLLS: Final = 20
"""A wait that may be asked about less often is noticed by a twentieth of its time late."""
APPLETS: Final = "sh sleep true false cat echo ls httpd wget nc kill ps touch mkdir rm id env hostname date head"


class PodmanService:
    """The running service. ``new_instance`` gives every test its own name."""

    def __init__(self, socket: Path, run_name: str) -> None:
        self.socket = str(socket)
        self.run_name = run_name
        self.image = IMAGE
        self._numbers = itertools.count()

    def new_instance(self) -> str:
        return f"{self.run_name}-{next(self._numbers)}"


@pytest.fixture(scope="session")
def podman_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PodmanService]:
    """The service, or a skip that says why there cannot be one."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    remove_of_dead_runs()
    ensure_image(tmp_path_factory.mktemp("image"))
    directory = tmp_path_factory.mktemp("podman")
    run_name = f"test-{os.getpid()}-{int(wall())}"
    with running_service(directory) as socket, podman_lists.asked_at(socket):
        try:
            yield PodmanService(socket, run_name)
        finally:
            remove_objects(lambda instance: instance.startswith(run_name))


def why_not() -> str:
    """Why rootless Podman cannot be used here; empty when it can."""
    if os.geteuid() == 0:
        return "needs a rootless user: run it as `configs/host/enter pytest ...`"
    if shutil.which("podman") is None:
        return "needs podman on PATH"
    if "XDG_RUNTIME_DIR" not in os.environ:
        return "needs XDG_RUNTIME_DIR"
    return ""


@contextlib.contextmanager
def running_service(directory: Path, settings: PodmanSettings = BY_DEFAULT) -> Iterator[Path]:
    """A service on a socket in ``directory``. It dies with this process, whatever ends that."""
    service = spawn_service(directory, settings)
    try:
        yield directory / SOCKET
    finally:
        service.send_signal(signal.SIGTERM)
        service.wait(COMMAND_DEADLINE_S)


def spawn_service(directory: Path, settings: PodmanSettings = BY_DEFAULT) -> subprocess.Popen[bytes]:
    """Begin a service without an end, for those who mean to kill it. A socket that is there already is of a dead
    one."""
    socket, log = directory / SOCKET, directory / "service.log"
    socket.unlink(missing_ok=True)
    conf = write_conf(settings, directory, os.environ)
    command = ["setpriv", "--pdeathsig", "TERM", "podman", "system", "service", "-t", "0", f"unix://{socket}"]
    with log.open("ab") as output:
        # In a session of its own: Ctrl-C must not take it away before the clean-up.
        service = subprocess.Popen(
            command,
            env={**os.environ, "CONTAINERS_CONF": str(conf)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    wait_until(lambda: listens(socket) or service.poll() is not None, START_DEADLINE_S)
    assert service.poll() is None, f"podman system service ended: {log.read_text()}"
    return service


def listens(path: Path) -> bool:
    """A socket that is there does not yet listen."""
    with Socket(AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0


def ensure_image(directory: Path) -> None:
    """Import the test image unless it is there."""
    if subprocess.run(["podman", "image", "exists", IMAGE], timeout=COMMAND_DEADLINE_S, check=False).returncode == 0:
        return
    if shutil.which("busybox") is None:
        pytest.skip("needs a static busybox for the test image")
    podman("import", "--quiet", "--change", "ENV=PATH=/bin", str(image_archive(directory)), IMAGE)


def image_archive(directory: Path, applets: str = APPLETS) -> Path:
    """Files of the test image, as a tar archive in this directory; with those applets of busybox."""
    busybox = shutil.which("busybox")
    assert busybox is not None, "needs a static busybox for the test image"
    archive = directory / "image.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(os.path.realpath(busybox), "bin/busybox")
        for applet in applets.split():
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
        passwd = b"root:x:0:0:root:/:/bin/sh\n"
        entry = tarfile.TarInfo("etc/passwd")
        entry.size = len(passwd)
        tar.addfile(entry, io.BytesIO(passwd))
    return archive


def remove_of_dead_runs() -> None:
    """Remains of test runs whose process is gone. Nothing else carries such a name."""

    def is_dead(instance: str) -> bool:
        kind, _, rest = instance.partition("-")
        pid = rest.partition("-")[0]
        return kind == "test" and pid.isdigit() and not Path("/proc", pid).exists()

    # One process at a time: all of a run begin here at once, and Podman refuses what another one removes.
    with Path(os.environ["XDG_RUNTIME_DIR"], "rootlet-test-remains.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        revive("podman", os.environ)
        for store in stores():
            remove_objects(is_dead, store)


def stores() -> Sequence[str]:
    """The default store, and that of the agents of this run if it is another one: raw calls may use both."""
    return tuple(dict.fromkeys(("default", podman_settings().store)))


def remove_objects(is_ours: Callable[[str], bool], store: str = "") -> None:
    """Remove pods, then containers, whose instance label the predicate accepts, from that store."""
    for kind, remover in ((Kind.PODS, ("pod", "rm")), (Kind.CONTAINERS, ("rm", "--volumes"))):

        def remove(kind: Kind = kind, remover: tuple[str, ...] = remover) -> None:
            found = listed(kind, INSTANCE, store)
            ids = [thing["Id"] for thing in found if is_ours((thing["Labels"] or {}).get(INSTANCE, ""))]
            if ids:
                podman(*remover, "--force", "--time", "0", *ids, store=store)

        until_removed(remove)


def image_exists(image: str) -> bool:
    """Whether the storage has an image of that name. It is asked for by its name: a list fails when an image goes
    meanwhile."""
    for _ in range(EXISTS_TRIES):
        done = subprocess.run(["podman", "image", "exists", image], timeout=COMMAND_DEADLINE_S, check=False)
        if done.returncode in (0, 1):
            break
    assert done.returncode in (0, 1)
    return done.returncode == 0


def podman_settings(store: str = "") -> PodmanSettings:
    """With that store, else the one of the agents of this run."""
    return PodmanSettings(store="transient" if (store or os.environ.get(STORE)) == TRANSIENT else "default")


@functools.cache
def podman_version() -> str:
    """Version of the Podman that is installed, such as 5.4.2."""
    return podman("version", "--format", "{{.Client.Version}}").strip()


def podman(*arguments: str, store: str = "") -> str:
    """Standard output of a podman command on that store, else the one that agents use; raises when it fails."""
    done = subprocess.run(
        [*podman_settings(store).command, *arguments],
        timeout=COMMAND_DEADLINE_S,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"podman {' '.join(arguments)}: {done.stderr}"
    return done.stdout


def listed(kind: Kind, label: str, store: str = "") -> list[dict[str, Any]]:
    """Objects with this label, or ``label=value``, as Podman shows them; in no order. Fails when Podman does."""
    if not store and (socket := podman_lists.service()):
        return podman_lists.from_service(socket, kind, label)
    shown = podman(*kind.words, "--format", "json", "--filter", f"label={label}", store=store)
    found: list[dict[str, Any]] = json.loads(shown)
    return found


def remove_by_force(kind: str, *names: str) -> None:
    """Remove images or volumes with the containers that need them."""
    until_removed(lambda: podman(kind, "rm", "--force", *names))


def until_removed(remove: Callable[[], object]) -> None:
    """Podman fails while another one of its commands, or a service, removes the same pod or a container of it."""
    failures: list[str] = []

    def removed() -> bool:
        try:
            remove()
        except AssertionError as failure:
            failures.append(str(failure))
            return False
        return True

    try:
        wait_until(removed, REMOVAL_S, REMOVAL_POLL_S)
    except AssertionError as late:
        raise AssertionError(f"{late}: {failures[-1]}") from late


def wait_until(
    condition: Callable[[], bool], deadline_s: float, poll_s: float = 0.02, longest_poll_s: float = 0.0
) -> None:
    """Wait for a condition; fails the test at the deadline, on a slow machine so many times later (`PATIENCE`).

    Asking takes half of the time at the most, as what it is asked about needs the CPUs too; and with a
    ``longest_poll_s`` what has taken long already is asked about less often.
    """
    began = asked_at = monotonic()
    end = began + deadline_s * PATIENCE
    while not condition():
        now = monotonic()
        assert now < end, f"not within {deadline_s} s: {condition}"
        sleep(max(poll_s, now - asked_at, min((now - began) / POLLS, longest_poll_s)))
        asked_at = monotonic()
