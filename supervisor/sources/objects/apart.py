"""Decodes manifests that may be costly in a program of its own (`decode_program`), and the others here.

What a manifest costs is in proportion to its size, but for two things: aliases of YAML, which are small and stand for
much, and an escape that only the slow parser knows. So what is small and has no alias is decoded here, in some hundred
milliseconds at most.
"""

from __future__ import annotations

import contextlib
import logging
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Final

import msgspec

from supervisor.protocol.manifests import DecodedFile, ManifestError, ManifestErrorKind
from supervisor.sources.objects.decode import decode_manifest
from supervisor.sources.objects.decode_program import SHAPES, Asked, decode_answer, read_sized, write_sized
from supervisor.sources.objects.identity import Origin

LIGHT_BYTES: Final = 32 * 1024
"""Largest manifest that is decoded in the agent's own process."""
DEADLINE_S: Final = 30.0
"""How long one manifest may take, in seconds: the costliest of 1 MiB has taken 6."""
BYTES_PER_PROGRAM: Final = 1 << 20
"""After so many bytes of manifests another program takes the next one: the memory of the first is given back."""
_ALIAS: Final = re.compile(rb"(?:^|[\s\[{,:-])\*[^\s*]", re.MULTILINE)
_TREE: Final = str(Path(__file__).parents[3])
_CODE: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]);"
    " from supervisor.sources.objects.decode_program import main; main(int(sys.argv[2]))"
)

log = logging.getLogger(__name__)


def is_heavy(data: bytes) -> bool:
    """Whether decoding may cost much. Pure."""
    return len(data) > LIGHT_BYTES or (b"&" in data and _ALIAS.search(data) is not None)


class Decoder:
    """Decodes one manifest after another, costly ones by a program that is there meanwhile.

    Blocks: for one thread at a time. `end` may be called from any.
    """

    def __init__(self, deadline_s: float = DEADLINE_S, cpu_s: int = 2 * int(DEADLINE_S)) -> None:
        self._deadline_s = deadline_s
        self._cpu_s = cpu_s
        self._program: subprocess.Popen[bytes] | None = None
        self._taken_bytes = 0
        self._is_late = False
        self._is_ended = False

    def decode(self, data: bytes, file: str, origin: Origin, shape: str = "manifest") -> DecodedFile:
        """Pods, objects and errors of a file. ``shape`` is one of `decode_program.SHAPES`.

        A file that takes longer than the deadline, or ends the program twice, has an error. Raises OSError when there
        is no room for a program.
        """
        if not is_heavy(data):
            return decode_manifest(data, file, origin, SHAPES[shape])
        asked = msgspec.msgpack.encode(Asked(data, file, origin, shape))
        if self._taken_bytes and self._taken_bytes + len(data) > BYTES_PER_PROGRAM:
            self.close()
        if (answer := self._answer(asked, len(data))) is None and not (self._is_late or self._is_ended):
            answer = self._answer(asked, len(data))  # what it had decoded before may have cost its memory
        if answer is None:
            why = f"was not decoded within {self._deadline_s:g} s" if self._is_late else "took too much to decode"
            words = f"{why}: make it smaller, or divide it"
            return DecodedFile(errors=(ManifestError(kind=ManifestErrorKind.SYNTAX, file=file, message=words),))
        return decode_answer(answer, file)

    def end(self) -> None:
        """Let a decoding that is under way end at once, with an error."""
        self._is_ended = True
        if (program := self._program) is not None:
            program.kill()

    def close(self) -> None:
        """End the program, which has nothing to do."""
        program, self._program, self._taken_bytes = self._program, None, 0
        if program is not None:
            program.kill()
            for pipe in (program.stdin, program.stdout):
                _close(pipe)
            program.wait()

    def _answer(self, asked: bytes, size: int) -> bytes | None:
        """None when the program has ended. Raises OSError when there can be none."""
        program = self._program or self._started()
        self._taken_bytes += size
        self._is_late = False
        timer = threading.Timer(self._deadline_s, self._late, (program,))
        timer.start()
        assert program.stdin is not None
        assert program.stdout is not None
        answer = None
        try:
            write_sized(program.stdin, asked)  # type: ignore[arg-type]
            answer = read_sized(program.stdout)  # type: ignore[arg-type]
        except (OSError, ValueError) as error:
            log.debug("the program that decodes has ended: %s", error)
        finally:
            timer.cancel()
            if answer is None:
                self.close()
        return answer

    def _started(self) -> subprocess.Popen[bytes]:
        # -I: nothing of the user's.
        argv = (sys.executable, "-I", "-c", _CODE, _TREE, str(self._cpu_s))
        self._program = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/", env={}
        )
        if self._is_ended:
            self._program.kill()
        return self._program

    def _late(self, program: subprocess.Popen[bytes]) -> None:
        self._is_late = True
        program.kill()


def decode_apart(data: bytes, file: str, origin: Origin, shape: str = "manifest") -> DecodedFile:
    """Decode one manifest, as `Decoder.decode`; that there is no room for a program is an error, too. Blocks."""
    with contextlib.closing(Decoder()) as decoder:
        try:
            return decoder.decode(data, file, origin, shape)
        except OSError as error:
            words = f"cannot be decoded now: {error.strerror or error}"
            return DecodedFile(errors=(ManifestError(kind=ManifestErrorKind.UNREADABLE, file=file, message=words),))


def _close(pipe: IO[bytes] | None) -> None:
    if pipe is not None:
        with contextlib.suppress(OSError):
            pipe.close()
