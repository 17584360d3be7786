"""HTTP probes of real servers on this machine: what is sent, what counts, and every fault of a server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import NamedTuple

import msgspec
import pytest

from ipc.k8s.api.v1.container import Container, ContainerPort
from ipc.k8s.api.v1.probe import HTTPHeader, Probe
from tests.support.servers.local_servers import (
    LOOPBACK,
    NO_HOSTS,
    DeadDialer,
    Handler,
    LocalDialer,
    NoDialer,
    Run,
    answering,
    dribbling,
    endless,
    http,
    nothing_left,
    probed,
    request_of,
    reset,
    resetting_after,
    response,
    server_context,
    serving,
    silent,
    target,
    unused_port,
)
from workers.podhttp.pod_network import PodNetwork
from workers.prober.outcome import MAX_OUTPUT_BYTES, Answer, ProbeError, ProbeOutcome, ProbeTarget

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
HTTP2_SETTINGS = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
AWAITING_HEADERS = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
READING_BODY = "context deadline exceeded (Client.Timeout or context cancellation while reading body)"
MALFORMED = "net/http: HTTP/1.x transport connection broken: malformed HTTP response "
ATTEMPTS = 3
TIMEOUT_S = 1


class Fault(NamedTuple):
    """A server's fault, and what is said about it."""

    handler: Handler
    says: str
    is_failure: bool = True
    """Else nothing is known about the container: upstream counts no answer that breaks off in its body."""


