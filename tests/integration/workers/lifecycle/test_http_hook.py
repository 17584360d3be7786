"""httpGet hooks against servers on this machine, for a pod in its network."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest

from ipc.host.clock import SystemClock
from ipc.k8s.api.v1.container import Container, ContainerPort
from ipc.k8s.api.v1.probe import HTTPGetAction, HTTPHeader, Lifecycle, LifecycleHandler
from ipc.link.messages.pod_worker import SyncPod, WorkType
from tests.fakes.podman import FakePodman
from tests.fakes.runtime import FakeRuntime
from tests.support.pods import IMAGE, UID, pod
from tests.support.servers.local_servers import (
    LOOPBACK,
    DeadDialer,
    Handler,
    LocalDialer,
    answering,
    nothing_left,
    request_of,
    reset,
    response,
    serving,
    silent,
    unused_port,
)
from tests.support.sync import Host
from workers.compute.kill_spec import kill_all
from workers.lifecycle.handlers import HookFailed, HookTarget
from workers.podhttp.hook_ports import with_port_number
from workers.podhttp.pod_network import Dialer, DialTimeout, PodNetwork

SECRET = "hunter2"
DEADLINE_S = 30.0
OF = pod(host_network=True)


class Late(LocalDialer):
    """Is away for a time."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self._times = times

    async def socket(self, network: PodNetwork, family: socket.AddressFamily) -> socket.socket:
        made = await super().socket(network, family)
        if len(self.asked) <= self._times:
            made.close()
            raise DialTimeout("not now")
        return made


class World:
    """A pod in the host's network, and a sync of it."""

    def __init__(self, directory: Path, dialer: Dialer) -> None:
        self.podman = FakePodman(SystemClock(), images=[IMAGE])
        self.runtime = FakeRuntime(self.podman, "t")
        self.host = Host(directory, SystemClock(), lambda: self.runtime, "t", dialer, (LOOPBACK,))

    async def hook(self, **action: Any) -> None:
        """Run it in the pod. Raises HookFailed."""
        request = SyncPod(uid=UID, generation=1, incarnation=1, kind=WorkType.SYNC, pod=OF, row=-1, min_observed_at=0.0)
        ids = (container.id for container in self.podman.containers.values() if not container.is_infra)
        run, target = self.host.new_run(request), HookTarget(next(ids, "gone"), "main")
        async with asyncio.timeout(DEADLINE_S):
            await self.host.context.handlers.run(run, LifecycleHandler(http_get=HTTPGetAction(**action)), target)


@pytest.fixture
def dialer() -> LocalDialer:
    return LocalDialer()


@pytest.fixture
async def world(tmp_path: Path, dialer: LocalDialer) -> World:
    made = World(tmp_path, dialer)
    await made.host.sync(OF)
    made.host.reasons()
    made.host.context.services.files.close()  # hooks need no files, and the tests count threads
    return made


class Recorder:
    """Answers, and keeps what it was asked."""

    def __init__(self, *answers: bytes) -> None:
        self.requests: list[list[str]] = []
        self._answers = list(answers)

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.requests.append((await request_of(reader)).decode().rstrip().split("\r\n"))
        writer.write(self._answers.pop(0) if self._answers else response())
        await writer.drain()


async def test_the_request_is_upstreams(world: World, dialer: LocalDialer) -> None:
    recorder = Recorder()
    async with nothing_left(), serving(recorder) as port:
        await world.hook(port=port, path="/started?x=1", http_headers=(HTTPHeader(name="X-Hook", value="yes"),))
    [lines] = recorder.requests
    assert lines[0] == "GET /started?x=1 HTTP/1.1"
    assert {
        f"Host: {LOOPBACK}:{port}",
        "User-Agent: kube-lifecycle/1.36",
        "Accept: */*",
        "X-Hook: yes",
        "Connection: close",
    } == set(lines[1:])
    assert dialer.asked == [PodNetwork(ip=LOOPBACK)]
    assert world.host.reasons() == []


@pytest.mark.parametrize("status", ["204 No Content", "404 Not Found", "500 Internal Server Error"])
async def test_no_status_is_a_failure(world: World, status: str) -> None:
    async with serving(answering(response(status=status))) as port:
        await world.hook(port=port)


async def test_a_redirect_to_the_same_host_is_followed_and_no_other(world: World) -> None:
    def to(location: str) -> bytes:
        return response(status="302 Found", headers=[f"Location: {location}"])

    recorder = Recorder(to("/there"), to("http://elsewhere.invalid/"))
    async with serving(recorder) as port:
        await world.hook(port=port, path="/here")
    assert [request[0] for request in recorder.requests] == ["GET /here HTTP/1.1", "GET /there HTTP/1.1"]


async def test_redirects_for_ever_are_a_failure(world: World) -> None:
    async with serving(answering(response(status="302 Found", headers=["Location: /"]))) as port:
        with pytest.raises(HookFailed, match="stopped after 10 redirects"):
            await world.hook(port=port)


