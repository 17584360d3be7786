"""A Podman service that is none: the libpod HTTP API on a Unix socket, over `tests.fakes.large_podman`.

For agents with more pods than a test machine holds. Everything above the socket is real: clients, connections,
deadlines, JSON in the shapes and sizes of Podman 4.3.1, the stream of events. Every call takes as long as the real one
took (`tests.fakes.libpod_costs`), asleep. What is left out are the containers' processes: their logs stay empty.

    python -m tests.fakes.libpod_server SOCKET [--instant] [--processes real]

It writes one line to stdout when it listens. ``GET /fake/state`` tells how often each call was made,
how many containers run (without infra containers), and how many pods there are.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import struct
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import orjson
import uvloop
from aiohttp import web

from ipc.host.clock import rfc3339_micro
from ipc.host.libpod import endpoints
from ipc.host.libpod.endpoints import NAME, ROOT
from tests.fakes.large_podman import LargePodman, Processes
from tests.fakes.libpod_costs import CALL_COSTS, Cost
from tests.fakes.podman import KILLED, FakeContainer, FakePod, Program
from workers.kubecontainer import labels
from workers.kubecontainer.image_service import ImageInfo
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError, RuntimeEvent, VolumeInfo
from workers.proc.signal_names import signal_number

API_VERSION: Final = "4.3.1"
IMAGE: Final = "localhost/rootlet-demo:latest"
STATE_PATH: Final = "/fake/state"
ZERO_TIME: Final = "0001-01-01T00:00:00Z"
ZERO_TIME_S: Final = -62135596800
MAX_BODY_BYTES: Final = 4 * 1024 * 1024
EXEC_DELAY_S: Final = 30.0
"""How long an ended exec session can be asked for."""
_TEMPLATES: Final = orjson.loads(Path(__file__).with_name("libpod_answers.json").read_bytes())
"""Answers of Podman 4.3.1, of which the model fills in what it knows: so ours are as large as those."""

_FAILURES: Final[Mapping[ErrorKind, tuple[int, str]]] = {
    ErrorKind.NOT_FOUND: (404, ""),
    ErrorKind.NAME_IN_USE: (500, "that name is already in use"),
    ErrorKind.IMAGE_UNKNOWN: (404, "image not known"),
    ErrorKind.WRONG_STATE: (409, "container state improper"),
    ErrorKind.COMMAND: (404, "OCI runtime attempted to invoke a command that was not found"),
    ErrorKind.INVALID: (400, "invalid argument"),
}
"""HTTP status and root cause, as libpod 4.3 has them; without a cause the message is one."""

Json = dict[str, Any]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class LibpodServer:
    """The API's handlers. Belongs to the running loop."""

    def __init__(self, podman: LargePodman, costs: Mapping[str, Cost], strangers: int = 0) -> None:
        """``costs`` by the name of the call; a call that is not in it takes no time. ``strangers`` is how many
        containers there are that no label filter finds: Podman takes its time for each of them all the same."""
        self.podman = podman
        self._strangers = strangers
        self.calls: Counter[str] = Counter()
        self._costs = costs
        self._execs: dict[str, _Exec] = {}

    def application(self) -> web.Application:
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        for endpoint, handler in (
            (endpoints.PING, self._ping),
            (endpoints.LIST_PODS, self._list_pods),
            (endpoints.CREATE_POD, self._create_pod),
            (endpoints.INSPECT_POD, self._inspect_pod),
            (endpoints.REMOVE_POD, self._remove_pod),
            (endpoints.PAUSE_POD, self._pause_pod),
            (endpoints.RESUME_POD, self._resume_pod),
            (endpoints.LIST_CONTAINERS, self._list_containers),
            (endpoints.CREATE_CONTAINER, self._create_container),
            (endpoints.INSPECT_CONTAINER, self._inspect_container),
            (endpoints.START_CONTAINER, self._start_container),
            (endpoints.KILL_CONTAINER, self._kill_container),
            (endpoints.UPDATE_CONTAINER, self._update_container),
            (endpoints.REMOVE_CONTAINER, self._remove_container),
            (endpoints.CREATE_EXEC, self._create_exec),
            (endpoints.START_EXEC, self._start_exec),
            (endpoints.INSPECT_EXEC, self._inspect_exec),
            (endpoints.INSPECT_IMAGE, self._inspect_image),
            (endpoints.LIST_IMAGES, self._list_images),
            (endpoints.REMOVE_IMAGES, self._remove_images),
            (endpoints.PULL_IMAGE, self._pull_image),
            (endpoints.INSPECT_VOLUME, self._inspect_volume),
            (endpoints.CREATE_VOLUME, self._create_volume),
            (endpoints.REMOVE_VOLUME, self._remove_volume),
            (endpoints.EVENTS, self._events),
        ):
            path = ROOT + endpoint.path.replace(NAME, "{id:.+}")  # an image's name has slashes
            app.router.add_route(endpoint.method, path, self._called(endpoint.call, handler))
        app.router.add_get(STATE_PATH, self._state)
        return app

    def _called(self, name: str, handler: Handler) -> Handler:
        async def call(request: web.Request) -> web.StreamResponse:
            self.calls[name] += 1
            try:
                cost = self._costs.get(name)
                if cost is not None:
                    await asyncio.sleep(cost.of(len(self.podman.containers) + self._strangers))
                return await handler(request)
            except RuntimeCallError as error:
                return _failure(error)

        return call

    async def _state(self, _: web.Request) -> web.Response:
        running = sum(c.state == "running" and not c.is_infra for c in self.podman.containers.values())
        return _answer({"calls": dict(self.calls), "running": running, "pods": len(self.podman.pods)})

    async def _ping(self, _: web.Request) -> web.Response:
        return web.Response(text="OK", headers={"Libpod-API-Version": API_VERSION})

    # --- pods ---

    async def _list_pods(self, request: web.Request) -> web.Response:
        filters = _filters(request)
        uid = filters.get(labels.POD_UID, "")
        pods = self.podman.pods_of(uid) if uid else self.podman.pods.values()
        found = (pod for pod in pods if _has(pod.labels, filters))
        if "ctr-number" in _query_filters(request):
            found = (pod for pod in found if not self.podman.members(pod))
        return _answer([self._listed_pod(pod) for pod in found])

    async def _create_pod(self, request: web.Request) -> web.Response:
        return _answer({"Id": self.podman.create_pod(await _body(request))}, status=201)

    async def _inspect_pod(self, request: web.Request) -> web.Response:
        pod = self.podman.pod(request.match_info["id"])
        members = [{"Id": c.id, "Name": c.name, "State": c.state} for c in self.podman.members(pod)]
        return _answer(
            {
                "Id": pod.id,
                "Name": pod.name,
                "Created": _time(pod.created_at),
                "Labels": pod.labels,
                "InfraContainerID": pod.infra_id,
                "NumContainers": len(members),
                "Containers": members,
            }
        )

    async def _remove_pod(self, request: web.Request) -> web.Response:
        id = self.podman.pod(request.match_info["id"]).id
        self.podman.remove_pod(id)
        return _answer({"Err": None, "Id": id})

    async def _pause_pod(self, request: web.Request) -> web.Response:
        return self._freeze(request, self.podman.pause_pod)

    async def _resume_pod(self, request: web.Request) -> web.Response:
        return self._freeze(request, self.podman.resume_pod)

    def _freeze(self, request: web.Request, act: Callable[[str], None]) -> web.Response:
        id = self.podman.pod(request.match_info["id"]).id
        try:
            act(id)
        except RuntimeCallError as error:
            return _answer({"Errs": [error.message], "Id": id}, status=409)
        return _answer({"Errs": None, "Id": id})

    def _listed_pod(self, pod: FakePod) -> Json:
        members = [{"Id": c.id, "Names": c.name, "Status": c.state} for c in self.podman.members(pod)]
        return {
            "Cgroup": "",
            "Containers": members or None,
            "Created": _time(pod.created_at),
            "Id": pod.id,
            "InfraId": pod.infra_id,
            "Name": pod.name,
            "Namespace": "",
            "Networks": None,
            "Status": "Running",
            "Labels": pod.labels,
        }

    # --- containers ---

    async def _list_containers(self, request: web.Request) -> web.Response:
        filters = _filters(request)
        return _answer([self._listed(c) for c in self.podman.containers.values() if _has(c.labels, filters)])

    async def _create_container(self, request: web.Request) -> web.Response:
        spec = await _body(request)
        id = self.podman.create_container(spec)
        _make_log(spec)
        return _answer({"Id": id, "Warnings": []}, status=201)

    async def _inspect_container(self, request: web.Request) -> web.Response:
        return _answer(_inspected(self.podman.container(request.match_info["id"])))

    async def _start_container(self, request: web.Request) -> web.Response:
        container = self.podman.container(request.match_info["id"])
        already = container.state == "running"
        self.podman.start_container(container.id)
        return web.Response(status=304 if already else 204)

    async def _kill_container(self, request: web.Request) -> web.Response:
        container = self.podman.container(request.match_info["id"])
        running = container.state == "running"
        self.podman.kill_container(container.id, request.query.get("signal", "KILL"))
        if not running:
            why = f"can only kill running containers. {container.id} is in state {container.state}"
            raise RuntimeCallError(ErrorKind.WRONG_STATE, "fake", why)
        return web.Response(status=204)

    async def _update_container(self, request: web.Request) -> web.Response:
        container = self.podman.container(request.match_info["id"])
        self.podman.update_container(container.id, await request.json())
        return _answer(container.id, status=201)

    async def _remove_container(self, request: web.Request) -> web.Response:
        id = request.match_info["id"]
        if id in self.podman.layers:
            self.podman.layers.discard(id)
            return _answer([{"Id": id, "Err": None}])
        container = self.podman.container(id)
        self.podman.remove_container(container.id)
        return _answer([{"Id": container.id, "Err": None}])

    def _listed(self, container: FakeContainer) -> Json:
        pod = self.podman.pods.get(container.pod_id)
        return {
            **_TEMPLATES["listed"],
            "Created": _time(container.created_at),
            "ExitCode": container.exit_code,
            "Exited": container.has_end,
            "ExitedAt": int(container.finished_at) or ZERO_TIME_S,
            "Id": container.id,
            "Image": container.image,
            "ImageID": container.image_id,
            "IsInfra": container.is_infra,
            "Labels": container.labels,
            "Names": [container.name],
            "Pid": container.pid,
            "Pod": container.pod_id,
            "PodName": pod.name if pod is not None else "",
            "StartedAt": int(container.started_at) or ZERO_TIME_S,
            "State": container.state,
        }

    # --- volumes ---

    async def _inspect_volume(self, request: web.Request) -> web.Response:
        name = request.match_info["id"]
        found = self.podman.volumes.get(name)
        if found is None:
            raise RuntimeCallError(ErrorKind.NOT_FOUND, "fake", f"no volume with name {name} found: no such volume")
        return _answer(_volume(found))

    async def _create_volume(self, request: web.Request) -> web.Response:
        spec = await _body(request)
        made = self.podman.create_volume(spec["Name"], spec.get("Labels", {}), spec.get("Options", {}))
        return _answer(_volume(made), status=201)

    async def _remove_volume(self, request: web.Request) -> web.Response:
        self.podman.remove_volume(request.match_info["id"])
        return web.Response(status=204)

    # --- commands in containers ---

    async def _create_exec(self, request: web.Request) -> web.Response:
        spec = await _body(request)
        container = self.podman.container(request.match_info["id"])
        if container.state != "running":
            raise RuntimeCallError(ErrorKind.WRONG_STATE, "fake", "can only create exec sessions on running containers")
        session = f"{len(self._execs):064x}"
        self._execs[session] = _Exec(container, spec["Cmd"])
        return _answer({"Id": session}, status=201)

    async def _start_exec(self, request: web.Request) -> web.StreamResponse:
        """The command's output, framed; the connection closes when the command has ended."""
        session = self._execs[request.match_info["id"]]
        status = 101 if "Upgrade" in request.headers else 200
        answer = web.StreamResponse(status=status, headers={"Content-Type": "application/vnd.docker.raw-stream"})
        answer.force_close()
        await answer.prepare(request)
        try:
            container, program = self.podman.begin_exec(session.container.id, session.command)
        except RuntimeCallError:
            # libpod/container_exec.go: the session ends with 127, and its output says why.
            session.running, session.exit_code = False, 127
            await answer.write(_framed(b"Error: OCI runtime attempted to invoke a command that was not found\n"))
        else:
            await answer.write(_framed(program.output))
            session.exit_code = await _exit_code(container, program)
            session.running = False
        await answer.write_eof()
        asyncio.get_running_loop().call_later(EXEC_DELAY_S, self._execs.pop, request.match_info["id"], None)
        return answer

    async def _inspect_exec(self, request: web.Request) -> web.Response:
        session = self._execs.get(request.match_info["id"])
        if session is None:
            raise RuntimeCallError(ErrorKind.NOT_FOUND, "fake", "no such exec session")
        return _answer({"Running": session.running, "ExitCode": session.exit_code, "Pid": 0})

    # --- images and events ---

    async def _inspect_image(self, request: web.Request) -> web.Response:
        image = self.podman.image(request.match_info["id"])
        if image is None:
            why = f"{request.match_info['id']}: image not known"
            raise RuntimeCallError(ErrorKind.IMAGE_UNKNOWN, "fake", why)
        return _answer(_image(image))

    async def _list_images(self, _: web.Request) -> web.Response:
        return _answer(
            [
                {
                    "Id": image.id,
                    "Names": list(image.names) or None,
                    "RepoTags": list(image.names) or None,
                    "RepoDigests": list(image.digests) or None,
                    "Size": image.size_bytes,
                    "ReadOnly": image.is_read_only,
                }
                for image in self.podman.listed_images()
            ]
        )

    async def _remove_images(self, request: web.Request) -> web.Response:
        """200 in any case, as Podman answers."""
        wanted, errors = set(request.query.getall("images")), []
        for image in self.podman.listed_images():
            if meant := wanted.intersection((image.id, *image.names)):
                wanted -= meant
                try:
                    self.podman.remove_image(image)
                except RuntimeCallError as error:
                    errors.append(error.message)
        errors += [f"{name}: image not known" for name in sorted(wanted)]
        return _answer({"Errors": errors or None})

    async def _pull_image(self, request: web.Request) -> web.Response:
        """200 also for a failure, which the last line tells."""
        reference = request.query["reference"]
        try:
            id = self.podman.pull_image(reference)
            end: Json = {"images": [id], "id": id}
        except RuntimeCallError as error:
            end = {"error": error.message}
        lines = ({"stream": f"Trying to pull {reference}...\n"}, end)
        return web.Response(body=b"".join(orjson.dumps(line) + b"\n" for line in lines))

    async def _events(self, request: web.Request) -> web.StreamResponse:
        filters = _filters(request)
        answer = web.StreamResponse(headers={"Content-Type": "application/json"})
        await answer.prepare(request)
        mine: asyncio.Queue[RuntimeEvent | None] = asyncio.Queue()
        self.podman.listeners.append(mine)
        try:
            while (event := await mine.get()) is not None:
                if _has(event.labels, filters):
                    await answer.write(_event(event))
        except ConnectionError:
            return answer  # The listener is gone.
        finally:
            self.podman.listeners.remove(mine)
        return answer


