"""A forked child's whole life: set up after the fork, open the link, beat, and do what its role says."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import functools
import importlib
import logging
import os
import random
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final, NoReturn, TypeVar

import msgspec
import uvloop

from ipc.host.clock import Clock, SystemClock, process_cpu
from ipc.host.log import setup
from ipc.host.process.prctl import set_process_name
from ipc.host.process.spare_memory import SpareMemory
from ipc.link.eventloop.tasks import FAILURES, first_of, note_failure
from ipc.link.messages.api_server import ApiServerFeed, ApiServerRequest
from ipc.link.messages.catalogue import API_SERVER, LINKS, NODE_WORKER, POD_WORKER, LinkTypes
from ipc.link.messages.node_worker import NodeWorkerCommand, NodeWorkerReport, ServiceSilent
from ipc.link.messages.pod_worker import PodWorkerCommand, PodWorkerReport
from ipc.link.metrics import rootlet as metrics
from ipc.link.shm.board import WorkerRowWriter
from ipc.link.shm.breaker_state import BreakerState
from ipc.link.shm.followed_verbosity import FollowedVerbosity
from ipc.link.shm.metric_cells import METERS
from ipc.link.shm.trace import TRACER
from ipc.link.wire.boot import EXIT_BOOT_ERROR, ChildContext, Role
from ipc.link.wire.channel import Channel, ChannelClosed, ChannelFull
from workers.dialer.client import DialerClient
from workers.dialer.server import run_dialer
from workers.kubecontainer.runtime import Runtime
from workers.libpod.client import CallLimits
from workers.libpod.health import Listener
from workers.node_worker import run_node_worker
from workers.oci_runtimes import RuntimeServices
from workers.pod_worker import run_pod_worker
from workers.podman import NO_SLICES, PodmanRuntime
from workers.prober.attempt import attempt
from workers.sync.attribution import attribute_tasks
from workers.sync.traced_runtime import traced
from workers.userns.standing import Standing
from workers.userns.unshare import Unshare

AUTH_FILE_VARIABLE: Final = "REGISTRY_AUTH_FILE"
"""Environment variable that Podman's command line knows (podman-login(1)): where the user keeps registry logins."""

SERVICE_STARTS_WITHIN_S: Final = 2.0
"""How long the first call waits for the agent's own Podman service to listen, in seconds."""

log = logging.getLogger(__name__)

NodeWorkerLink = Channel[NodeWorkerReport, NodeWorkerCommand]

C = TypeVar("C")
R = TypeVar("R")

RoleMain = Callable[[ChildContext, Channel[R, C], Clock, WorkerRowWriter], Awaitable[int]]
"""Sends R, takes C; its result is the exit code."""
RunRole = Callable[[ChildContext, WorkerRowWriter], Coroutine[None, None, int]]


