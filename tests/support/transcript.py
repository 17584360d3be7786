"""Transcripts: commands of the command line with all that they answer.

A command is a line ``$ rootlet ...`` in a shell's words; below it lines of standard output behind ``> ``, those of
standard error as they are, and ``[CODE]``. Lines that begin with ``# `` between commands are headings.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Final

import msgspec

PROMPT: Final = "$ rootlet "
_END: Final = re.compile(r"\[([0-9]+)\]")


class Step(msgspec.Struct, frozen=True):
    """A command and its answer."""

    command: str
    """Words of the command line behind the program's name."""
    out: str
    err: str
    code: int

    @property
    def words(self) -> list[str]:
        return shlex.split(self.command)

    def __str__(self) -> str:
        out = "".join(f"> {line}\n" for line in self.out.splitlines())
        err = self.err if not self.err or self.err.endswith("\n") else f"{self.err}\n"
        return f"{PROMPT}{self.command}\n{out}{err}[{self.code}]\n"


def read_transcript(text: str) -> Iterator[Step | str]:
    """Steps of a transcript, and headings without their mark. Raises ValueError for a step without an end."""
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("# "):
            yield line.removeprefix("# ")
        elif line.startswith(PROMPT):
            yield _step(line.removeprefix(PROMPT), lines)


def _step(command: str, lines: Iterator[str]) -> Step:
    out: list[str] = []
    err: list[str] = []
    for line in lines:
        if end := _END.fullmatch(line):
            return Step(command, "".join(out), "".join(err), int(end[1]))
        (out if line.startswith("> ") else err).append(f"{line.removeprefix('> ')}\n")
    raise ValueError(f"no exit code behind {command!r}")


def write_transcript(steps: Iterator[Step | str]) -> str:
    """As `read_transcript` reads it."""
    return "\n".join(f"# {step}\n" if isinstance(step, str) else str(step) for step in steps)
