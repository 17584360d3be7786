"""GET /logs/: the agent's own log, and the user's journal (pkg/kubelet/kubelet_server_journal.go, nodeLogQuery).

Different on purpose: upstream serves the host's /var/log. Here there are the one file that our standard error goes to,
if it goes to one, and units of the journal of our own user. No path leads elsewhere: names are compared, never opened.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec
from aiohttp import web

from ipc.host.clock import parse_rfc3339
from workers.api_server.core.query import integer
from workers.api_server.core.route import NOT_FOUND, plain_text
from workers.api_server.core.status_errors import ApiError
from workers.api_server.store.site import AppState, begin_stream
from workers.logs.log_reader import READ_BYTES, tail_offset

LOG_NAME: Final = "rootlet.log"
"""Our own log among the files."""
OWN: Final = "rootlet"
"""And among the services of a query."""
STDERR: Final = "/proc/self/fd/2"
MAX_SERVICES: Final = 4
MAX_TAIL_LINES: Final = 100_000
QUERY_TIMEOUT_S: Final = 30.0
"""pkg/kubelet/kubelet_server_journal.go, getLoggingCmd's context."""
MAX_PATTERN_CHARS: Final = 1024
_UNIT: Final = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9:_.@\\-]{0,254}")
_LISTING: Final = '<!doctype html>\n<meta name="viewport" content="width=device-width">\n<pre>\n{}</pre>\n'


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """A choice of the journal's lines."""

    units: tuple[str, ...]
    since: str = ""
    until: str = ""
    tail_lines: int | None = None
    boot: int | None = None
    pattern: str = ""

    def argv(self, journalctl: str) -> list[str]:
        """Command line of journalctl as upstream has it, for the journal of our user."""
        optional = {
            "--since": self.since,
            "--until": self.until,
            "--lines": "" if self.tail_lines is None else str(self.tail_lines),
            "--boot": "" if self.boot is None else str(self.boot),
            "--grep": self.pattern,
        }
        return [
            *(journalctl, "--user", "--utc", "--no-pager", "--quiet", "--output=short-precise"),
            *(f"--unit={unit}" for unit in self.units),
            *(f"{name}={value}" for name, value in optional.items() if value),
        ]


class NodeLogs:
    """The handlers."""

    def __init__(self, site: AppState) -> None:
        self._files = site.files

    async def list(self, request: web.Request) -> web.StreamResponse:
        """The files there are; or with ``query`` a log."""
        if services := request.query.getall("query", []):
            return await self._query(request, services)
        names = [LOG_NAME] if own_log() is not None else []
        links = "".join(f'<a href="{name}">{name}</a>\n' for name in names)
        return web.Response(text=_LISTING.format(links), content_type="text/html")

    async def file(self, request: web.Request) -> web.StreamResponse:
        return await self._own_log(request, None) if request.match_info["path"] == LOG_NAME else _no_such_file()

    async def _query(self, request: web.Request, services: Sequence[str]) -> web.StreamResponse:
        query = journal_query(services, request.query)
        if set(services) <= {OWN, LOG_NAME} and own_log() is not None:
            return await self._own_log(request, query.tail_lines)
        journalctl = shutil.which("journalctl")
        if journalctl is None:
            raise ApiError(500, "this host has no journalctl, and the agent's log goes to no file")
        response = await begin_stream(request, "text/plain")
        async with asyncio.timeout(QUERY_TIMEOUT_S):
            await _copy_output(query.argv(journalctl), response)
        return response

    async def _own_log(self, request: web.Request, tail_lines: int | None) -> web.StreamResponse:
        """The file as it is now, or its last lines."""
        path = own_log()
        if path is None:
            return _no_such_file()
        position, end = await self._files.run(LOG_NAME, _extent, path, tail_lines)
        response = await begin_stream(request, "text/x-log")
        while position < end and (data := await self._files.run(LOG_NAME, _block, path, position, end)):
            position += len(data)
            await response.write(data)
        return response


def journal_query(services: Sequence[str], query: Mapping[str, str]) -> Query:
    """Raises ApiError 400 for what is no unit, no time, no number or too much (nodeLogQuery, validate)."""
    for service in services:
        if not _UNIT.fullmatch(service):
            raise ApiError(400, f"query: {service[:64]!r} is not the name of a service")
    if len(services) > MAX_SERVICES:
        raise ApiError(400, f"query: may specify a maximum of {MAX_SERVICES} services")
    since, until = (_journal_time(query, name) for name in ("sinceTime", "untilTime"))
    if since and until and since > until:
        raise ApiError(400, "untilTime: must be after `sinceTime`")
    pattern = query.get("pattern", "")
    if len(pattern) > MAX_PATTERN_CHARS or "\0" in pattern:
        raise ApiError(400, f"pattern: must have at most {MAX_PATTERN_CHARS} characters")
    return Query(
        units=tuple(services),
        since=since,
        until=until,
        tail_lines=integer(query, "tailLines", high=MAX_TAIL_LINES),
        boot=integer(query, "boot", low=-MAX_TAIL_LINES, high=0),
        pattern=pattern,
    )


def _journal_time(query: Mapping[str, str], name: str) -> str:
    """As journalctl reads it: seconds since 1970."""
    text = query.get(name, "")
    if not text:
        return ""
    try:
        return f"@{parse_rfc3339(text):.6f}"
    except ValueError as error:
        raise ApiError(400, f"{name}: {error}") from None


def own_log() -> str | None:
    """Where our standard error is a file, its path under /proc."""
    return STDERR if stat.S_ISREG(os.fstat(2).st_mode) else None


def _no_such_file() -> web.Response:
    return plain_text(404, NOT_FOUND)


def _extent(path: str, tail_lines: int | None) -> tuple[int, int]:
    """Where the file, or its last lines, begin and end. Raises OSError."""
    with _opened(path) as fd:
        return (0 if tail_lines is None else tail_offset(fd, tail_lines)), os.fstat(fd).st_size


def _block(path: str, begin: int, end: int) -> bytes:
    """Bytes of the file from there on, at most READ_BYTES. Raises OSError."""
    with _opened(path) as fd:
        return os.pread(fd, min(READ_BYTES, end - begin), begin)


@contextlib.contextmanager
def _opened(path: str) -> Iterator[int]:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


async def _copy_output(argv: Sequence[str], response: web.StreamResponse) -> None:
    """Copy a program's output, to its end; it ends with its reader."""
    process = await asyncio.create_subprocess_exec(
        *argv, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        assert process.stdout is not None, "it is a pipe"
        while data := await process.stdout.read(READ_BYTES):
            await response.write(data)
        await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
