"""The real master among children that break their protocol, hang, die or cannot begin: real forks, real links."""

from __future__ import annotations

import asyncio
import faulthandler
import os
import select
import signal
import socket
import struct
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.host import clock
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod, PodSpec
from ipc.k8s.api.v1.status import PodStatus
from ipc.link.messages.api_server import FeedSynced, PodChanged, Reply, SetLogLevel
from ipc.link.messages.base import Ready
from ipc.link.messages.node_worker import Observation, Observed, Relisted
from ipc.link.messages.pod_worker import SyncDone, SyncPod, WorkType
from ipc.link.messages.sync_error import SyncError
from ipc.link.messages.zygote import ZygoteReport
from ipc.link.shm.board import Board
from ipc.link.wire.boot import EXIT_BOOT_ERROR, ChildContext, Role, WorkerMain, WorkerSettings
from ipc.link.wire.framing import MAX_FRAME_BYTES, FrameDecoder, encode_frame
from supervisor.agent import run_agent
from supervisor.config.settings import PodmanSettings, Settings, WorkersSettings
from supervisor.processes.links import UNREAD_S, Links
from supervisor.processes.worker_pool import API_SLOT, DIALER_SLOT, FIRST_POD_SLOT, NODE_SLOT, ChildSpec, SpawnChild
from supervisor.processes.zygote import start_zygote
from tests.fakes.ownership import LABEL_KEY
from tests.process.model_children import reaped
from tests.support.podman_service import wait_until

pytestmark = pytest.mark.process

DEADLINE_S = 20.0
OTHERS = (NODE_SLOT, API_SLOT, DIALER_SLOT)
MAX_DEATHS = 3
Life = Callable[[ChildContext], int]


def until(condition: Callable[[], bool]) -> None:
    wait_until(condition, DEADLINE_S, 0.01)


# --- lives of children ---------------------------------------------------------------------------------------------


def say(context: ChildContext, message: msgspec.Struct) -> None:
    context.link.sendall(encode_frame(msgspec.msgpack.encode(message)))


def live_well(context: ChildContext) -> int:
    """Ready, heartbeats, and out when the master says so or is gone."""
    writer = context.board.worker_writer(context.slot)
    writer.begin(os.getpid(), context.incarnation)
    say(context, Ready(pid=os.getpid()))
    Path(context.settings.pod_logs_dir, f"{context.slot}.{context.incarnation}").touch()
    while True:
        writer.beat(clock.monotonic())
        if select.select([context.link], [], [], 0.05)[0]:
            heard = context.link.recv(1 << 16)
            if not heard or b"Shutdown" in heard:
                return 0


def then_wait(context: ChildContext) -> int:
    """With heartbeats, so that only what was said before can be the reason for the end."""
    writer = context.board.worker_writer(context.slot)
    writer.begin(os.getpid(), context.incarnation)
    while True:
        writer.beat(clock.monotonic())
        select.select([], [], [], 0.05)


def speak_garbage(context: ChildContext) -> int:
    context.link.sendall(encode_frame(b"\xc1 is no message"))
    return then_wait(context)


def announce_a_huge_frame(context: ChildContext) -> int:
    context.link.sendall(struct.pack(">I", MAX_FRAME_BYTES + 1))
    return then_wait(context)


def speak_out_of_turn(context: ChildContext) -> int:
    """A message of another link."""
    say(context, Relisted(started_at=1.0, changed=()))
    return then_wait(context)


def hang(context: ChildContext) -> int:
    faulthandler.disable()  # pytest's, which would write about this test
    say(context, Ready(pid=os.getpid()))
    while True:
        signal.pause()


def crash(context: ChildContext) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def fail_to_boot(context: ChildContext) -> int:
    return EXIT_BOOT_ERROR


def among_others(first: Life, after: Life = live_well) -> WorkerMain:
    """The pod worker's first incarnation lives that life, later ones the other; everybody else lives well."""

    def main(context: ChildContext) -> int:
        if context.slot != FIRST_POD_SLOT:
            return live_well(context)
        return (first if context.incarnation == 1 else after)(context)

    return main


# --- the whole agent -----------------------------------------------------------------------------------------------


