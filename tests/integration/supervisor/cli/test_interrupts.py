"""Ctrl-C at any moment of a command's start: it ends without a word, as a process that has died of the signal.

The interpreter itself tells on stderr which modules it has loaded (`PYTHONPROFILEIMPORTTIME`). The signal is sent
behind modules that are spread evenly over all those which a command loads: no phase is met, or missed, by luck.
"""

from __future__ import annotations

import asyncio
import collections
import os
import signal
import subprocess
import sys
from typing import Final

import pytest

from tests.support.api_server import DEADLINE_S, Master, pod_changed
from tests.support.cli import ROOT

ENTRY: Final = "ipc.host.process.entry"
CONSOLE_SCRIPT: Final = f"import sys\nfrom {ENTRY} import main\nsys.exit(main())"
"""As installers make it of the entry point."""
TRIES: Final = 20
COMMANDS: Final = (
    "get pods",
    "version",
    "logs web",
    "apply -f -",
    "wait --for=condition=Ready pod/web",
)


class Try:
    """A command that is interrupted when it has loaded so many modules; None lets it run."""

    def __init__(self, master: Master, command: str, interrupt_at: int | None) -> None:
        self.modules: list[str] = []
        self.words = ""
        with subprocess.Popen(
            [sys.executable, "-c", CONSOLE_SCRIPT, *command.split()],
            cwd=ROOT,
            env={**os.environ, "ROOTLET_SOCKET": str(master.socket_path), "PYTHONPROFILEIMPORTTIME": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stderr is not None
            for line in process.stderr:
                if line.startswith("import time:"):
                    self.modules.append(line.rpartition("|")[2].strip())
                else:
                    self.words += line
                if len(self.modules) == interrupt_at:
                    process.send_signal(signal.SIGINT)
            self.code = process.wait(DEADLINE_S)

    @property
    def phase(self) -> str:
        """The part of the start that the signal has met, by the module that was loaded last."""
        if self.code != -signal.SIGINT:
            return "over"
        loaded = set(self.modules)
        return next(name for name in ("supervisor.cli.main", "click", ENTRY) if name in loaded)


@pytest.mark.parametrize("command", COMMANDS)
async def test_an_interrupt_while_a_command_starts(master: Master, command: str) -> None:
    master.ready(pod_changed(1, "web"))
    whole = await asyncio.to_thread(Try, master, command, None)
    assert "Traceback" not in whole.words
    first, last = whole.modules.index(ENTRY) + 1, len(whole.modules)
    assert last - first > TRIES
    phases: collections.Counter[str] = collections.Counter()
    for number in range(TRIES):
        at = first + (last - first) * number // TRIES
        tried = await asyncio.to_thread(Try, master, command, at)
        assert tried.words.strip() == "" or tried.phase == "over", f"behind {tried.modules[at - 1]}: {tried.words}"
        assert tried.code in (-signal.SIGINT, whole.code), tried.words
        assert tried.phase != "over" or tried.words == whole.words
        phases[tried.phase] += 1
    print(f"{command}: {dict(phases)}")
    assert phases["over"] <= TRIES // 4, phases
    assert min(phases[ENTRY], phases["supervisor.cli.main"]) > 0, phases


async def test_what_a_shell_has_put_into_the_background_stays_deaf(master: Master) -> None:
    """A shell without job control starts `COMMAND &` with SIGINT ignored: Ctrl-C means the one in front."""
    interrupted = CONSOLE_SCRIPT.replace("sys.exit", "import os\nos.kill(os.getpid(), 2)\nsys.exit")
    command = [sys.executable, "-c", interrupted, "version", "--client"]
    deaf = ["/bin/sh", "-c", 'trap "" INT; exec "$@"', "sh", *command]
    done = await asyncio.to_thread(subprocess.run, deaf, cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE_S)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Client Version:")
    heard = await asyncio.to_thread(subprocess.run, command, cwd=ROOT, capture_output=True, timeout=DEADLINE_S)
    assert (heard.returncode, heard.stdout, heard.stderr) == (-signal.SIGINT, b"", b"")