QUICK = {
    "resets before the answer": Fault(reset, "read: connection reset by peer"),
    "resets in the head": Fault(resetting_after(b"HTTP/1.1 200 OK\r\nContent-Le"), "read: connection reset by peer"),
    "resets in the body": Fault(resetting_after(HEAD + b"x"), "connection reset by peer", is_failure=False),
    "closes before the answer": Fault(answering(), "EOF"),
    "closes in the head": Fault(answering(b"HTTP/1.1 200 OK\r\nContent-Le"), "unexpected EOF"),
    "closes in the body": Fault(answering(HEAD + b"x"), "unexpected EOF", is_failure=False),
    "closes between chunks": Fault(answering(CHUNKED + b"2\r\nok\r\n"), "unexpected EOF", is_failure=False),
    "garbage": Fault(answering(b"\x00\xff\xfegarbage\r\n\r\n"), MALFORMED + '"\\x00\ufffd\ufffdgarbage"'),
    "HTTP/2": Fault(answering(HTTP2_SETTINGS), MALFORMED + r'"\x00\x00\x00\x04\x00\x00\x00\x00\x00"'),
    "SSH": Fault(answering(b"SSH-2.0-OpenSSH_9.7\r\n\r\n"), MALFORMED + '"SSH-2.0-OpenSSH_9.7"'),
    "garbage for a length": Fault(
        answering(b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n"), MALFORMED + '"HTTP/1.1 200 OK"'
    ),
    "garbage for a chunk": Fault(answering(CHUNKED, b"zz\r\nno\r\n", pause_s=0.05), "malformed body", is_failure=False),
    "a huge header": Fault(
        answering(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1_000_000 + b"\r\n\r\n"), MALFORMED + '"HTTP/1.1 200 OK"'
    ),
    "an endless header": Fault(endless(b"HTTP/1.1 200 OK\r\nX: ", b"x" * 65536), MALFORMED + '"HTTP/1.1 200 OK"'),
    "endless headers": Fault(endless(b"HTTP/1.1 200 OK\r\n", b"X: x\r\n" * 1000), MALFORMED + '"HTTP/1.1 200 OK"'),
    "redirects for ever": Fault(
        answering(response(status="302 Found", headers=["Location: /"])), "stopped after 10 redirects"
    ),
}
SLOW = {
    "never answers": Fault(silent, AWAITING_HEADERS),
    "a byte of the head at a time": Fault(dribbling(HEAD), AWAITING_HEADERS),
    "a byte of the body": Fault(answering(HEAD, *[b"x"] * 1000, pause_s=0.05), READING_BODY, is_failure=False),
    "never a final answer": Fault(
        answering(*[b"HTTP/1.1 100 Continue\r\n\r\n"] * 1000, pause_s=0.05), AWAITING_HEADERS
    ),
}


async def said(fault: Fault, port: int) -> None:
    """Several attempts at once, and all say what they should."""
    expected = f'Get "http://{LOOPBACK}:{port}/": {fault.says}'
    found = await asyncio.gather(*(probed(http(port)) for _ in range(ATTEMPTS)), return_exceptions=True)
    for outcome in found:
        if fault.is_failure:
            assert outcome == ProbeOutcome(Answer.FAILURE, expected)
        else:
            assert isinstance(outcome, ProbeError), outcome
            assert fault.says in str(outcome)


@pytest.mark.parametrize("fault", QUICK.values(), ids=QUICK)
def test_faults(run: Run, fault: Fault) -> None:
    async def scenario() -> None:
        async with serving(fault.handler) as port, nothing_left():
            await said(fault, port)

    run(scenario())


def test_faults_that_take_the_whole_timeout_and_no_more(run: Run) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with contextlib.AsyncExitStack() as stack:
            ports = [await stack.enter_async_context(serving(fault.handler)) for fault in SLOW.values()]
            began = loop.time()
            async with nothing_left():
                await asyncio.gather(*map(said, SLOW.values(), ports))
            assert loop.time() - began < 20 * TIMEOUT_S

    run(scenario())


def test_no_more_is_read_than_is_kept(run: Run) -> None:
    taken_bytes = 0

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal taken_bytes
        await request_of(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
        for _ in range(1000):
            writer.write(b"x" * 100_000)
            await writer.drain()
            taken_bytes += 100_000

    async def scenario() -> None:
        async with serving(flood) as port, nothing_left():
            assert await probed(http(port)) == ProbeOutcome(Answer.SUCCESS, "x" * MAX_OUTPUT_BYTES)

    run(scenario())
    assert taken_bytes < 20_000_000  # what the kernel holds for both of them


@pytest.mark.parametrize("moment", ["connecting", "head", "body", "handshake"])
def test_an_attempt_that_is_cancelled_leaves_nothing(run: Run, moment: str) -> None:
    async def scenario() -> None:
        handler = answering(HEAD, *[b"x"] * 1000, pause_s=0.05) if moment == "body" else silent
        async with serving(handler) as port, nothing_left():
            dialer = NoDialer() if moment == "connecting" else LocalDialer()
            probe = http(port, timeout_s=60, scheme="HTTPS" if moment == "handshake" else "HTTP")
            attempts = [asyncio.ensure_future(probed(probe, dialer=dialer)) for _ in range(ATTEMPTS)]
            await asyncio.sleep(0.2)
            for attempt in attempts:
                attempt.cancel()
            found = await asyncio.gather(*attempts, return_exceptions=True)
            assert [type(outcome) for outcome in found] == [asyncio.CancelledError] * ATTEMPTS

    run(scenario())


async def asked(probe: Probe, answer: bytes = response(), whom: ProbeTarget | None = None) -> list[str]:
    """The lines of the request that a server gets."""
    heads: list[bytes] = []
    assert probe.http_get is not None

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await request_of(reader))
        writer.write(answer)

    async with serving(handler) as port:
        await probed(msgspec.structs.replace(probe, http_get=msgspec.structs.replace(probe.http_get, port=port)), whom)
    (found,) = heads
    return found.decode().replace(str(port), "PORT").split("\r\n")[:-2]


def headers(*pairs: tuple[str, str]) -> tuple[HTTPHeader, ...]:
    return tuple(HTTPHeader(name=name, value=value) for name, value in pairs)


async def test_what_is_sent() -> None:
    assert await asked(http(1, path="/healthz?full=1#part")) == [
        "GET /healthz?full=1 HTTP/1.1",
        "Host: 127.0.0.1:PORT",
        "User-Agent: kube-probe/1.36",
        "Accept: */*",
        "Connection: close",
    ]


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ([("X-A", "1"), ("x-a", "2")], ["X-A: 1", "x-a: 2"]),
        ([("Host", "example.org")], ["Host: example.org"]),
        ([("Accept", "text/plain")], ["Accept: text/plain"]),
        ([("User-Agent", "mine")], ["User-Agent: mine"]),
        ([("X-Empty", ""), ("X-Padded", "  a  "), ("X-Text", "grüße")], ["X-Empty: ", "X-Padded: a", "X-Text: grüße"]),
    ],
)
async def test_headers_that_are_sent(given: list[tuple[str, str]], sent: list[str]) -> None:
    lines = await asked(http(1, http_headers=headers(*given)))
    assert [line for line in lines if line in sent] == sent
    names = [line.partition(":")[0].lower() for line in lines[1:]]
    assert all(names.count(name) == 1 for name in ("host", "user-agent", "accept", "connection"))