class _Exec:
    """An exec session."""

    def __init__(self, container: FakeContainer, command: list[str]) -> None:
        self.container = container
        self.command = command
        self.running = True
        self.exit_code = 0


async def _exit_code(container: FakeContainer, program: Program) -> int:
    """When the command, or its container, has ended."""
    try:
        async with asyncio.timeout(program.runs_s):
            await container.ended.wait()
    except TimeoutError:
        return program.exit_code
    return KILLED


# --- shapes ------------------------------------------------------------------------------------------------------


def _volume(volume: VolumeInfo) -> Json:
    return {
        "Name": volume.name,
        "Driver": volume.driver,
        "Mountpoint": volume.mount_point,
        "CreatedAt": "2026-11-20T13:36:21.302263482Z",
        "Labels": volume.labels,
        "Scope": "local",
        "Options": volume.options,
        "MountCount": 0,
        "NeedsCopyUp": True,
        "NeedsChown": True,
    }


def _inspected(container: FakeContainer) -> Json:
    like: Json = _TEMPLATES["inspect"]
    return {
        **like,
        "Id": container.id,
        "Name": container.name,
        "Pod": container.pod_id,
        "IsInfra": container.is_infra,
        "Created": _time(container.created_at),
        "Image": container.image_id,
        "ImageName": container.image,
        "ImageDigest": f"sha256:{container.image_id}",
        "State": {
            **like["State"],
            "Status": container.state,
            "Running": container.state == "running",
            "Pid": container.pid,
            "ConmonPid": container.pid,
            "ExitCode": container.exit_code,
            "OOMKilled": container.oom_killed,
            "Error": container.error,
            "StartedAt": _time(container.started_at),
            "FinishedAt": _time(container.finished_at),
        },
        "Config": {
            **like["Config"],
            "Labels": container.labels,
            "StopSignal": signal_number(container.stop_signal),
        },
        "HostConfig": {**like["HostConfig"], "LogConfig": {**like["HostConfig"]["LogConfig"], "Path": ""}},
    }


