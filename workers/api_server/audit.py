"""The audit log: a line for each change that a person or program has asked for, in a file of its own.

A line is a JSON object. Of a client there is what the kernel knows of it: its user, its process and the name of that
process's program. Of commands that run in containers there is the program alone: arguments may be secrets.
"""

from __future__ import annotations

import functools
import logging
import os
import pwd
import socket
from collections import deque
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import msgspec
from aiohttp import hdrs, web
from aiohttp.typedefs import Middleware

from ipc.host.clock import Clock, rfc3339_micro
from ipc.host.regular_files import opened_regular_file
from ipc.host.text.json_types import UNDECODABLE
from ipc.host.text.safe_text import safe_line
from workers.api_server.core.media_type import media_type
from workers.api_server.core.request_keys import ANSWERED, USER
from workers.api_server.core.status_errors import ApiError
from workers.api_server.store.site import AppState
from workers.fs.fs_executor import FsExecutor
from workers.proc.peers import peer_ids

AUDIT_FILE: Final = "audit.log"
"""Below ``stateDir``."""
MAX_BYTES: Final = 4 << 20
"""Size at which the file is rotated."""
MAX_FILES: Final = 5
"""Files that are kept, the one that is written among them."""
MAX_FIELD_BYTES: Final = 256
MAX_WAITING: Final = 1000
"""Lines that wait for a file system that does not answer; the oldest go."""
READS: Final = frozenset({hdrs.METH_GET, hdrs.METH_HEAD, hdrs.METH_OPTIONS})
SESSIONS: Final = ("exec", "attach", "portforward")
"""Last part of the path of what goes into a pod, whatever the method."""
_LOG: Final = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Audit:
    """Appends lines; rotates. In a thread: the file's disk may hang."""

    def __init__(self, path: Path, clock: Clock, files: FsExecutor) -> None:
        self._path = path
        self._clock = clock
        self._files = files
        self._waiting: deque[bytes] = deque(maxlen=MAX_WAITING)
        self._is_broken = False

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """A refusal is an outcome, too."""
        if not is_change(request):
            return await handler(request)
        began, client = self._clock.now(), _client(request)
        code, words = 0, "the client went away"
        try:
            response = await handler(request)
            code, words = response.status, _outcome(response)
            return response
        except ApiError as error:
            code, words = error.status.code, str(error)
            raise
        except web.HTTPException as error:
            code, words = error.status, error.reason
            raise
        finally:
            if not code and (begun := request.get(ANSWERED)) is not None:
                code, words = begun.status, _outcome(begun)  # of a session whose client was the first to close it
            took_s = self._clock.now().mono - began.mono
            line = {"time": rfc3339_micro(began.wall), **client, **_action(request), "code": code, "result": words}
            await self.write({**line, "seconds": round(took_s, 3)})

    async def write(self, line: dict[str, Any]) -> None:
        """A disk that takes nothing more, or does not answer, keeps nobody from changing something: that is told once.
        What was not taken by a disk that does not answer is written when it does, with the next line."""
        self._waiting.append(msgspec.json.encode({key: _field(value) for key, value in line.items()}) + b"\n")
        try:
            await self._files.run_unless_hung(self._path, self._write_waiting)
        except OSError as error:
            if not self._is_broken:
                _LOG.warning("changes are not recorded in %s: %s", self._path, error.strerror or error)
            self._is_broken = True
        else:
            self._is_broken = False

    def _write_waiting(self) -> None:
        """All that waits. Raises OSError; then what waited is lost."""
        while self._waiting:
            data = self._waiting.popleft()
            _rotate(self._path, len(data))
            with opened_regular_file(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW) as descriptor:
                os.write(descriptor, data)


def audited(site: AppState) -> tuple[Middleware, ...]:
    """The middleware of a server; none without a directory for the file."""
    pods_dir = site.settings.pods_dir
    return (Audit(Path(pods_dir).parent / AUDIT_FILE, site.clock, site.files).middleware,) if pods_dir else ()


def is_change(request: web.BaseRequest) -> bool:
    """Whether a line is due."""
    return request.method not in READS or request.path.rpartition("/")[2] in SESSIONS


def _rotate(path: Path, growth: int) -> None:
    """``audit.log.1`` is the newest of the older ones."""
    try:
        if os.lstat(path).st_size + growth <= MAX_BYTES:
            return
    except FileNotFoundError:
        return
    for number in range(MAX_FILES - 1, 0, -1):
        older = path if number == 1 else path.with_name(f"{path.name}.{number - 1}")
        if older.exists():
            older.replace(path.with_name(f"{path.name}.{number}"))


def _client(request: web.BaseRequest) -> dict[str, str | int]:
    sock = None if request.transport is None else request.transport.get_extra_info("socket")
    if sock is not None and sock.family == socket.AF_UNIX:
        pid, uid = peer_ids(sock)
        return {"user": _user_name(uid), "uid": uid, "pid": pid, "program": _program(pid)}
    return {"user": request.get(USER) or "", "address": request.remote or ""}


@functools.cache
def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _program(pid: int) -> str:
    """Name of a process as the kernel has it, at most 15 bytes; empty when it has gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return ""


def _action(request: web.BaseRequest) -> dict[str, str]:
    """Method and path of the request; of apply the name of the file, of exec the program."""
    query = request.query
    known = {"file": query.get("file", ""), "container": query.get("container", ""), "runs": query.get("command", "")}
    asked = {"pods": query.get("pods", "")} if request.path.endswith("/stop") else {}
    described = {key: value for key, value in {**known, **asked}.items() if value}
    return {"verb": _verb(request), "path": request.path, **described}


def _verb(request: web.BaseRequest) -> str:
    """``apply``, ``exec``, ``restart``; of Kubernetes' own paths the verbs of its RBAC."""
    last = request.path.rpartition("/")[2]
    if last in SESSIONS or (request.path.startswith("/rootlet/v1/") and request.method == hdrs.METH_POST):
        return last
    return {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}.get(request.method, request.method)


class _Answer(msgspec.Struct):
    """The part of an ActionResult or v1 Status that says what became of it."""

    message: str = ""
    results: list[str] = []


async def note_answer(request: web.Request, response: web.StreamResponse) -> None:
    """Signal of an application whose changes are audited: an answer that has begun is the outcome, whoever closes."""
    request[ANSWERED] = response


def _outcome(response: web.StreamResponse) -> str:
    body = response.body if isinstance(response, web.Response) else None
    if not isinstance(body, bytes) or media_type(response.headers) != "application/json":
        return response.reason or ""
    try:
        answer = msgspec.json.decode(body, type=_Answer)
    except UNDECODABLE:
        return response.reason or ""
    return "; ".join(answer.results) or answer.message or response.reason or ""


def _field(value: str | int | float) -> str | int | float:
    return safe_line(value, MAX_FIELD_BYTES) if isinstance(value, str) else value
