"""Runs the commands of a page of the documentation and holds what they print against the page.

A block ```` ```console ```` has commands behind ``$ ``, each with its output below it; a block ```` ```yaml ```` whose
first line is a comment with a path becomes that file. A comment ``<!-- run`` has commands that no reader sees: they
bring about what the page speaks of, and wait for it. All commands of a page go to one shell, in the page's order.
"""

from __future__ import annotations

import re
import selectors
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from ipc.host.clock import monotonic
from tests.docs.typed import typed_into

COMMAND_DEADLINE_S: Final = 90.0
END_DEADLINE_S: Final = 30.0
READ_BYTES: Final = 65536
SHOWN_CHARS: Final = 1000

_BLOCK: Final = re.compile(r"^(?:```|<!-- )(console|yaml|run)\n(.*?)^(?:```|-->)$", re.MULTILINE | re.DOTALL)
_FILE: Final = re.compile(r"# ([\w./-]+\.\w+)\n")
_END: Final = "-- the end of a command --"
_JOB: Final = re.compile(r"^bash: line \d+: +\d+ (?:Killed|Terminated) .*\n", re.MULTILINE)
"""The shell's own word on a job that was killed."""
_CELL: Final = re.compile(r" {3,}")
_OF_THE_MOMENT: Final = frozenset({"PID", "HEARTBEAT", "STEP"})
"""Columns whose cells are others at every look."""
_PLAIN: Final = (
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{12,64}\b"), "ID"),
    # A pod's own address is the host's with pasta, and nobody's with slirp4netns.
    (re.compile(r"<private>|\b\d+\.\d+\.\d+\.\d+(?:\]?:\d+)?|\[::1\]:\d+"), "ADDRESS"),
    (re.compile(r"\(pid \d+\)|\bconnection for \d+"), "NUMBER"),
    (re.compile(r"\b\d+\.\d+ s\b"), "AGE"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT[\d:.]+Z"), "TIME"),
    (re.compile(r"\b\w{3}, \d\d \w{3} \d{4} [\d:]{8} \+0000"), "TIME"),
    (re.compile(r"\b(?:\d+[dhms])+\b"), "AGE"),
    (re.compile(r"AGE \(x\d+ over AGE\)"), "AGE"),
    (re.compile(r"\bnode/[\w.-]+"), "NODE"),
    (re.compile(r"^BusyBox v\S+ \(.*?\)", re.MULTILINE), "BusyBox"),
    (re.compile(r" {2,}"), "  "),
)
"""Parts of an output that differ from run to run, and what stands for them in a comparison; columns move with them."""


class Command(NamedTuple):
    line: str
    output: str


class File(NamedTuple):
    path: str
    content: str


class Unseen(NamedTuple):
    """Commands that stand in a comment; some have lines of input below them."""

    lines: str


class Shell:
    """One bash that takes a command at a time. Raises TimeoutError for one that does not end."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self._bash = subprocess.Popen(
            ["bash", "--norc"],
            cwd=directory,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def run(self, line: str) -> str:
        assert self._bash.stdin is not None
        self._bash.stdin.write(f"{line}\necho '{_END}'\n".encode())
        self._bash.stdin.flush()
        return self._read(line)

    def _read(self, line: str) -> str:
        assert self._bash.stdout is not None
        found, until = b"", monotonic() + COMMAND_DEADLINE_S
        with selectors.DefaultSelector() as selector:
            selector.register(self._bash.stdout, selectors.EVENT_READ)
            while not found.endswith(f"{_END}\n".encode()):
                if not selector.select(until - monotonic()):
                    raise TimeoutError(
                        f"{line}: not within {COMMAND_DEADLINE_S} s; so far: ...{found.decode()[-SHOWN_CHARS:]}"
                    )
                read = self._bash.stdout.read1(READ_BYTES)  # type: ignore[attr-defined]
                assert read, f"{line}: the shell has ended; so far: {found.decode()}"
                found += read
        return _JOB.sub("", found.decode().removesuffix(f"{_END}\n"))

    def close(self) -> None:
        """End the shell and all that it has started."""
        for process in psutil.Process(self._bash.pid).children(recursive=True):
            process.kill()
        self._bash.kill()
        self._bash.communicate(timeout=END_DEADLINE_S)


def steps(page: str) -> Iterator[Command | File | Unseen]:
    """Files and commands of a page, in order."""
    for kind, text in _BLOCK.findall(page):
        match kind:
            case "yaml":
                if found := _FILE.match(text):
                    yield File(found[1], text[found.end() :])
            case "run":
                yield Unseen(text)
            case _:
                yield from _commands(text)


def _commands(block: str) -> Iterator[Command]:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line, _, output = part.partition("\n")
        yield Command(line, output)


def perform(page: str, shell: Shell, directory: Path) -> list[Command]:
    """Make the files, run the commands; what they have printed."""
    done = []
    for step in steps(page):
        match step:
            case File(path, content):
                (directory / path).write_text(content)
            case Unseen(lines):
                shell.run(lines)
            case Command(line, output):
                done.append(Command(line, shell.run(typed_into(line, output))))
    return done


def rewritten(page: str, done: Sequence[Command]) -> str:
    """The page with these outputs, where one differs by more than what differs in every run."""
    left = iter(done)

    def block(found: re.Match[str]) -> str:
        if found[1] != "console":
            return found[0]
        lines = []
        for before in _commands(found[2]):
            now = next(left)
            assert now.line == before.line
            output = before.output if plain(now.output) == plain(before.output) else now.output
            lines.append(f"$ {before.line}\n{output}")
        return f"```console\n{''.join(lines)}```"

    return _BLOCK.sub(block, page)


def plain(output: str) -> str:
    """An output without the parts that differ from run to run."""
    output = _without_moments(output)
    for pattern, word in _PLAIN:
        output = pattern.sub(word, output)
    return "\n".join(line.rstrip() for line in output.splitlines())


def _without_moments(output: str) -> str:
    """A table with the names of columns in place of those cells that are others at every look."""
    lines = output.splitlines()
    titles = _CELL.split(lines[0]) if lines else []
    if not _OF_THE_MOMENT.intersection(titles):
        return output
    rows = [_CELL.split(line) for line in lines[1:]]
    kept = [
        [title if title in _OF_THE_MOMENT else cell for title, cell in zip(titles, row, strict=False)] for row in rows
    ]
    return "\n".join("   ".join(row) for row in (titles, *kept))
