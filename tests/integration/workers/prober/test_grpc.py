"""gRPC probes of real servers on this machine."""

from __future__ import annotations

import asyncio
import contextlib
from typing import NamedTuple

import pytest
from h2.errors import ErrorCodes

from tests.support.servers import health_server
from tests.support.servers.health_server import (
    NOT_SERVING,
    SERVICE_UNKNOWN,
    SERVING,
    UNKNOWN,
    Heard,
    Server,
    failing,
    health,
    plain,
    speaking,
)
from tests.support.servers.local_servers import (
    LOOPBACK,
    DeadDialer,
    Handler,
    LocalDialer,
    NoDialer,
    Run,
    answering,
    dribbling,
    endless,
    grpc,
    nothing_left,
    probed,
    response,
    serving,
    silent,
    target,
    unused_port,
)
from workers.prober.grpc import decode_status, encode_request
from workers.prober.grpc_call import RpcError
from workers.prober.outcome import Answer, ProbeError, ProbeOutcome

ATTEMPTS = 3
TIMEOUT_S = 1
RPC_LATE = "timeout: health rpc did not complete within 1s"
UNIMPLEMENTED = "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): "


def failed(code: str, text: str) -> str:
    return f"error: health rpc probe failed: rpc error: code = {code} desc = {text}"


def nothing(_server: Server, _stream: int, _message: bytes) -> None:
    return


def reset(code: ErrorCodes) -> Handler:
    return speaking(lambda server, stream, _message: server.reset_stream(stream, code))


def goaway(server: Server, _stream: int, _message: bytes) -> None:
    server.close_connection(ErrorCodes.NO_ERROR)


def garbage(server: Server, stream: int, _message: bytes) -> None:
    server.send_headers(stream, health_server.GRPC_HEAD)
    server.send_data(stream, b"garbage", end_stream=True)


def header_bomb(server: Server, stream: int, _message: bytes) -> None:
    bomb = [(f"x-{number}", "x" * 1000) for number in range(200)]
    server.send_headers(stream, [*health_server.GRPC_HEAD, *bomb], end_stream=True)


