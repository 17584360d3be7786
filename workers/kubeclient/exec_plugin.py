"""Credentials of an exec plugin: run when there are none, when they end, and when the server refuses them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from typing import Final

from ipc.host.clock import Clock
from ipc.kubeconfig.exec_credential import (
    MAX_OUTPUT_BYTES,
    VARIABLE,
    PluginCredentials,
    PluginError,
    decode_credentials,
    exec_info,
)
from ipc.kubeconfig.types import ClusterAccess, ExecPlugin

DEADLINE_S: Final = 60.0
"""How long a plugin may run, in seconds. Upstream waits for ever."""


class PluginRunner:
    """Runs one plugin, once for all who wait, and keeps what it gave."""

    def __init__(self, plugin: ExecPlugin, access: ClusterAccess, clock: Clock) -> None:
        self._plugin = plugin
        self._access = access
        self._clock = clock
        self._lock = asyncio.Lock()
        self._known: PluginCredentials | None = None

    async def credentials(self) -> PluginCredentials:
        """The newest ones. Raises PluginError."""
        async with self._lock:
            if self._known is None or self._known.is_expired(self._clock.now().wall):
                self._known = decode_credentials(await self._run(), self._plugin)
            return self._known

    def refused(self) -> None:
        """The server has answered 401: the plugin is asked again at the next use (exec.go, maybeRefreshCreds)."""
        self._known = None

    async def _run(self) -> bytes:
        plugin = self._plugin
        environment = {**os.environ, **dict(plugin.env), VARIABLE: exec_info(plugin, self._access)}
        try:
            process = await asyncio.create_subprocess_exec(
                plugin.command,
                *plugin.args,
                env=environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            hint = f": {plugin.install_hint}" if plugin.install_hint else ""
            raise PluginError(f"exec: {plugin.command}: {error.strerror or error}{hint}") from None
        try:
            async with asyncio.timeout(DEADLINE_S):
                output = await _read_bounded(process)
                code = await process.wait()
        except TimeoutError:
            raise PluginError(f"exec: {plugin.command}: no credentials within {DEADLINE_S:g} s") from None
        finally:
            with contextlib.suppress(ProcessLookupError):  # all of them have ended
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        if code:
            raise PluginError(f"exec: executable {plugin.command} failed with exit code {code}")
        return output


async def _read_bounded(process: asyncio.subprocess.Process) -> bytes:
    assert process.stdout is not None
    output = bytearray()
    while part := await process.stdout.read(1 << 16):
        output += part
        if len(output) > MAX_OUTPUT_BYTES:
            raise PluginError(f"the plugin has printed more than {MAX_OUTPUT_BYTES} bytes")
    return bytes(output)