@pytest.mark.parametrize(
    "given", [("Accept", ""), ("User-Agent", ""), ("Content-Length", "5"), ("Transfer-Encoding", "chunked")]
)
async def test_headers_that_are_not_sent(given: tuple[str, str]) -> None:
    lines = await asked(http(1, http_headers=headers(given)))
    assert given[0].lower() not in [line.partition(":")[0].lower() for line in lines]


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "\x00"])
async def test_a_header_cannot_smuggle_another_one(value: str) -> None:
    async with serving(answering(response())) as port:
        outcome = await probed(http(port, http_headers=headers(("X-A", value))))
    assert outcome.answer is Answer.FAILURE
    assert "net/http: invalid request" in outcome.output


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        *[(status, Answer.SUCCESS) for status in ("200 OK", "204 No Content", "299 Odd")],
        *[(status, Answer.WARNING) for status in ("300 Multiple Choices", "302 Found", "304 Not Modified", "399 Odd")],
        *[(status, Answer.FAILURE) for status in ("400 Bad Request", "404 Not Found", "500 Oops", "503 Later")],
    ],
)
async def test_statuses(status: str, answer: Answer) -> None:
    body = b"" if status[:3] in ("204", "304") else b"secret"
    texts = {
        Answer.SUCCESS: body.decode(),
        Answer.WARNING: f"Probe terminated redirects, Response body: {body.decode()}",
        Answer.FAILURE: f"HTTP probe failed with statuscode: {status[:3]}",
    }
    async with serving(answering(response(body, status))) as port:
        assert await probed(http(port)) == ProbeOutcome(answer, texts[answer])


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\n\r\nok",
        b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
        CHUNKED + b"1\r\no\r\n1\r\nk\r\n0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + response(),
        response(headers=["Content-Encoding: gzip"]),
        response(headers=["Set-Cookie: a=b", "X-Big: " + "x" * 50_000]),
    ],
)
async def test_answers_that_are_good(answer: bytes) -> None:
    async with serving(answering(answer)) as port:
        assert await probed(http(port)) == ProbeOutcome(Answer.SUCCESS, "ok")


async def test_a_switch_to_another_protocol_that_was_asked_for() -> None:
    upgrade = headers(("Connection", "Upgrade"), ("Upgrade", "websocket"))
    answer = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nframes"
    async with serving(answering(answer)) as port:
        outcome = await probed(http(port, http_headers=upgrade))
    assert outcome == ProbeOutcome(Answer.FAILURE, "HTTP probe failed with statuscode: 101")


async def test_a_body_that_is_no_text() -> None:
    async with serving(answering(response(b"\xff\x00ok"))) as port:
        assert await probed(http(port)) == ProbeOutcome(Answer.SUCCESS, "\ufffd\x00ok")