class Agent:
    """`run_agent` in a process of its own."""

    def __init__(self, directory: Path, worker_main: WorkerMain) -> None:
        self.pod_table = directory / "lives"
        self._log = directory / "log"
        for path in (self.pod_table, directory / "manifests", directory / "state", directory / "run"):
            path.mkdir()
        settings = Settings(
            node_name="n",
            static_pod_path=directory / "manifests",
            state_dir=directory / "state",
            memory_dir=directory / "memory",
            pod_logs_dir=self.pod_table,
            admin_socket=directory / "run" / "admin.sock",
            container_runtime_endpoint=f"unix://{directory}/nobody.sock",
            podman=PodmanSettings(max_concurrent_mutations=2),
            workers=WorkersSettings(
                count=1,
                heartbeat_timeout_s=1.0,  # type: ignore[arg-type]
                max_deaths=MAX_DEATHS,
                death_period_s=60.0,  # type: ignore[arg-type]
            ),
        )
        self.exit_code: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            sys.stderr = self._log.open("a", buffering=1)
            os._exit(run_agent(settings, lambda: worker_main, None))

    @property
    def log(self) -> str:
        return self._log.read_text()

    def lived_well(self, slot: int, incarnation: int) -> bool:
        return (self.pod_table / f"{slot}.{incarnation}").exists()

    def has_ended(self) -> bool:
        if self.exit_code is None:
            self.exit_code = reaped(self.pid)
        return self.exit_code is not None

    def zygote_pid(self) -> int:
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return next(int(pid) for pid in children if Path(f"/proc/{pid}/comm").read_text().strip() == "rootlet-zygote")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[WorkerMain], Agent]]:
    agents: list[Agent] = []

    def make(worker_main: WorkerMain) -> Agent:
        agents.append(Agent(tmp_path, worker_main))
        return agents[-1]

    yield make
    for agent in agents:
        if not agent.has_ended():
            os.kill(agent.pid, signal.SIGKILL)
            os.waitpid(agent.pid, 0)


BROKEN_LIVES: Mapping[str, tuple[Life, str]] = {
    "garbage": (speak_garbage, "broke the protocol"),
    "a huge frame": (announce_a_huge_frame, "broke the protocol"),
    "a message of another link": (speak_out_of_turn, "broke the protocol"),
    "no heartbeat": (hang, "no heartbeat"),
    "a crash": (crash, f"ended with {-signal.SIGKILL}"),
}


@pytest.mark.parametrize("lifecycle", BROKEN_LIVES)
def test_a_child_that_breaks_its_word_is_replaced_and_nobody_else_notices(
    start: Callable[[WorkerMain], Agent], lifecycle: str
) -> None:
    first, said = BROKEN_LIVES[lifecycle]
    agent = start(among_others(first))
    until(lambda: agent.lived_well(FIRST_POD_SLOT, 2))
    until(lambda: all(agent.lived_well(slot, 1) for slot in OTHERS))
    assert said in agent.log
    os.kill(agent.pid, signal.SIGTERM)
    until(agent.has_ended)
    assert agent.exit_code == 0
    everybody = [*(f"{slot}.1" for slot in OTHERS), f"{FIRST_POD_SLOT}.2"]
    assert sorted(path.name for path in agent.pod_table.glob("[0-9]*")) == everybody


def test_a_child_that_dies_again_and_again_ends_the_agent(start: Callable[[WorkerMain], Agent]) -> None:
    agent = start(among_others(crash, crash))
    until(agent.has_ended)
    assert agent.exit_code == 1
    assert f"more than {MAX_DEATHS} child deaths" in agent.log


def test_a_child_that_cannot_boot_ends_the_agent_at_once(start: Callable[[WorkerMain], Agent]) -> None:
    agent = start(among_others(fail_to_boot))
    until(agent.has_ended)
    assert agent.exit_code == 1
    assert "could not start" in agent.log
    assert not agent.lived_well(FIRST_POD_SLOT, 2)


def test_an_error_that_nobody_expected_ends_the_agent(start: Callable[[WorkerMain], Agent]) -> None:
    """Half an agent would be worse than none. Here a row that the board does not have."""

    def main(context: ChildContext) -> int:
        if context.slot == NODE_SLOT:
            say(context, Ready(pid=os.getpid()))
            say(context, Observed(observations=(Observation(uid="a", observed_at=1.0, changed=True, row=1_000_000),)))
        return live_well(context)

    agent = start(main)
    until(agent.has_ended)
    assert agent.exit_code == 1
    assert "internal error" in agent.log