def _image(image: ImageInfo) -> Json:
    return {"Id": image.id, "RepoDigests": list(image.digests), "Size": 1, "User": image.user, "Config": {}}


def _event(event: RuntimeEvent) -> bytes:
    actor = {"ID": event.container_id, "Attributes": {"image": IMAGE, "name": "", **event.labels}}
    reported = {"Type": "container", "Action": event.action, "Actor": actor, "timeNano": int(event.time * 1e9)}
    return orjson.dumps({"status": event.action, "id": event.container_id, "from": IMAGE, **reported}) + b"\n"


def _framed(output: bytes) -> bytes:
    return struct.pack(">BxxxI", 1, len(output)) + output if output else b""


def _time(wall: float) -> str:
    return rfc3339_micro(wall) if wall else ZERO_TIME


def _answer(value: Any, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(value), status=status, content_type="application/json")


def _failure(error: RuntimeCallError) -> web.Response:
    status, cause = _FAILURES.get(error.kind, (500, "internal"))
    text = {"cause": cause or error.message, "message": error.message, "response": status}
    return _answer(text, status)


def _make_log(spec: Json) -> None:
    """The container's log, which stays empty: an agent looks for it again and again while it is not there."""
    path = Path(spec.get("log_configuration", {}).get("path", ""))
    if path.name and path.parent.is_dir():
        path.touch()


