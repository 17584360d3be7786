"""The API server's life: takes the master's feed into the store, and serves the admin socket from it."""

from __future__ import annotations

import asyncio
import functools
import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aiohttp import web

from ipc.host.clock import Clock
from ipc.link.eventloop.tasks import first_of
from ipc.link.messages.api_server import ApiServerFeed, ApiServerRequest, FeedMessage, PodChanged, Reply
from ipc.link.messages.base import Ready, Shutdown
from ipc.link.shm.board import WorkerRowWriter
from ipc.link.shm.trace import TRACER
from ipc.link.wire.boot import EXIT_IDLE, ChildContext
from ipc.link.wire.channel import Channel
from workers.api_server.audit import audited, note_answer
from workers.api_server.core.connection_guard import IDLE_TIMEOUT_S
from workers.api_server.core.listener import AdminListener, Listener, until_idle
from workers.api_server.core.route import Route
from workers.api_server.core.stream_sockets import StreamSockets
from workers.api_server.handlers.request_counts import counted
from workers.api_server.http_log import HTTP_LOG, RequestLog
from workers.api_server.kubelet_routes import kubelet_routes
from workers.api_server.middleware import InFlight, own_users_only, statuses
from workers.api_server.routes import route_table
from workers.api_server.store.bodies import MAX_BODY_BYTES, add_routes, close_untold
from workers.api_server.store.requests import MasterRequests
from workers.api_server.store.site import AppState
from workers.api_server.store.statistics import Statistics
from workers.api_server.store.store import Store
from workers.api_server.store.watch import Notifier
from workers.dialer.client import DialerClient
from workers.fs.fs_executor import FsExecutor
from workers.libpod.streams import PodmanStreams
from workers.podhttp.pod_network import Dialer

if TYPE_CHECKING:
    from workers.api_server.ports import Ports

SHUTDOWN_TIMEOUT_S: Final = 1.0
"""How long answers under way may take to finish at the end."""
MIN_SILENCE_S: Final = 2.0
"""A connection may be silent for so long at least, whatever the idle timeout: aiohttp counts from its acceptance, and a
client on a busy host is not yet heard a few milliseconds later."""
MISSED_BEATS: Final = 4
"""A worker that misses so many in a row hangs, as the master sees it."""
FILE_THREADS: Final = 16
"""Most logs of different pods that are read at the same moment."""
FILES_DEADLINE_S: Final = 30.0
"""Deadline of one step in a log, in seconds: the longest looks through all files of a container for its last lines."""
MAX_FEED_BATCH: Final = 64
"""Most messages taken in before others get their turn, in messages."""


async def run_api_server(
    context: ChildContext,
    channel: Channel[ApiServerRequest, ApiServerFeed],
    clock: Clock,
    row_writer: WorkerRowWriter,
    dialer: Dialer | None = None,
) -> int:
    """Serve until the master says so or is gone, or nobody has come for long; the exit code. The listening socket stays
    the master's: its next child takes over.

    ``dialer`` instead of the agent's own.

    Raises ValueError without a socket to listen on, ChannelClosed when the master is gone before it could be told
    that we are here, ProtocolError when it sends what it must not.
    """
    if context.listen is None:
        raise ValueError("the API server needs a listening socket")
    dialing = DialerClient(context.settings.dialer_socket)
    site = _state(context, MasterRequests(channel), clock, dialer or dialing)
    context.board.trace.stop()  # who has started one was a client of an earlier incarnation
    idle_timeout_s = context.settings.idle_timeout_s
    routes = kubelet_routes(site)
    runner = await _running(application(site, routes), max(idle_timeout_s, MIN_SILENCE_S))
    assert runner.server is not None, "it was set up"
    admin = AdminListener(runner.server)
    ports = await _ports(context, site, routes)
    try:
        await admin.open(context.listen)
        row_writer.step("serving the admin socket")
        await channel.send(Ready(pid=os.getpid()))
        listeners: list[Listener] = [admin, *(ports.listeners if ports is not None else ())]
        return await first_of(
            _take_feed(channel, site.store, site.changed, site.master), _until_idle(listeners, idle_timeout_s)
        )
    finally:
        admin.close()
        site.master.abandon()
        if ports is not None:
            await ports.close()
        await runner.cleanup()
        dialing.close()
        await site.statistics.close()
        site.files.close()
        context.board.trace.stop()


def _state(context: ChildContext, master: MasterRequests, clock: Clock, dialer: Dialer) -> AppState:
    """Everything that handlers share, before the master has told anything."""
    settings = context.settings
    return AppState(
        store=Store(epoch=int(clock.now().wall * 1_000_000)),
        changed=Notifier(),
        master=master,
        clock=clock,
        board=context.board,
        logs_dir=Path(settings.pod_logs_dir),
        files=FsExecutor(FILES_DEADLINE_S, FILE_THREADS),
        podman=PodmanStreams(settings.podman_socket),
        dialer=dialer,
        sockets=StreamSockets(idle_timeout_s=settings.server.streaming_idle_timeout_s),
        quiet_relist_period_s=settings.quiet_relist_period_s,
        statistics=Statistics(context.board.statistics, clock),
        heartbeat_timeout_s=settings.heartbeat_period_s * MISSED_BEATS,
        settings=settings,
    )


async def _running(app: web.Application, keepalive_timeout_s: float) -> web.AppRunner:
    runner = web.AppRunner(
        app,
        handler_cancellation=True,
        access_log=HTTP_LOG,
        access_log_class=RequestLog,
        logger=HTTP_LOG,
        shutdown_timeout=SHUTDOWN_TIMEOUT_S,
        keepalive_timeout=keepalive_timeout_s,
    )
    await runner.setup()
    return runner


async def _ports(context: ChildContext, site: AppState, routes: Sequence[Route]) -> Ports | None:
    """Ports of the kubelet's server, whose modules are not imported where none is on."""
    if not context.ports:
        return None
    module = await asyncio.to_thread(importlib.import_module, "workers.api_server.ports")
    opened: Ports = await module.Ports.opened(
        context, site, routes, functools.partial(_running, keepalive_timeout_s=IDLE_TIMEOUT_S)
    )
    return opened


def application(site: AppState, routes: Sequence[Route]) -> web.Application:
    """The HTTP side of the admin socket, without it; ``routes`` are the kubelet's."""
    middlewares = [counted("admin"), *audited(site), statuses, own_users_only, InFlight().limited]
    app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=middlewares)
    add_routes(app, route_table(site, routes))
    app.on_response_prepare.extend((close_untold, note_answer))
    app.on_shutdown.append(site.sockets.stop)
    return app


async def _take_feed(
    channel: Channel[ApiServerRequest, ApiServerFeed], store: Store, changed: Notifier, master: MasterRequests
) -> int:
    """Until the link's end."""
    taken = 0
    async for message in channel:
        match message:
            case Shutdown():
                break
            case Reply():
                master.answered(message)
            case _:
                with TRACER.span(f"takes {type(message).__name__}", _pod_of(message), cpu=True):
                    store.take(message)
                    changed.notify()
        taken += 1
        if taken % MAX_FEED_BATCH == 0:
            await asyncio.sleep(0)
    return 0


def _pod_of(message: FeedMessage) -> str:
    return message.pod.metadata.uid if isinstance(message, PodChanged) else ""


async def _until_idle(listeners: Sequence[Listener], idle_timeout_s: float) -> int:
    await until_idle(listeners, idle_timeout_s)
    return EXIT_IDLE
