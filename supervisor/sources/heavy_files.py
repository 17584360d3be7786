"""Queue of the files that are decoded apart: the smallest first, one at a time, and none keeps the others waiting.

Belongs to the loop; the work is done in a thread and in a program (`apart`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Final

from supervisor.protocol.manifests import DecodedFile
from supervisor.sources.directory import Heavy, ManifestReader
from supervisor.sources.objects.apart import Decoder

PATIENCE_S: Final = 2.0
"""How long what else is known waits for the files of a queue that has just begun, in seconds: a pod and the ConfigMaps
of its file's neighbour mostly come together."""


def next_heavy(queue: Mapping[str, Heavy]) -> str:
    """Name of the smallest file. Pure."""
    return min(queue, key=lambda name: (queue[name].signature.size, name))


class HeavyFiles:
    """Decodes the files that a reader leaves to others, and hands over what they state."""

    def __init__(self, reader: ManifestReader, stir: Callable[[], None]) -> None:
        """``stir`` is called when there is something to hand over."""
        self._reader = reader
        self._stir = stir
        self._queue: dict[str, Heavy] = {}
        self._decoded: dict[str, tuple[Heavy, DecodedFile]] = {}
        self._has_work = asyncio.Event()
        self._is_idle = asyncio.Event()

    def hand_over(self) -> bool:
        """Give the reader what was decoded, while it reads nothing; whether there was anything."""
        decoded, self._decoded = self._decoded, {}
        for name, (heavy, file) in decoded.items():
            self._reader.take(name, heavy, file)
        return bool(decoded)

    async def ask(self) -> None:
        """Decode what the last reading has left, instead of what was asked for before. Waits for a queue that begins,
        for a while."""
        begins = not self._queue
        known = {name: heavy for name, (heavy, _) in self._decoded.items()}
        self._queue = {name: heavy for name, heavy in self._reader.heavy.items() if known.get(name) != heavy}
        if not self._queue:
            return
        self._is_idle.clear()
        self._has_work.set()
        if begins:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_S):
                    await self._is_idle.wait()

    async def run(self) -> None:
        """Decode what is asked for, for ever."""
        while True:
            await self._has_work.wait()
            self._has_work.clear()
            decoder = Decoder()
            try:
                while self._queue:
                    await self._decode(decoder, next_heavy(self._queue))
            finally:
                decoder.end()
            await asyncio.to_thread(decoder.close)
            self._is_idle.set()

    async def _decode(self, decoder: Decoder, name: str) -> None:
        heavy = self._queue[name]
        decoded = await asyncio.to_thread(self._reader.decode_heavy, name, heavy, decoder)
        if self._queue.get(name) == heavy:
            del self._queue[name]
            if decoded is not None:
                self._decoded[name] = heavy, decoded
                self._stir()
