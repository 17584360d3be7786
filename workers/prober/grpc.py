"""A gRPC probe: does the server say that it serves, by the health protocol grpc.health.v1."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from h2.exceptions import H2Error

from ipc.host.text.durations import format_duration
from ipc.host.text.gofmt import quoted
from ipc.k8s.api.v1.probe import GRPCAction
from ipc.link.eventloop.loop_clock import loop_time
from workers.podhttp.endpoints import Endpoint, connect, endpoint_of
from workers.podhttp.pod_network import Dialer
from workers.podhttp.user_agents import PROBE_USER_AGENT
from workers.prober.grpc_call import Call, Connection, RpcError
from workers.prober.outcome import Answer, ProbeOutcome, ProbeTarget

_CHECK: Final = "/grpc.health.v1.Health/Check"
_STATUSES: Final = ("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")
"""grpc.health.v1.HealthCheckResponse.ServingStatus."""
_SERVING: Final = "SERVING"
_RETRY_S: Final = 1.0
_RETRY_FACTOR: Final = 1.6
"""Pauses of a dial that blocks (google.golang.org/grpc/backoff, DefaultConfig), in seconds."""
_SERVICE_FIELD: Final = 1
_STATUS_FIELD: Final = 1
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
"""Wire types of protobuf."""
_MAX_VARINT_BYTES: Final = 10
_INT32_SIGN: Final = 2**31


async def probe_grpc(action: GRPCAction, target: ProbeTarget, timeout_s: int, dialer: Dialer) -> ProbeOutcome:
    """Mirrors grpcProber.Probe (pkg/probe/grpc/grpc.go). Raises PortError, DialError.

    The dial blocks there: it is repeated until there is a server that speaks HTTP/2 or the time is over.
    """
    endpoint = endpoint_of(target.network, "", action.port, target.container)
    deadline = loop_time() + timeout_s
    try:
        connection = await _dial(dialer, endpoint, deadline)
    except TimeoutError:
        return _failure(
            f"timeout: failed to connect service {quoted(endpoint.address)} within {format_duration(timeout_s)}: "
            "context deadline exceeded"
        )
    with connection:
        try:
            async with asyncio.timeout_at(deadline):
                return _outcome(await connection.call(_call(endpoint, action.service or "", deadline)))
        except TimeoutError:
            return _failure(_late(timeout_s))
        except RpcError as error:
            return _failure(_text(error, timeout_s))


async def _dial(dialer: Dialer, endpoint: Endpoint, deadline: float) -> Connection:
    """Raises TimeoutError, DialError."""
    pause_s = _RETRY_S
    while True:
        with contextlib.suppress(_Unready):
            return await _dial_once(dialer, endpoint, deadline)
        async with asyncio.timeout_at(deadline):
            await asyncio.sleep(pause_s)
        pause_s *= _RETRY_FACTOR


class _Unready(Exception):
    """Nobody is there who speaks HTTP/2."""


async def _dial_once(dialer: Dialer, endpoint: Endpoint, deadline: float) -> Connection:
    with contextlib.ExitStack() as stack:
        try:
            connection = stack.enter_context(Connection(await connect(dialer, endpoint, deadline)))
            async with asyncio.timeout_at(deadline):
                await connection.open()
        except TimeoutError:
            raise
        except (OSError, H2Error) as error:
            raise _Unready from error
        stack.pop_all()
        return connection


def _call(endpoint: Endpoint, service: str, deadline: float) -> Call:
    left_s = deadline - loop_time()
    return Call(
        authority=endpoint.address,
        path=_CHECK,
        user_agent=PROBE_USER_AGENT,
        timeout_ms=max(1, round(1000 * left_s)),
        request=encode_request(service),
    )


def _outcome(response: bytes) -> ProbeOutcome:
    """Raises RpcError when that is no answer."""
    status = decode_status(response)
    if status == _SERVING:
        return ProbeOutcome(Answer.SUCCESS, "service healthy")
    return _failure(f"service unhealthy (responded with {quoted(status)})")


def _failure(text: str) -> ProbeOutcome:
    return ProbeOutcome(Answer.FAILURE, text)


def _text(error: RpcError, timeout_s: int) -> str:
    if error.code == "Unimplemented":
        return (
            f"error: this server does not implement the grpc health protocol (grpc.health.v1.Health): {error.message}"
        )
    if error.code == "DeadlineExceeded":
        return _late(timeout_s)
    return f"error: health rpc probe failed: {error}"


def _late(timeout_s: int) -> str:
    return f"timeout: health rpc did not complete within {format_duration(timeout_s)}"


def encode_request(service: str) -> bytes:
    """A HealthCheckRequest; the empty service is left out, as is every default in protobuf."""
    name = service.encode()
    return bytes([_SERVICE_FIELD << 3 | _BYTES]) + _varint(len(name)) + name if name else b""


def decode_status(response: bytes) -> str:
    """The name of the status in a HealthCheckResponse; of several the last one holds. Raises RpcError."""
    status, at = 0, 0
    try:
        while at < len(response):
            tag, at = _read_varint(response, at)
            value, at = _read_field(response, at, tag & 7)
            if tag == _STATUS_FIELD << 3 | _VARINT:
                status = value
    except (IndexError, ValueError):
        raise RpcError("Internal", "grpc: failed to unmarshal the received message") from None
    status = (status + _INT32_SIGN) % (2 * _INT32_SIGN) - _INT32_SIGN  # an enumeration has 32 bits, the varint up to 64
    return _STATUSES[status] if 0 <= status < len(_STATUSES) else str(status)


def _read_field(message: bytes, at: int, wire_type: int) -> tuple[int, int]:
    """Number in the field, if it is one, and where the next field begins. Raises IndexError, ValueError."""
    if wire_type == _VARINT:
        return _read_varint(message, at)
    if wire_type == _BYTES:
        length, at = _read_varint(message, at)
    else:
        length = {_FIXED64: 8, _FIXED32: 4}.get(wire_type, len(message))
    if at + length > len(message):
        raise ValueError("cut off, or not known")
    return 0, at + length


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    """Raises IndexError when it is cut off, ValueError when it is longer than 64 bits take."""
    value = 0
    for shift in range(0, 7 * _MAX_VARINT_BYTES, 7):
        value |= (message[at] & 0x7F) << shift
        at += 1
        if message[at - 1] < 0x80:
            return value, at
    raise ValueError("variable length integer overflow")


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
