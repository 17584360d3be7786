"""A libpod service that answers on a real socket, from canned containers, and lies on demand.

Only what observation asks for: ping, lists, inspects and a stream of events that never has one.
"""

from __future__ import annotations

import asyncio
import enum
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from ipc.host.clock import rfc3339, wall
from tests.fakes.ownership import ownership
from workers.kubecontainer import labels
from workers.kubecontainer.naming import infra_name_of

Json = dict[str, Any]

PREFIX: Final = "/v4.0.0/libpod/"
NOT_FOUND: Final = {"cause": "no such container", "message": "no such container", "response": 404}
FAILURE: Final = {"cause": "database is locked", "message": "database is locked", "response": 500}


class Lie(enum.Enum):
    """Mistake in every answer to a list or an inspect."""

    NONE = "nothing"
    EMPTY_LIST = "lists are empty"
    HALF_LIST = "lists show the first half"
    HALF_BODY = "the connection breaks in the middle of the body"
    HALF_JSON = "the body ends in the middle, and its length says so"
    TWO_BODIES = "an error document follows the answer"
    NULL = "null instead of a list or an object"
    OTHER_SHAPE = "an object instead of a list, a list instead of an object"
    ERROR = "status 500"
    TWO_ERRORS = "status 500 with two documents"
    EMPTY_ERROR = "status 500 without a body"
    SILENCE = "no answer"
    HANG_UP = "the connection is closed instead of an answer"
    GARBAGE = "no HTTP"


