"""Figures of a container without its files, from whatever source."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from ipc.stats.values import Cpu, Io, Memory, Processes

_Sample = TypeVar("_Sample", Cpu, Memory)


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """Of one reading."""

    cpu: Cpu | None = None
    memory: Memory | None = None
    io: Io | None = None
    processes: Processes | None = None

    def at(self, time: float) -> Measured:
        """The same CPU time and memory, found again at that time in epoch seconds."""
        return msgspec.structs.replace(self, cpu=_at(self.cpu, time), memory=_at(self.memory, time))


def _at(sample: _Sample | None, time: float) -> _Sample | None:
    return msgspec.structs.replace(sample, time=time) if sample is not None else None
