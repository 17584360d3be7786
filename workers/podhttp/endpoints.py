"""Where a handler's request goes, and a connection to there."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import os
import socket
from typing import Final

import msgspec

from ipc.host.text.gofmt import quoted
from ipc.k8s.api.v1.container import Container
from ipc.k8s.network.ports import MAX_PORT, join_host_port
from ipc.link.eventloop.lookup import look_up
from workers.podhttp.pod_network import Dialer, DialError, PodNetwork

NODE: Final = PodNetwork()
"""The network that the agent itself is in."""
LOOPBACK: Final = "127.0.0.1"
MAX_ADDRESSES: Final = 8
"""Addresses of one name that are tried."""
MAX_HOST_CHARS: Final = 254
"""Longest name of a host, with a dot at its end (Go's net/dnsclient.go, isDomainName)."""
MAX_LABEL_CHARS: Final = 63
"""Longest part of one between dots."""

Address = tuple[object, ...]
"""Address to which a socket of its family is connected."""


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A TCP port, and whose network it is reached from."""

    network: PodNetwork
    host: str
    port: int

    @property
    def address(self) -> str:
        return join_host_port(self.host, self.port)


class PortError(Exception):
    """No port by that name, or no valid port."""


def endpoint_of(network: PodNetwork, host: str, port: int | str, container: Container) -> Endpoint:
    """Endpoint of a handler with that host and port. Raises PortError.

    Without a host that is the pod, as its status tells its address (pkg/kubelet/prober/prober.go, runProbe). With one
    it is reached from the node, as upstream: ``host: 127.0.0.1`` is the node, unless the pod is in its network.
    """
    number = resolve_port(port, container)
    if not host or host == network.ip:
        return Endpoint(network=network, host=network.ip or LOOPBACK, port=number)
    return Endpoint(network=NODE, host=host, port=number)


def resolve_port(port: int | str, container: Container) -> int:
    """The number of a port that is given by number or by its name in the container. Raises PortError.

    Mirrors ResolveContainerPort (pkg/probe/util.go).
    """
    number = port if isinstance(port, int) else _port_by_name(port, container)
    if not 0 < number <= MAX_PORT:
        raise PortError(f"invalid port number: {number}")
    return number


def _port_by_name(name: str, container: Container) -> int:
    for port in container.ports:
        if port.name == name:
            return port.container_port
    raise PortError(f"port {quoted(name)} not found")


async def connect(dialer: Dialer, endpoint: Endpoint, deadline: float) -> socket.socket:
    """A connected socket, the caller's. ``deadline`` is in the loop's time.

    Raises OSError (`dial_text` makes its message), TimeoutError among them; DialError when the dialer fails.
    """
    failed: OSError | None = None
    for family, address in await _addresses(endpoint, deadline):
        try:
            return await _connect(dialer, endpoint.network, family, address, deadline)
        except TimeoutError:
            raise
        except OSError as error:
            failed = failed or error
    raise failed or OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))


def dial_text(endpoint: Endpoint, error: OSError) -> str:
    """Why there is no connection, as Go's net.Dial says it."""
    if isinstance(error, socket.gaierror):
        return f"dial tcp: lookup {endpoint.host}: {_LOOKUP_TEXTS.get(error.errno or 0, error.strerror)}"
    if error.errno is None:
        return f"dial tcp {endpoint.address}: i/o timeout"
    return f"dial tcp {endpoint.address}: connect: {os.strerror(error.errno).lower()}"


_LOOKUP_TEXTS: Final = {
    socket.EAI_NONAME: "no such host",
    socket.EAI_NODATA: "no such host",
    socket.EAI_AGAIN: "server misbehaving",
}


async def _addresses(endpoint: Endpoint, deadline: float) -> list[tuple[socket.AddressFamily, Address]]:
    """In the order in which they are to be tried. Raises OSError."""
    host = ascii_host(endpoint.host)
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return await _looked_up(host, endpoint.port, deadline)
    return [(socket.AF_INET6 if ip.version == 6 else socket.AF_INET, (host, endpoint.port))]


def ascii_host(host: str) -> str:
    """A name or address as the system's resolver takes it, by IDNA. Raises socket.gaierror for what can be neither."""
    is_short = len(host) <= MAX_HOST_CHARS and all(len(label) <= MAX_LABEL_CHARS for label in host.split("."))
    if is_short and "\0" not in host:
        with contextlib.suppress(UnicodeError):
            return host.encode("idna").decode("ascii")
    raise socket.gaierror(socket.EAI_NONAME, "no such host")


async def _looked_up(host: str, port: int, deadline: float) -> list[tuple[socket.AddressFamily, Address]]:
    """Addresses of a name. Raises OSError."""
    async with asyncio.timeout_at(deadline):
        found = await look_up(host, port)
    return [(family, address) for family, _, _, _, address in found[:MAX_ADDRESSES]]


async def _connect(
    dialer: Dialer, network: PodNetwork, family: socket.AddressFamily, address: Address, deadline: float
) -> socket.socket:
    with contextlib.ExitStack() as stack:
        made = await _socket(dialer, network, family, deadline)
        stack.callback(made.close)
        if not _is_connected_at_once(made, address):
            async with asyncio.timeout_at(deadline):
                await asyncio.get_running_loop().sock_connect(made, address)
        if _has_met_itself(made):
            raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
        stack.pop_all()
        return made


def _has_met_itself(made: socket.socket) -> bool:
    """Nobody listens, and the port that the kernel chose for our end is the very one (net.selfConnect). Where a server
    has reset the connection meanwhile there was one."""
    with contextlib.suppress(OSError):
        return bool(made.getsockname() == made.getpeername())
    return False


def _is_connected_at_once(made: socket.socket, address: Address) -> bool:
    """Whether that was all, as with every server in the same network: then no turn of the loop is needed.

    The kernel says EINPROGRESS even so. Raises OSError.
    """
    error = made.connect_ex(address)
    if error not in (0, errno.EINPROGRESS):
        raise OSError(error, os.strerror(error))
    try:
        made.getpeername()
    except OSError:
        return False
    return True


async def _socket(dialer: Dialer, network: PodNetwork, family: socket.AddressFamily, deadline: float) -> socket.socket:
    """Raises DialError, also when the time is over: no container is to blame for that."""
    try:
        async with asyncio.timeout_at(deadline):
            return await dialer.socket(network, family)
    except TimeoutError:
        raise DialError("no socket was made in time") from None