async def _body(request: web.Request) -> Json:
    found: Json = orjson.loads(await request.read())
    return found


def _query_filters(request: web.Request) -> Mapping[str, list[str]]:
    found: Mapping[str, list[str]] = orjson.loads(request.query.get("filters", "{}"))
    return found


def _filters(request: web.Request) -> Mapping[str, str]:
    """The labels that are asked for."""
    return dict(word.split("=", 1) for word in _query_filters(request).get("label", ()))


def _has(found: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return wanted.items() <= found.items()


# --- the process -------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def serving(
    socket: Path, podman: LargePodman, costs: Mapping[str, Cost], strangers: int = 0
) -> AsyncIterator[LibpodServer]:
    """The service on that socket, until the block is left."""
    server = LibpodServer(podman, costs, strangers)
    runner = web.AppRunner(server.application(), access_log=None, handle_signals=False, shutdown_timeout=0.5)
    await runner.setup()
    try:
        await web.UnixSite(runner, str(socket), backlog=1024).start()
        yield server
    finally:
        podman.break_events()
        await runner.cleanup()
        podman.close()


async def _serve(options: argparse.Namespace) -> None:
    ended = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signum, ended.set)
    podman = LargePodman(options.image, Processes(options.processes))
    async with serving(options.socket, podman, {} if options.instant else CALL_COSTS, options.strangers):
        print("listening", flush=True)
        await ended.wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fakes.libpod_server", description=__doc__)
    parser.add_argument("socket", type=Path)
    parser.add_argument("--image", action="append", default=[IMAGE], help="an image that is there")
    parser.add_argument("--instant", action="store_true", help="calls take no time of their own")
    parser.add_argument("--strangers", type=int, default=0, help="containers of others, which only cost time")
    parser.add_argument("--processes", choices=[kind.value for kind in Processes], default=Processes.SHARED.value)
    uvloop.run(_serve(parser.parse_args()))


if __name__ == "__main__":
    main()
