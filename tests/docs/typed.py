"""A command of a page that somebody types into: `python -m tests.docs.typed COMMAND LINE...` prints the whole screen.

The lines are those that stand behind a prompt in the page's own capture; each is typed when a prompt is there.
"""

from __future__ import annotations

import re
import shlex
import sys
from typing import Final

from tests.e2e.terminal import terminal

SIZE: Final = (24, 80)
"""Lines and columns of a terminal that nobody has made larger."""
_PROMPT: Final = "# "
_TYPED: Final = re.compile(rf"^\S+ {_PROMPT}(.*)$", re.MULTILINE)
_ON_A_TERMINAL: Final = re.compile(r"^rootlet .*-it\b")
_STEERING: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def typed_into(line: str, output: str) -> str:
    """Command line that a page's shell runs for a command: itself, or this program when it wants a terminal."""
    if not _ON_A_TERMINAL.search(line):
        return line
    words = shlex.join(["python", "-m", "tests.docs.typed", line, *_TYPED.findall(output)])
    return f'(cd "$CHECKOUT" && {words})'


def screen_of(command: str, lines: list[str]) -> str:
    """All that was shown until the command ended."""
    with terminal(["bash", "-c", f"exec {command}"], size=SIZE) as screen:
        shown = b""
        for line in lines:
            shown += screen.until(_PROMPT.encode())
            screen.type(f"{line}\n".encode())
        screen.wait()
        return as_shown((shown + screen.screen).decode())


def as_shown(output: str) -> str:
    """Text that stands on a terminal after that output: a shell writes its prompt anew when it is told the size."""
    return "\n".join(map(_overwritten, _STEERING.sub("", output).split("\n")))


def _overwritten(line: str) -> str:
    """A carriage return goes to the line's beginning, and what comes after it stands over what was there."""
    shown = ""
    for part in line.split("\r"):
        shown = part + shown[len(part) :]
    return shown


if __name__ == "__main__":
    sys.stdout.write(screen_of(sys.argv[1], sys.argv[2:]))