class Redirects:
    """A server of redirects: where each target leads. What leads nowhere is answered with its Host header."""

    def __init__(self, locations: Mapping[str, str], status: int = 302) -> None:
        self.locations = dict(locations)
        self.targets: list[str] = []
        self._status = status

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await request_of(reader)).decode()
        target, host = head.split()[1], head.partition("Host: ")[2].partition("\r\n")[0]
        self.targets.append(target)
        location = self.locations.get(target)
        if location is None:
            writer.write(response(host.encode()))
        else:
            writer.write(response(b"moved", f"{self._status} Moved", [f"Location: {location}"]))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_on_the_same_host_are_followed(status: int) -> None:
    server = Redirects({"/": "/a/b?x=1", "/a/b?x=1": "c#part", "/a/c": "?y"}, status)
    async with serving(server) as port:
        outcome = await probed(http(port))
        assert outcome == ProbeOutcome(Answer.SUCCESS, f"{LOOPBACK}:{port}")
    assert server.targets == ["/", "/a/b?x=1", "/a/c", "/a/c?y"]


async def test_a_redirect_to_another_port_and_scheme_of_the_host_is_followed() -> None:
    server = Redirects({})
    async with serving(answering(response(b"there")), tls=True) as other, serving(server) as port:
        server.locations["/"] = f"https://{LOOPBACK}:{other}/"
        assert await probed(http(port)) == ProbeOutcome(Answer.SUCCESS, "there")


async def test_a_redirect_that_is_no_unicode_is_an_answer_like_any_other() -> None:
    """The outcome is Unicode: it is passed on in messages."""
    moved = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: http://[\xff\r\n\r\n"
    async with serving(answering(moved)) as port:
        outcome = await probed(http(port))
    assert outcome.answer is Answer.FAILURE
    assert 'Location header "http://[%FF"' in outcome.output
    msgspec.msgpack.encode(outcome)


@pytest.mark.parametrize("location", ["http://example.org/", "//example.org/x", "https://[::1]/", "ftp://example.org/"])
async def test_a_redirect_to_another_host_is_a_success_that_is_told(location: str) -> None:
    async with serving(Redirects({"/": location})) as port:
        outcome = await probed(http(port))
    assert outcome == ProbeOutcome(Answer.WARNING, "Probe terminated redirects, Response body: moved")


@pytest.mark.parametrize(
    ("location", "text"),
    [
        (f"ftp://{LOOPBACK}/", 'unsupported protocol scheme "ftp"'),
        ("http://[::1/", "failed to parse Location header"),
        (f"http://{LOOPBACK}:99999/", "failed to parse Location header"),
        ("http://[\xff", 'failed to parse Location header "http://[%'),
    ],
)
async def test_a_redirect_that_leads_nowhere_is_a_failure(location: str, text: str) -> None:
    async with serving(Redirects({"/": location})) as port:
        outcome = await probed(http(port))
    assert outcome.answer is Answer.FAILURE
    assert text in outcome.output


async def test_ten_requests_are_made_and_no_eleventh() -> None:
    nine = Redirects({f"/{i}": f"/{i + 1}" for i in range(9)})
    async with serving(nine) as port:
        assert (await probed(http(port, path="/0"))).answer is Answer.SUCCESS
    ten = Redirects({f"/{i}": f"/{i + 1}" for i in range(10)})
    async with serving(ten) as port:
        outcome = await probed(http(port, path="/0"))
        assert outcome.output == f'Get "http://{LOOPBACK}:{port}/10": stopped after 10 redirects'
    assert (len(nine.targets), len(ten.targets)) == (10, 10)


async def test_a_host_header_is_kept_on_a_relative_redirect_only() -> None:
    probe_headers = headers(("Host", "example.org"))
    async with serving(Redirects({"/": "/end"})) as port:
        assert (await probed(http(port, http_headers=probe_headers))).output == "example.org"
    server = Redirects({})
    async with serving(server) as port:
        server.locations["/"] = f"http://{LOOPBACK}:{port}/end"
        assert (await probed(http(port, http_headers=probe_headers))).output == f"{LOOPBACK}:{port}"