def main(context: ChildContext) -> int:
    """`ipc.link.wire.boot.WorkerMain`: the exit code. 0 when the master said so or is gone."""
    name = f"{NAMES[context.role]}-{context.slot}"
    _set_up_signals(context.crash_fd)
    set_process_name(f"rootlet-{name}")
    if context.mutation_slots is not None and context.role is not Role.POD_WORKER:
        context.mutation_slots.close()
    try:
        setup.set_up(context.settings.log, name)
        row_writer = context.board.worker_writer(context.slot)
        row_writer.begin(os.getpid(), context.incarnation)
        TRACER.attach(context.board.trace, context.slot, name)
        METERS.attach(context.board.metrics, context.slot)
    except Exception as error:
        print(f"rootlet-{name}: cannot start: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return EXIT_BOOT_ERROR
    if context.role is Role.DIALER:
        return run_dialer(context, SystemClock(), row_writer)
    return uvloop.run(ROLES[context.role](context, row_writer))


def _set_up_signals(crash_fd: int) -> None:
    """A hung worker gets SIGABRT first: where it hangs goes to the master. Ctrl-C at the terminal is the master's."""
    faulthandler.enable(file=crash_fd, all_threads=True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def on_link(link: LinkTypes[C, R], role_main: RoleMain[R, C]) -> RunRole:
    """Main function of a role's process: serve its link until the end."""

    async def run(context: ChildContext, row_writer: WorkerRowWriter) -> int:
        clock = SystemClock()
        try:
            channel: Channel[R, C] = await Channel.open(context.link, link.reports, link.commands)
        except Exception as error:
            log.critical("cannot start: %s: %s", type(error).__name__, error)
            return EXIT_BOOT_ERROR
        # The same way out as when the master is gone: every role ends when its link does.
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, channel.close)
        loop.set_exception_handler(_on_callback_error)
        return await first_of(
            _until_over(role_main(context, channel, clock, row_writer), channel),
            _beat(row_writer, FollowedVerbosity(context.board), clock, context.settings.heartbeat_period_s),
        )

    return run


def _on_callback_error(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Count an error of a callback, which belongs to no task, as a failed task."""
    error = context.get("exception")
    if error is None:
        log.error("event loop: %s", context["message"])
    else:
        note_failure(context["message"], error)


async def _until_over(role_main: Awaitable[int], channel: Channel[R, C]) -> int:
    try:
        return await role_main
    finally:
        channel.close()
        await channel.wait_closed()


async def _beat(row_writer: WorkerRowWriter, verbosity: FollowedVerbosity, clock: Clock, period_s: float) -> NoReturn:
    """Heartbeats from the loop that does the work: when it hangs, they stop."""
    errors, counted = METERS.counter(metrics.TASK_ERRORS), 0
    spare_memory = SpareMemory(process_cpu)
    while True:
        row_writer.beat(clock.now().mono, FAILURES.value)
        errors.inc(FAILURES.value - counted)
        counted = FAILURES.value
        verbosity.look()
        spare_memory.look()
        await asyncio.sleep(period_s)


class HealthReporter(Listener):
    """Puts on the board how this process stands with Podman."""

    def __init__(self, row_writer: WorkerRowWriter) -> None:
        self._row_writer = row_writer

    def breaker_changed(self, state: BreakerState) -> None:
        self._row_writer.breaker(state)
        if state is BreakerState.OPEN:
            METERS.counter(metrics.BREAKER_OPENED).inc()


class NodeHealthReporter(HealthReporter):
    """Tells the master too: the service may be its child. One process is enough for that."""

    def __init__(self, row_writer: WorkerRowWriter, channel: NodeWorkerLink) -> None:
        super().__init__(row_writer)
        self._channel = channel
        self.answers = asyncio.Event()
        """Set when the breaker closes."""

    def breaker_changed(self, state: BreakerState) -> None:
        super().breaker_changed(state)
        if state is BreakerState.CLOSED:
            self.answers.set()

    def silent(self, why: str) -> None:
        with contextlib.suppress(ChannelClosed, ChannelFull):  # nobody is left to be told, or will be at the next one
            self._channel.post(ServiceSilent(message=why))


async def _pod_worker(
    context: ChildContext,
    channel: Channel[PodWorkerReport, PodWorkerCommand],
    clock: Clock,
    row_writer: WorkerRowWriter,
) -> int:
    attribute_tasks(asyncio.get_running_loop(), row_writer.current_pod)
    async with _podman(context, HealthReporter(row_writer)) as runtime:
        with contextlib.closing(DialerClient(context.settings.dialer_socket)) as dialer:
            carried_out = functools.partial(attempt, dialer=dialer, runtime=runtime)
            inside = Unshare(context.settings.podman_path, context.settings.podman_options, standing=Standing())
            await run_pod_worker(
                context, channel, runtime, clock, row_writer, dialer, carried_out, random.Random(), inside
            )
    return 0


async def _node_worker(
    context: ChildContext, channel: NodeWorkerLink, clock: Clock, row_writer: WorkerRowWriter
) -> int:
    teller = NodeHealthReporter(row_writer, channel)
    async with _podman(context, teller) as runtime:
        inside = Unshare(context.settings.podman_path, context.settings.podman_options)
        await run_node_worker(context, channel, runtime, clock, row_writer, inside, answers=teller.answers)
    return 0


async def _api_server(
    context: ChildContext, channel: Channel[ApiServerRequest, ApiServerFeed], clock: Clock, row_writer: WorkerRowWriter
) -> int:
    """Serve the API. Only this role needs an HTTP server, and it ends when it is idle: so the server is imported here
    and not before the fork. In a thread, because that takes 0.2 s of CPU, and the heartbeat must go on."""
    server = await asyncio.to_thread(importlib.import_module, "workers.api_server.server")
    exit_code: int = await server.run_api_server(context, channel, clock, row_writer)
    return exit_code


@contextlib.asynccontextmanager
async def _podman(context: ChildContext, listener: Listener) -> AsyncIterator[Runtime]:
    """This process's own client: one made before the fork would share its sockets."""
    settings = context.settings
    runtime = PodmanRuntime(
        settings.podman_socket,
        settings.instance,
        limits=CallLimits(
            max_mutations=settings.max_mutations,
            max_reads=settings.max_reads,
            request_timeout_s=settings.runtime_request_timeout_s,
        ),
        pull_timeout_s=settings.image_pull_timeout_s,
        listener=listener,
        auth_file=os.environ.get(AUTH_FILE_VARIABLE, ""),
        runtime_services=RuntimeServices(
            settings.podman_path,
            settings.podman_options,
            settings.podman_environment,
            os.path.dirname(settings.dialer_socket),
        ),
        pod_cgroups=settings.node.pod_cgroups or NO_SLICES,
        starting_s=SERVICE_STARTS_WITHIN_S if settings.podman_environment else 0.0,
        is_own_service=bool(settings.podman_environment),
        limits_processes=settings.limits_processes,
    )
    try:
        yield traced(runtime)
    finally:
        await runtime.close()


ROLES: Final[Mapping[Role, RunRole]] = {
    Role.POD_WORKER: on_link(POD_WORKER, _pod_worker),
    Role.NODE_WORKER: on_link(NODE_WORKER, _node_worker),
    Role.API_SERVER: on_link(API_SERVER, _api_server),
}
"""Roles with an event loop. ``Role.EXEC`` becomes another program and never comes here."""
NAMES: Final[Mapping[Role, str]] = {
    Role.POD_WORKER: "pods",
    Role.NODE_WORKER: "node",
    Role.API_SERVER: "api",
    Role.DIALER: "dial",
}
"""Before the slot, in logs and as the process's name."""
_DECODERS: Final = tuple(msgspec.msgpack.Decoder(link.commands) for link in LINKS.values())
"""Made before any fork: what msgspec finds out about a type it keeps there, and all children share it."""