def test_without_its_zygote_the_agent_ends(start: Callable[[WorkerMain], Agent]) -> None:
    agent = start(live_well)
    until(lambda: agent.lived_well(FIRST_POD_SLOT, 1))
    os.kill(agent.zygote_pid(), signal.SIGKILL)
    until(agent.has_ended)
    assert agent.exit_code == 1
    assert "the zygote is gone" in agent.log


# --- a link that nobody reads --------------------------------------------------------------------------------------


class Told:
    """`LinkEvents`: collects them, and the reasons for which links count as broken."""

    def __init__(self) -> None:
        self.ready = asyncio.Event()
        self.broke = asyncio.Event()
        self.broken: list[tuple[int, int, str]] = []
        self.messages: list[Any] = []

    def on_zygote_report(self, report: ZygoteReport) -> None: ...

    def on_zygote_gone(self) -> None: ...

    def on_message(self, slot: int, incarnation: int, message: Any) -> None:
        self.messages.append(message)
        self.ready.set()

    def on_broken_link(self, slot: int, incarnation: int, why: str) -> None:
        self.broken.append((slot, incarnation, why))
        self.broke.set()

    def on_demand(self, slot: int) -> None: ...

    def on_internal_error(self, error: BaseException) -> None:
        raise error

    def done(self) -> list[SyncDone]:
        return [message for message in self.messages if isinstance(message, SyncDone)]


def never_read(context: ChildContext) -> int:
    say(context, Ready(pid=os.getpid()))
    return then_wait(context)


def large_pod(size_bytes: int) -> Pod:
    return Pod(metadata=ObjectMeta(name="p", annotations={"large": "x" * size_bytes}), spec=PodSpec(containers=()))


@asynccontextmanager
async def served(
    zygote: socket.socket, told: Told, spec: ChildSpec, *, unread_s: float = UNREAD_S, directory: str = "/nowhere"
) -> AsyncIterator[Links]:
    """The links of one child that has said that it is ready."""
    settings = WorkerSettings(
        instance="test", label_key=LABEL_KEY, node_name="n", podman_socket="/nowhere", pod_logs_dir=directory
    )
    with socket.socket(socket.AF_UNIX) as listening:
        children = Links(zygote, {Role.API_SERVER: (listening,)}, told, lambda: settings, unread_s=unread_s)
        children.start()
        children.spawn(SpawnChild(spec, 7))
        async with asyncio.timeout(DEADLINE_S):
            await told.ready.wait()
        yield children
        await children.close()


def feed_of(pods: int) -> Iterator[PodChanged | FeedSynced]:
    """A copy of more than a link may hold, then its end."""
    pod = large_pod(4 << 20)
    for version in range(pods):
        metadata = msgspec.structs.replace(pod.metadata, uid=f"p{version}")
        one = msgspec.structs.replace(pod, metadata=metadata)
        yield PodChanged(resource_version=version, pod=one, status=PodStatus(), source="f")
    yield FeedSynced()


def test_a_child_that_never_reads_counts_as_broken(tmp_path: Path) -> None:
    board = Board.create(worker_slots=8, pod_rows=1)
    sock, pid = start_zygote(board, lambda: never_read, [tmp_path / "admin.sock"])
    told = asyncio.run(_fill_the_link(sock))
    [(slot, incarnation, why)] = told.broken
    assert (slot, incarnation) == (API_SLOT, 7)
    assert "read nothing" in why
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


async def _fill_the_link(zygote: socket.socket) -> Told:
    told = Told()
    async with served(zygote, told, ChildSpec(API_SLOT, Role.API_SERVER, "api"), unread_s=0.1) as children:
        for message in feed_of(16):
            children.send(API_SLOT, 7, message)
        async with asyncio.timeout(DEADLINE_S):
            await told.broke.wait()
    return told


def heard(words: str) -> SetLogLevel:
    """A request of an API server's that has room for what it has read."""
    return SetLogLevel(request_id=1, area=words, level="info")


def read_late(context: ChildContext) -> int:
    """Read nothing until the file says so; then all, and say which pods that were."""
    say(context, Ready(pid=os.getpid()))
    may_read = Path(context.settings.pod_logs_dir, "may read")
    until(may_read.exists)
    cutter, uids = FrameDecoder(), list[str]()
    while data := context.link.recv(1 << 16):
        for frame in cutter.feed(data):
            message = msgspec.msgpack.decode(frame, type=PodChanged | FeedSynced)
            if isinstance(message, PodChanged):
                uids.append(message.pod.metadata.uid)
            else:
                say(context, heard(" ".join(uids)))
    return 0