async def test_the_timeout_holds_over_all_redirects() -> None:
    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        await asyncio.sleep(0.4)
        writer.write(response(status="302 Found", headers=["Location: /"]))

    async with serving(slow) as port:
        assert AWAITING_HEADERS in (await probed(http(port))).output


async def test_an_expired_certificate_is_as_good_as_any() -> None:
    async with serving(answering(response()), tls=True) as port:
        assert await probed(http(port, scheme="HTTPS")) == ProbeOutcome(Answer.SUCCESS, "ok")


@pytest.mark.parametrize("name", ["localhost", LOOPBACK])
async def test_a_name_is_told_in_the_handshake_an_address_is_not(name: str) -> None:
    context = server_context()
    named: list[str | None] = []
    context.sni_callback = lambda _socket, told, _context: named.append(told)
    async with serving(answering(response()), tls=context) as port:
        outcome = await probed(http(port, scheme="HTTPS", host=name, http_headers=headers(("Host", "example.org"))))
    assert outcome.answer is Answer.SUCCESS
    assert named == ["localhost" if name == "localhost" else None]


async def test_plain_http_where_tls_is_asked_for() -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    async with serving(plain) as port, nothing_left():
        outcome = await probed(http(port, scheme="HTTPS"))
    assert outcome.answer is Answer.FAILURE
    assert outcome.output.endswith("http: server gave HTTP response to HTTPS client")


async def test_tls_where_plain_http_is_asked_for() -> None:
    async with serving(answering(response()), tls=True) as port, nothing_left():
        outcome = await probed(http(port))
    assert outcome.answer is Answer.FAILURE


async def test_an_ipv6_address() -> None:
    async with serving(Redirects({"/": "/end"}), host="::1") as port:
        assert await probed(http(port), target(ip="::1")) == ProbeOutcome(Answer.SUCCESS, f"[::1]:{port}")


@pytest.mark.parametrize("scheme", ["HTTP", "HTTPS"])
@pytest.mark.parametrize("host", NO_HOSTS)
async def test_what_is_no_host_is_a_failure_at_once(host: str, scheme: str) -> None:
    outcome = await probed(http(80, timeout_s=60, host=host, scheme=scheme))
    assert outcome.answer is Answer.FAILURE
    assert outcome.output.endswith(f": dial tcp: lookup {host}: no such host")


async def test_nobody_listens() -> None:
    port = unused_port()
    assert await probed(http(port, path="/x")) == ProbeOutcome(
        Answer.FAILURE, f'Get "http://{LOOPBACK}:{port}/x": dial tcp {LOOPBACK}:{port}: connect: connection refused'
    )


async def test_a_port_by_name_and_a_name_that_no_port_has() -> None:
    async with serving(answering(response())) as port:
        container = Container(name="main", ports=(ContainerPort(name="web", container_port=port),))
        assert (await probed(http("web"), target(container))).answer is Answer.SUCCESS
        with pytest.raises(ProbeError, match='port "other" not found'):
            await probed(http("other"), target(container))


async def test_a_pod_is_dialled_in_its_network_and_a_host_from_the_node() -> None:
    dialer = LocalDialer()
    async with serving(answering(response())) as port:
        pod = PodNetwork(infra_pid=77, infra_start_ticks=7, ip=LOOPBACK)
        whom = msgspec.structs.replace(target(), network=pod)
        for host in ("", LOOPBACK, "localhost"):
            assert (await probed(http(port, host=host), whom, dialer)).answer is Answer.SUCCESS
    assert dialer.asked == [pod, pod, PodNetwork()]


async def test_a_dialer_that_is_away_says_nothing_about_the_container() -> None:
    with pytest.raises(ProbeError, match="no dialer"):
        await probed(http(80), dialer=DeadDialer())


async def test_a_dialer_that_hangs_neither() -> None:
    with pytest.raises(ProbeError, match="no socket was made in time"):
        await probed(http(80), dialer=NoDialer())