class LyingPodman:
    """Pods of one container each, all running: their processes are this one."""

    def __init__(self, instance: str, uids: tuple[str, ...]) -> None:
        self.lie = Lie.NONE
        self.asked = 0
        """Requests for lists and inspects so far."""
        self._started_at = wall()
        self._containers = {
            c["Id"]: c for uid in uids for c in (self._container(instance, uid, infra) for infra in (True, False))
        }
        self._streams: list[asyncio.Event] = []
        self._connections: set[asyncio.StreamWriter] = set()

    def _container(self, instance: str, uid: str, is_infra: bool) -> Json:
        kind = "infra" if is_infra else "main"
        name = infra_name_of(f"pod_{uid}") if is_infra else f"main_{uid}"
        own = {labels.INSTANCE: instance, labels.POD_UID: uid, labels.POD_NAME: uid, labels.POD_NAMESPACE: "default"}
        if not is_infra:
            own[labels.CONTAINER_NAME] = kind
        sign = ownership(instance).signed_sandbox if is_infra else ownership(instance).signed_container
        return {
            "Id": f"{kind}-{uid}",
            "Names": [name],
            "State": "running",
            "Pod": f"pod-{uid}",
            "PodName": f"pod_{uid}",
            "IsInfra": is_infra,
            "Pid": os.getpid(),
            "StartedAt": int(self._started_at),
            "ExitedAt": -62135596800,
            "Image": "localhost/x:latest",
            "ImageID": "1",
            "Labels": sign(name.removesuffix(infra_name_of("")), own),
        }

    # --- answers ---

    def _answer(self, path: str, query: str) -> tuple[int, Any]:
        match path.split("/"):
            case ["containers", "json"]:
                return 200, list(self._containers.values())
            case ["pods", "json"]:
                return 200, self._pods(query)
            case ["containers", id, "json"] if id in self._containers:
                return 200, self._inspected(self._containers[id])
            case _:
                return 404, NOT_FOUND

    def _pods(self, query: str) -> list[Json]:
        """Pods of the uid that is asked for; none to the question for pods without containers."""
        filters = json.loads(unquote(query).partition("filters=")[2].partition("&")[0] or "{}")
        uids = [text.partition("=")[2] for text in filters.get("label", []) if text.startswith(f"{labels.POD_UID}=")]
        infra = [c for c in self._containers.values() if c["IsInfra"] and c["Labels"][labels.POD_UID] in uids]
        return [self._pod(c) for c in infra]

    def _pod(self, infra: Json) -> Json:
        members = [c for c in self._containers.values() if c["Pod"] == infra["Pod"]]
        return {
            "Id": infra["Pod"],
            "Name": infra["PodName"],
            "InfraId": infra["Id"],
            "Labels": infra["Labels"],
            "Created": rfc3339(self._started_at),
            "Containers": [{"Id": c["Id"], "Status": c["State"]} for c in members],
        }

    def _inspected(self, shown: Json) -> Json:
        started = rfc3339(self._started_at)
        return {
            "Id": shown["Id"],
            "Name": shown["Names"][0],
            "Pod": shown["Pod"],
            "IsInfra": shown["IsInfra"],
            "Created": started,
            "State": {"Status": "running", "Pid": shown["Pid"], "ConmonPid": 1, "StartedAt": started},
            "Config": {"Labels": shown["Labels"]},
        }

    # --- HTTP ---

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until somebody ends it."""
        self._connections.add(writer)
        try:
            while request := await reader.readline():
                while (await reader.readline()).strip():
                    pass
                path, _, query = request.split()[1].decode().partition("?")
                if not await self._respond(path.removeprefix(PREFIX), query, writer):
                    break
        except ConnectionError:
            return
        finally:
            self._connections.discard(writer)
            writer.close()

    async def _respond(self, path: str, query: str, writer: asyncio.StreamWriter) -> bool:
        """False when the connection is at its end."""
        if path == "_ping":
            return await _write(writer, 200, b"OK", "Libpod-API-Version: 4.3.1\r\n")
        if path == "events":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
            await self._never()
            return False
        self.asked += 1
        status, found = self._answer(path, query)
        return await self._lie(writer, status, found)

    async def _lie(self, writer: asyncio.StreamWriter, status: int, found: Any) -> bool:
        body, error = json.dumps(found).encode(), json.dumps(FAILURE).encode()
        half = found[: len(found) // 2] if isinstance(found, list) else found
        match self.lie:
            case Lie.SILENCE:
                await self._never()
                return False
            case Lie.HANG_UP:
                return False
            case Lie.GARBAGE:
                writer.write(b"\x00\x01 not HTTP\r\n\r\n")
                await writer.drain()
                return False
            case Lie.HALF_BODY:
                await _write(writer, status, body[: len(body) // 2], length=len(body))
                return False
        reported = {
            Lie.NONE: (status, body),
            Lie.EMPTY_LIST: (status, b"[]" if isinstance(found, list) else body),
            Lie.HALF_LIST: (status, json.dumps(half).encode()),
            Lie.HALF_JSON: (status, body[: len(body) // 2]),
            Lie.TWO_BODIES: (status, body + b"\n" + error + b"\n"),
            Lie.NULL: (status, b"null"),
            Lie.OTHER_SHAPE: (status, b"{}" if isinstance(found, list) else b"[]"),
            Lie.ERROR: (500, error),
            Lie.TWO_ERRORS: (500, error + b"\n" + error + b"\n"),
            Lie.EMPTY_ERROR: (500, b""),
        }
        return await _write(writer, *reported[self.lie])

    async def _never(self) -> None:
        """Until the server is closed."""
        end = asyncio.Event()
        self._streams.append(end)
        await end.wait()

    def let_go(self) -> None:
        """Let go of everything that never ends."""
        for end in self._streams:
            end.set()
        self._streams.clear()

    async def hang_up(self) -> None:
        """On everybody; back when nobody is served any more."""
        self.let_go()
        for writer in tuple(self._connections):
            writer.transport.abort()
        while self._connections:  # noqa: ASYNC110 - each has a task of its own
            await asyncio.sleep(0)


async def _write(
    writer: asyncio.StreamWriter, status: int, body: bytes, headers: str = "", *, length: int | None = None
) -> bool:
    size = len(body) if length is None else length
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n{headers}\r\n"
    writer.write(head.encode() + body)
    await writer.drain()
    return True


@asynccontextmanager
async def lying_podman(directory: Path, instance: str, uids: tuple[str, ...]) -> AsyncIterator[tuple[LyingPodman, str]]:
    """The service and its socket."""
    service, socket = LyingPodman(instance, uids), str(directory / "lying.sock")
    server = await asyncio.start_unix_server(service.serve, socket)
    try:
        yield service, socket
    finally:
        server.close()
        await service.hang_up()