def test_a_copy_that_is_larger_than_its_link_comes_in_parts(tmp_path: Path) -> None:
    board = Board.create(worker_slots=8, pod_rows=1)
    sock, pid = start_zygote(board, lambda: read_late, [tmp_path / "admin.sock"])
    told = asyncio.run(_copy_late(sock, tmp_path))
    assert told.broken == []
    [read] = [message for message in told.messages if isinstance(message, SetLogLevel)]
    assert read.area.split() == [f"p{number}" for number in range(16)]
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


async def _copy_late(zygote: socket.socket, directory: Path) -> Told:
    """Messages of a copy that is read late."""
    told = Told()
    async with served(zygote, told, ChildSpec(API_SLOT, Role.API_SERVER, "api"), directory=str(directory)) as children:
        for message in feed_of(16):
            children.send(API_SLOT, 7, message)
        (directory / "may read").touch()
        async with asyncio.timeout(DEADLINE_S):
            while not any(isinstance(message, SetLogLevel) for message in told.messages):
                told.ready.clear()
                await told.ready.wait()
    return told


# --- what no link takes --------------------------------------------------------------------------------------------


def answer_every_sync(context: ChildContext) -> int:
    say(context, Ready(pid=os.getpid()))
    cutter = FrameDecoder()
    while heard := context.link.recv(1 << 16):
        for frame in cutter.feed(heard):
            asked = msgspec.msgpack.decode(frame, type=SyncPod)
            say(context, SyncDone(uid=asked.uid, generation=1, incarnation=7, kind=asked.kind))
    return 0


def test_a_sync_that_no_link_takes_is_the_failure_of_its_pod_alone() -> None:
    sock, pid = start_zygote(Board.create(worker_slots=8, pod_rows=1), lambda: answer_every_sync, [])
    failed, done = asyncio.run(_sync_two(sock))
    assert (failed.uid, failed.error, failed.changed) == ("large", SyncError.TOO_LARGE, False)
    assert str(MAX_FRAME_BYTES) in failed.message
    assert (done.uid, done.error) == ("small", "")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


async def _sync_two(zygote: socket.socket) -> list[SyncDone]:
    """Words about a pod that is too large, and about the next one of the same worker."""
    told = Told()
    async with served(zygote, told, ChildSpec(FIRST_POD_SLOT, Role.POD_WORKER, "pods-0")) as children:
        for uid, size_bytes in (("large", MAX_FRAME_BYTES), ("small", 1)):
            sync = SyncPod(
                uid=uid,
                generation=1,
                incarnation=7,
                kind=WorkType.SYNC,
                pod=large_pod(size_bytes),
                row=0,
                min_observed_at=0.0,
            )
            children.send(FIRST_POD_SLOT, 7, sync)
        async with asyncio.timeout(DEADLINE_S):
            while len(told.done()) < 2:
                told.ready.clear()
                await told.ready.wait()
    assert not told.broken
    return told.done()


def test_an_answer_that_no_link_takes_is_an_error_for_who_has_asked(tmp_path: Path) -> None:
    sock, pid = start_zygote(
        Board.create(worker_slots=8, pod_rows=1), lambda: tell_of_answers, [tmp_path / "admin.sock"]
    )
    told = asyncio.run(_answer_too_much(sock))
    assert told.broken == []
    [answer] = [message for message in told.messages if isinstance(message, SetLogLevel)]
    assert answer.area.startswith("3 500 the answer was not sent: message of ")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def tell_of_answers(context: ChildContext) -> int:
    say(context, Ready(pid=os.getpid()))
    cutter = FrameDecoder()
    while data := context.link.recv(1 << 16):
        for frame in cutter.feed(data):
            reply = msgspec.msgpack.decode(frame, type=Reply)
            words = f"{reply.request_id} {reply.code} {reply.message}"
            say(context, heard(words))
    return 0


async def _answer_too_much(zygote: socket.socket) -> Told:
    told = Told()
    async with served(zygote, told, ChildSpec(API_SLOT, Role.API_SERVER, "api")) as children:
        children.send(API_SLOT, 7, Reply(request_id=3, code=200, objects="x" * MAX_FRAME_BYTES))
        async with asyncio.timeout(DEADLINE_S):
            while not any(isinstance(message, SetLogLevel) for message in told.messages):
                told.ready.clear()
                await told.ready.wait()
    return told
