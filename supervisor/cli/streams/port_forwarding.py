"""One `rootlet port-forward`: on which local sockets, and until when."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Final

import click

from ipc.host.text.json_types import Json
from ipc.k8s.network.ports import join_host_port
from ipc.link.eventloop.tasks import first_of
from supervisor.cli.options import Failure
from supervisor.cli.printers.containers import COMPLETED
from supervisor.cli.streams.forwarded_ports import ForwardedPort, ListenAddress, forwarded_port, listen_addresses
from supervisor.cli.streams.forwarding import Forwarding, Listener
from supervisor.client.errors import AgentError
from supervisor.client.http import AgentClient, pod_key, pod_path, pods_path
from supervisor.client.reflector import Reflector

BACKLOG: Final = 128
LOST: Final = "error: lost connection to pod"
ENDING_SIGNALS: Final = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


def forward_ports(client: AgentClient, pod: Json, ports: Sequence[str], addresses: Sequence[str]) -> None:
    """Forward ports until the pod goes or a signal comes. Raises Failure and AgentError."""
    phase = pod["status"].get("phase", "")
    if phase != "Running":
        raise Failure(f"unable to forward port because pod is not running. Current status={phase}", prefix="error: ")
    wanted = [forwarded_port(text, pod) for text in ports]
    places = listen_addresses(addresses)
    with contextlib.ExitStack() as stack:
        listeners = [each for port in wanted for each in _listen(port, places, stack)]
        if not listeners:
            raise Failure(f"unable to listen on any of the requested ports: {' '.join(ports)}", prefix="error: ")
        forwarding = Forwarding(client.socket, f"{pod_path(*pod_key(pod))}/portforward", listeners)
        asyncio.run(_until_over(forwarding, _Watch(client, pod)))


def _listen(port: ForwardedPort, places: list[ListenAddress], stack: contextlib.ExitStack) -> list[Listener]:
    """On every address, with one number on all. Tells of those that cannot be had (portforward.go, listenOnPort)."""
    made: list[Listener] = []
    problems: list[tuple[ListenAddress, str]] = []
    for place in places:
        try:
            sock = stack.enter_context(_bound(place, port.local))
        except OSError as error:
            problems.append((place, f"{join_host_port(place.host, port.local)}: {error.strerror}"))
            continue
        port = ForwardedPort(sock.getsockname()[1], port.remote)
        made.append(Listener(sock, port))
        click.echo(f"Forwarding from {join_host_port(place.host, port.local)} -> {port.remote}")
    if any(not place.optional for place, _ in problems) or (problems and not made):
        words = ", ".join(text for _, text in problems)
        click.echo(f"Unable to listen on port {port.local}: {words}", err=True)
    return made


def _bound(place: ListenAddress, port: int) -> socket.socket:
    sock = socket.socket(place.family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if place.family is socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((place.host, port))
        sock.listen(BACKLOG)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock


# --- until when --------------------------------------------------------------------------------------------------


class _Watch:
    """Looks, in a thread of its own, whether the pod is still there."""

    def __init__(self, client: AgentClient, pod: Json) -> None:
        self._uid = pod["metadata"]["uid"]
        namespace, name = pod_key(pod)
        self._pods = Reflector(client, pods_path(namespace), {"fieldSelector": f"metadata.name={name}"})

    def start(self, over: Callable[[str], None]) -> None:
        """``over`` is called, in that thread, with why, when the pod has gone or nobody can tell any more."""
        threading.Thread(target=lambda: over(self._why()), daemon=True).start()

    def _why(self) -> str:
        try:
            self._pods.list()
            if not self._is_there():
                return LOST
            for _ in self._pods.events():
                if not self._is_there():
                    return LOST
        except AgentError as error:
            return f"{LOST}: {error}"
        return LOST

    def _is_there(self) -> bool:
        pod = self._pods.objects.get(self._uid)
        return pod is not None and pod["status"].get("phase") not in COMPLETED


async def _until_over(forwarding: Forwarding, watch: _Watch) -> None:
    """Raises Failure when the pod goes, or when nothing can be accepted or told any more; but a broken pipe ends every
    command without a word. An interrupt is how this command usually ends: exit code 0, as kubectl's."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[str | int] = loop.create_future()

    def settle(why: str | int) -> None:
        if not over.done():
            over.set_result(why)

    def reported(why: str) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: it was over already
            loop.call_soon_threadsafe(settle, why)

    for signum in ENDING_SIGNALS:
        loop.add_signal_handler(signum, settle, int(signum))
    watch.start(reported)
    try:
        why = await first_of(over, _for_ever(forwarding))
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Failure(f"no connection can be taken any more: {error.strerror}") from None
    if isinstance(why, str):
        raise Failure(why, prefix="")
    if why != signal.SIGINT:
        raise click.exceptions.Exit(128 + why)


async def _for_ever(forwarding: Forwarding) -> str | int:
    await forwarding.run()
    return LOST
