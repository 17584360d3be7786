"""A command in a container through the libpod API: an exec session, its output read to the end, its exit code.

The session's start answers once, without a length, and its connection closes when Podman has written down the exit
code (libpod/container_exec.go, ExecHTTPStartAndAttach), also of a command that closed its output long before: so the
end of the answer is the end of the command.

Costs two conmon processes per session until the service's ``exit_command_delay`` has passed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

import msgspec
import orjson

from ipc.host.libpod import endpoints
from workers.kubecontainer.runtime import EXEC, MAX_EXEC_OUTPUT_BYTES, ErrorKind, ExecResult, RuntimeCallError
from workers.libpod import decode
from workers.libpod.client import LibpodClient, Request
from workers.proc.process_sessions import kill_session

MAX_EXECS: Final = 256
"""Commands under way in one process; each holds a connection."""
MAX_FRAMED_BYTES: Final = 64 * 1024
"""Most that is kept of an answer, in bytes: the output that is wanted and the headers of its frames, which are as many
as the command made writes."""

log = logging.getLogger(__name__)


class ExecSessions:
    """Commands of one process in any containers. For one event loop."""

    def __init__(self, client: LibpodClient) -> None:
        self._client = client
        self._capacity = asyncio.Semaphore(MAX_EXECS)

    async def run(self, id: str, command: Sequence[str], timeout_s: float) -> ExecResult:
        """See `workers.kubecontainer.runtime.Runtime.exec_container`."""
        session = ""
        try:
            async with asyncio.timeout(timeout_s), self._capacity:
                session = await self._create(id, command)
                framed = await self._start(session)
        except TimeoutError:
            if session:
                await self._kill(session)
            raise too_late(timeout_s) from None
        result = decode.decode_exec_result(await self._inspect(session), framed, MAX_EXEC_OUTPUT_BYTES)
        return msgspec.structs.replace(result, limited=result.limited or len(framed) == MAX_FRAMED_BYTES)

    async def _create(self, id: str, command: Sequence[str]) -> str:
        body = orjson.dumps({"Cmd": list(command), "AttachStdout": True, "AttachStderr": True})
        answer = await self._client.call(Request(endpoint=endpoints.CREATE_EXEC, name=id, body=body))
        return decode.decode_created_id(answer.body)

    async def _start(self, session: str) -> bytes:
        """The frames of its output, as far as they are kept."""
        body = orjson.dumps({"Detach": False, "Tty": False})
        request = Request(endpoint=endpoints.START_EXEC, name=session, body=body)
        kept = bytearray()
        async with self._client.stream(request) as stream:
            async for part in stream.parts():  # to the end, which is the command's
                kept += part[: MAX_FRAMED_BYTES - len(kept)]
        return bytes(kept)

    async def _inspect(self, session: str) -> bytes:
        request = Request(endpoint=endpoints.INSPECT_EXEC, name=session)
        return (await self._client.call(request)).body

    async def _kill(self, session: str) -> None:
        """No endpoint of 4.3 ends a session, and nothing ends its processes when the client goes."""
        try:
            pid = decode.decode_exec_pid(await self._inspect(session))
            if pid:
                await asyncio.to_thread(kill_session, pid)
        except (RuntimeCallError, OSError) as error:
            log.warning("exec session %s runs on: %s", session[:12], error)


def too_late(timeout_s: float) -> RuntimeCallError:
    """How a command ends that takes longer than it may."""
    return RuntimeCallError(ErrorKind.TIMEOUT, EXEC, f"the command did not end within {timeout_s:g} s")
