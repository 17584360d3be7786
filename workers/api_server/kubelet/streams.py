"""``/run``, ``/exec``, ``/attach`` and ``/portForward`` with the kubelet's paths, parameters and words
(pkg/kubelet/server/server.go; cri-streaming pkg/streaming/remotecommand, NewOptions). The streams themselves are those
of the API's own paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aiohttp import hdrs, web

from ipc.link.messages.api_server import PodChanged
from workers.api_server.core.status_errors import ApiError
from workers.api_server.core.upgrades import COMMANDS, negotiated
from workers.api_server.kubelet.pod_names import NO_POD, find_pod
from workers.api_server.store.site import AppState, json_answer
from workers.api_server.streams.port_forward import PortForward
from workers.api_server.streams.remote_command import RemoteCommand, StreamRequest
from workers.api_server.streams.stream_target import Streams, Target, running_container

NO_STREAM: Final = "you must specify at least 1 of stdin, stdout, stderr"
NO_UPGRADE: Final = "Upgrade request required\n"
ON: Final = "1"


class KubeletStreams:
    """The handlers."""

    def __init__(self, site: AppState) -> None:
        self._site = site
        self._commands = RemoteCommand(site)
        self._ports = PortForward(site)

    async def exec(self, request: web.Request) -> web.StreamResponse:
        asked = await self._asked(request)
        return await self._commands.execute(request, request.query.getall("command", []), asked)

    async def attach(self, request: web.Request) -> web.StreamResponse:
        return await self._commands.join(request, await self._asked(request))

    async def port_forward(self, request: web.Request) -> web.StreamResponse:
        pod = await self._pod(request)
        _want_upgrade(request)
        return await self._ports.forward(request, pod, request.query.getall("port", []))

    async def run(self, request: web.Request) -> web.Response:
        """A command's output, the standard one before that of errors (getRun). Words are parted at each space."""
        pod = await self._pod(request)
        target = _target(pod, request.match_info["container"])
        cmd = request.query.get("cmd", "")
        collected = await self._commands.output(target, cmd.split(" "))
        status = collected.status
        code = None if status is None else status.exit_code()
        if code is None:
            raise ApiError(500, "the command was not run to its end" if status is None else status.message)
        if code:
            raise ApiError(500, f"command '{cmd}' exited with {code}: {collected.stderr.decode(errors='replace')}")
        return json_answer(collected.stdout + collected.stderr)

    async def checkpoint(self, request: web.Request) -> web.Response:
        """Refused in words: CRIU needs capabilities that a user does not have."""
        pod = await self._pod(request)
        container = request.match_info["container"]
        _target(pod, container)
        where = "/".join((pod.pod.metadata.namespace, pod.pod.metadata.name, container))
        raise ApiError(
            500, f"checkpointing of {where} failed (rootless Podman cannot: CRIU needs CAP_CHECKPOINT_RESTORE)"
        )

    async def _asked(self, request: web.Request) -> StreamRequest:
        streams = wanted_streams(request.query)
        pod = await self._pod(request)
        target = _target(pod, request.match_info["container"])
        _want_upgrade(request)
        return StreamRequest(streams, target, negotiated(request, COMMANDS))

    async def _pod(self, request: web.Request) -> PodChanged:
        """Raises ApiError 404, also for another one of that name."""
        where = request.match_info
        found = await find_pod(self._site, where["namespace"], where["name"])
        if found is None or where.get("uid", found.key) != found.key:
            raise ApiError(404, NO_POD)
        return found.message


def wanted_streams(query: Mapping[str, str]) -> Streams:
    """Raises ApiError 400. With a terminal there is one output stream."""
    tty = query.get("tty") == ON
    streams = Streams(
        stdin=query.get("input") == ON,
        stdout=query.get("output") == ON,
        stderr=query.get("error") == ON and not tty,
        tty=tty,
    )
    if not (streams.stdin or streams.stdout or streams.stderr):
        raise ApiError(400, NO_STREAM)
    return streams


def _target(pod: PodChanged, container: str) -> Target:
    """Raises ApiError 500: the kubelet's runtime does not know it (pkg/kubelet/kubelet_pods.go, GetExec)."""
    try:
        return running_container(pod, container)
    except ApiError:
        raise ApiError(500, f'container not found ("{container}")') from None


def _want_upgrade(request: web.Request) -> None:
    """Raises ApiError 500, as the kubelet's proxy to its runtime does."""
    if hdrs.UPGRADE not in request.headers:
        raise ApiError(500, NO_UPGRADE)