async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """After the settings."""
    writer.write(bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
    await reader.read(65536)
    await asyncio.sleep(0.1)


class Fault(NamedTuple):
    handler: Handler
    says: str


QUICK = {
    "knows no such service": Fault(health({"other": SERVING}), failed("NotFound", "unknown service")),
    "does not serve": Fault(health({"": NOT_SERVING}), 'service unhealthy (responded with "NOT_SERVING")'),
    "does not know": Fault(health({"": UNKNOWN}), 'service unhealthy (responded with "UNKNOWN")'),
    "says the service is unknown": Fault(
        health({"": SERVICE_UNKNOWN}), 'service unhealthy (responded with "SERVICE_UNKNOWN")'
    ),
    "says what nobody knows": Fault(health({"": 7}), 'service unhealthy (responded with "7")'),
    "has no health service": Fault(speaking(failing("12", "unknown%20service")), f"{UNIMPLEMENTED}unknown service"),
    "is a web server": Fault(
        speaking(plain("404")), f"{UNIMPLEMENTED}unexpected HTTP status code received from server: 404 (Not Found)"
    ),
    "is a web server that is ill": Fault(
        speaking(plain("503")),
        failed("Unavailable", "unexpected HTTP status code received from server: 503 (Service Unavailable)"),
    ),
    "has a strange status": Fault(
        speaking(plain("999")), failed("Unknown", "unexpected HTTP status code received from server: 999")
    ),
    "is a web server of another kind": Fault(
        speaking(plain("200")), failed("Unknown", 'transport: received unexpected content-type "text/html"')
    ),
    "says that it was too late": Fault(speaking(failing("4", "late")), RPC_LATE),
    "fails with a code that nobody knows": Fault(speaking(failing("99", "x")), failed("Code(99)", "x")),
    "fails with no number": Fault(
        speaking(failing("no", "x")), failed("Internal", 'transport: malformed grpc-status: "no"')
    ),
    "fails with 5,000 digits": Fault(
        speaking(failing("9" * 5000, "x")), failed("Internal", f'transport: malformed grpc-status: "{"9" * 64}"')
    ),
    "fails with a code of more than 32 bits": Fault(
        speaking(failing("2147483648", "x")), failed("Internal", 'transport: malformed grpc-status: "2147483648"')
    ),
    "fails with a message that is no UTF-8": Fault(
        speaking(failing("5", b"\xff\xfe")), failed("NotFound", "\ufffd\ufffd")
    ),
    "has a status of 5,000 digits": Fault(
        speaking(plain("9" * 5000)),
        failed("Unknown", f"unexpected HTTP status code received from server: {'9' * 64}"),
    ),
    "has a content type that is no UTF-8": Fault(
        speaking(plain("200", b"\xff")), failed("Unknown", 'transport: received unexpected content-type "\ufffd"')
    ),
    "answers a number of 9,000 bytes": Fault(
        speaking(health_server.answer(b"\x08" + b"\xff" * 8999 + b"\x01")),
        failed("Internal", "grpc: failed to unmarshal the received message"),
    ),
    "answers a field of 9,000 bytes": Fault(
        speaking(health_server.answer(b"\x80" * 8999 + b"\x01")),
        failed("Internal", "grpc: failed to unmarshal the received message"),
    ),
    "answers a negative status": Fault(
        speaking(health_server.answer(b"\x08" + b"\xff" * 9 + b"\x01")), 'service unhealthy (responded with "-1")'
    ),
    "refuses the stream": Fault(
        reset(ErrorCodes.REFUSED_STREAM),
        failed("Unavailable", "stream terminated by RST_STREAM with error code: REFUSED_STREAM"),
    ),
    "breaks the stream off": Fault(
        reset(ErrorCodes.INTERNAL_ERROR),
        failed("Internal", "stream terminated by RST_STREAM with error code: INTERNAL_ERROR"),
    ),
    "goes away": Fault(speaking(goaway), failed("Unavailable", "closing transport due to: received GOAWAY")),
    "hangs up": Fault(hang_up, failed("Unavailable", "error reading from server: EOF")),
    "sends no trailers": Fault(
        speaking(garbage), failed("Internal", "server closed the stream without sending trailers")
    ),
    "answers nothing": Fault(speaking(failing("0", "")), failed("Internal", "unexpected EOF")),
    "answers compressed": Fault(
        speaking(health_server.answer(b"x", flag=1)),
        failed("Internal", "grpc: compressed flag set with identity or empty encoding"),
    ),
    "answers garbage": Fault(
        speaking(health_server.answer(b"\xff\xff")),
        failed("Internal", "grpc: failed to unmarshal the received message"),
    ),
    "answers without end": Fault(
        speaking(health_server.answer(bytes(1_000_000))),
        failed("ResourceExhausted", "grpc: received message larger than max (10240)"),
    ),
}
SILENT = {
    "never answers": silent,
    "speaks HTTP/1": answering(response()),
    "speaks garbage": answering(b"\xff" * 100),
    "speaks a byte at a time": dribbling(b"\x00" * 100, period_s=0.5),
    "writes without end": endless(b"", b"x" * 65536),
}


async def said(handler: Handler, text: str) -> None:
    async with serving(handler) as port, nothing_left():
        found = await asyncio.gather(*(probed(grpc(port)) for _ in range(ATTEMPTS)))
        assert found == [ProbeOutcome(Answer.FAILURE, text.replace("PORT", str(port)))] * ATTEMPTS


@pytest.mark.parametrize("fault", QUICK.values(), ids=QUICK)
def test_faults(run: Run, fault: Fault) -> None:
    run(said(fault.handler, fault.says))


def test_too_many_headers(run: Run) -> None:
    async def scenario() -> None:
        async with serving(speaking(header_bomb)) as port, nothing_left():
            assert (await probed(grpc(port))).output.startswith(failed("Unavailable", "error reading from server: "))

    run(scenario())


def test_a_server_that_speaks_no_http2_is_dialled_until_the_time_is_over(run: Run) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with contextlib.AsyncExitStack() as stack:
            ports = [await stack.enter_async_context(serving(handler)) for handler in SILENT.values()]
            ports.append(unused_port())
            began = loop.time()
            async with nothing_left():
                found = await asyncio.gather(*(probed(grpc(port, TIMEOUT_S)) for port in ports))
            assert TIMEOUT_S * 0.9 < loop.time() - began < 20 * TIMEOUT_S
        for outcome, port in zip(found, ports, strict=True):
            text = f'timeout: failed to connect service "{LOOPBACK}:{port}" within 1s: context deadline exceeded'
            assert outcome == ProbeOutcome(Answer.FAILURE, text)

    run(scenario())


def test_a_server_that_says_its_settings_and_no_more(run: Run) -> None:
    run(said(speaking(nothing), RPC_LATE))


def test_a_server_that_comes_while_it_is_dialled(run: Run) -> None:
    async def scenario() -> None:
        calls = 0
        good = health({"": SERVING})

        async def second_time(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal calls
            calls += 1
            if calls > 1:
                await good(reader, writer)

        async with serving(second_time) as port, nothing_left():
            assert (await probed(grpc(port, timeout_s=10))).answer is Answer.SUCCESS
        assert calls == 2

    run(scenario())


def test_an_attempt_that_is_cancelled_leaves_nothing(run: Run) -> None:
    async def scenario() -> None:
        async with contextlib.AsyncExitStack() as stack:
            ports = [await stack.enter_async_context(serving(handler)) for handler in (silent, speaking(nothing))]
            async with nothing_left():
                attempts = [asyncio.ensure_future(probed(grpc(port, timeout_s=60))) for port in (*ports, unused_port())]
                attempts.append(asyncio.ensure_future(probed(grpc(80, timeout_s=60), dialer=NoDialer())))
                await asyncio.sleep(0.2)
                for attempt in attempts:
                    attempt.cancel()
                found = await asyncio.gather(*attempts, return_exceptions=True)
                assert [type(outcome) for outcome in found] == [asyncio.CancelledError] * len(attempts)

    run(scenario())


@pytest.mark.parametrize("service", [None, "", "db", "x" * 300])
async def test_what_is_sent(service: str | None) -> None:
    heard = Heard()
    async with serving(health({service or "": SERVING} if service != "x" * 300 else {}, heard)) as port:
        outcome = await probed(grpc(port, timeout_s=7, service=service))
    assert outcome.answer is (Answer.FAILURE if service == "x" * 300 else Answer.SUCCESS)
    timeout = heard.headers["grpc-timeout"]
    assert timeout.endswith("m")
    assert 6000 < int(timeout[:-1]) <= 7000
    assert dict(heard.headers) == {
        ":method": "POST",
        ":scheme": "http",
        ":path": "/grpc.health.v1.Health/Check",
        ":authority": f"{LOOPBACK}:{port}",
        "content-type": "application/grpc",
        "user-agent": "kube-probe/1.36",
        "te": "trailers",
        "grpc-timeout": timeout,
    }
    name = (service or "").encode()
    lengths = {0: b"", 2: b"\x0a\x02", 300: b"\x0a\xac\x02"}
    message = lengths[len(name)] + name
    assert heard.message == b"\0" + len(message).to_bytes(4, "big") + message


async def test_it_serves() -> None:
    async with serving(health({"": SERVING})) as port, nothing_left():
        assert await probed(grpc(port)) == ProbeOutcome(Answer.SUCCESS, "service healthy")


async def test_an_ipv6_address() -> None:
    async with serving(health({"": SERVING}), host="::1") as port:
        assert (await probed(grpc(port), target(ip="::1"))).answer is Answer.SUCCESS


@pytest.mark.parametrize("dialer", [DeadDialer(), NoDialer()])
async def test_a_dialer_that_is_away_says_nothing_about_the_container(dialer: LocalDialer) -> None:
    with pytest.raises(ProbeError):
        await probed(grpc(80), dialer=dialer)


@pytest.mark.parametrize(
    ("response", "status"),
    [
        (b"", "UNKNOWN"),
        (b"\x08\x01", "SERVING"),
        (b"\x08\x02\x08\x01", "SERVING"),
        (b"\x12\x03abc\x08\x01", "SERVING"),
        (b"\x11" + bytes(8) + b"\x1d" + bytes(4) + b"\x08\x01", "SERVING"),
        (b"\x08\xac\x02", "300"),
    ],
)
def test_decode_status(response: bytes, status: str) -> None:
    assert decode_status(response) == status


@pytest.mark.parametrize("response", [b"\x08", b"\x08\xff", b"\x12\x05abc", b"\x11\x00", b"\x0b\x08\x01", b"\xff"])
def test_what_is_no_message(response: bytes) -> None:
    with pytest.raises(RpcError):
        decode_status(response)


def test_a_request_for_the_whole_server_is_empty() -> None:
    assert encode_request("") == b""
