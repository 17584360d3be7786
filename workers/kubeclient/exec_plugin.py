"""Credentials of an exec plugin: run when there are none, when they end, and when the server refuses them."""

from __future__ import annotations

import asyncio
from typing import Final

from ipc.host.clock import Clock
from ipc.host.process.plugin_process import PluginProcessError, ask_program
from ipc.k8s.kubeconfig.exec_credential import (
    MAX_OUTPUT_BYTES,
    VARIABLE,
    PluginCredentials,
    PluginError,
    decode_credentials,
    exec_info,
)
from ipc.k8s.kubeconfig.types import ClusterAccess, ExecPlugin

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
        """Output of the plugin. Raises PluginError."""
        plugin = self._plugin
        try:
            return await ask_program(
                (plugin.command, *plugin.args),
                {**dict(plugin.env), VARIABLE: exec_info(plugin, self._access)},
                b"",
                deadline_s=DEADLINE_S,
                max_bytes=MAX_OUTPUT_BYTES,
            )
        except PluginProcessError as error:
            hint = f": {plugin.install_hint}" if plugin.install_hint else ""
            raise PluginError(f"exec: {error}{hint}") from None