async def test_https_answered_in_plain_http_falls_back_and_is_told(world: World) -> None:
    recorder = Recorder()

    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await reader.readexactly(1)
        if first != b"G":
            writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\nthat was no HTTP")
            await writer.drain()
            return
        await recorder(reader, writer)

    async with serving(plain) as port:
        headers = (HTTPHeader(name="Authorization", value=SECRET), HTTPHeader(name="X-Kept", value="yes"))
        await world.hook(port=port, scheme="HTTPS", http_headers=headers)
    [lines] = recorder.requests
    assert "X-Kept: yes" in lines
    assert SECRET not in str(lines)
    [event] = world.host.events
    assert (event.type, event.reason) == ("Warning", "LifecycleHTTPFallback")
    assert event.message == (
        f"request to HTTPS lifecycle hook {LOOPBACK}:{port} got HTTP response, retry with HTTP succeeded"
    )


async def test_https_with_any_certificate(world: World) -> None:
    async with serving(answering(response()), tls=True) as port:
        await world.hook(port=port, scheme="HTTPS")
    assert world.host.reasons() == []


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        pytest.param(reset, "connection reset by peer", id="resets"),
        pytest.param(answering(f"{SECRET}\r\n\r\n".encode()), "what was answered is no HTTP", id="garbage"),
        pytest.param(
            answering(response(status="302 Found", headers=[f"Location: http://[{SECRET}"])),
            "it was redirected, and that cannot be followed",
            id="a redirect to nowhere",
        ),
    ],
)
async def test_no_answer_is_a_failure_and_nothing_of_it_is_told(world: World, handler: Handler, words: str) -> None:
    async with nothing_left(), serving(handler) as port:
        with pytest.raises(HookFailed) as failed:
            await world.hook(port=port)
    assert failed.value.message.startswith("httpGet hook of container main: ")
    assert words in failed.value.message
    assert SECRET not in failed.value.message


async def test_nobody_listens(world: World) -> None:
    with pytest.raises(HookFailed, match="connect: connection refused"):
        await world.hook(port=unused_port())


async def test_an_unknown_port_name(world: World) -> None:
    with pytest.raises(HookFailed, match='port "web" not found'):
        await world.hook(port="web")


async def test_a_hook_that_is_given_up_leaves_nothing(world: World) -> None:
    async with nothing_left(), serving(silent) as port:
        hook = asyncio.create_task(world.hook(port=port))
        await asyncio.wait({hook}, timeout=0.2)
        hook.cancel()
        await asyncio.gather(hook, return_exceptions=True)
        assert hook.cancelled()


async def test_a_dialer_that_is_away_is_waited_for(tmp_path: Path) -> None:
    world = World(tmp_path, Late(2))
    await world.host.sync(OF)
    async with serving(answering(response())) as port:
        await world.hook(port=port)


async def test_a_dialer_that_refuses_is_a_failure(tmp_path: Path) -> None:
    world = World(tmp_path, DeadDialer())
    await world.host.sync(OF)
    with pytest.raises(HookFailed, match="no dialer"):
        await world.hook(port=80)


async def test_the_sandbox_is_looked_up_by_ids(world: World) -> None:
    before = len(world.runtime.calls)
    with pytest.raises(HookFailed):
        await world.hook(port=unused_port())
    assert list(world.runtime.calls)[before:] == ["inspect_container", "inspect_pod", "inspect_container"]


async def test_a_pod_without_a_sandbox(tmp_path: Path) -> None:
    """A pod whose sandbox went down in the meantime: the host's network is not its own."""
    dialer = LocalDialer()
    with pytest.raises(HookFailed):
        await World(tmp_path, dialer).hook(port=unused_port())
    assert [network.infra_pid for network in dialer.asked] == [-1]


# --- ports by name ---------------------------------------------------------------------------------------------------

PORTS = (ContainerPort(container_port=8080, name="web"), ContainerPort(container_port=9090, name="admin"))


@pytest.mark.parametrize(("port", "number"), [("web", 8080), ("admin", 9090), (80, 80), ("none", "none")])
def test_a_ports_name_becomes_its_number(port: int | str, number: int | str) -> None:
    hook = LifecycleHandler(http_get=HTTPGetAction(port=port, path="/p"))
    expected = LifecycleHandler(http_get=HTTPGetAction(port=number, path="/p"))
    assert with_port_number(hook, Container(name="c", ports=PORTS)) == expected


async def test_the_label_of_a_pre_stop_hook_needs_no_manifest(tmp_path: Path) -> None:
    hook = LifecycleHandler(http_get=HTTPGetAction(port="web"))
    main = Container(
        name="main", image=IMAGE, args=("sleep", "1000000"), ports=PORTS, lifecycle=Lifecycle(pre_stop=hook)
    )
    world = World(tmp_path, LocalDialer())
    await world.host.sync(pod(main))
    status = await world.host.observe(UID)
    for of in (None, pod(main)):
        [kill] = kill_all(of, status)
        assert kill.pre_stop == LifecycleHandler(http_get=HTTPGetAction(port=8080))
