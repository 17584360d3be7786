"""Spans of a process that is killed."""

from __future__ import annotations

import os
import signal

import pytest

from ipc.link.shm.trace import TraceBuffer, Tracer

pytestmark = pytest.mark.process

SPANS = 1000


def test_what_a_killed_process_has_told_is_there_and_its_successor_goes_on() -> None:
    buffer = TraceBuffer(1)
    buffer.start()
    for incarnation in range(2):
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                tracer = Tracer()
                tracer.attach(buffer, 0, f"pods-{incarnation}")
                for number in range(SPANS):
                    tracer.instant(f"step {number}", "uid")
                os.write(writer, b"told")
                signal.pause()
            finally:
                os._exit(1)
        assert os.read(reader, 4) == b"told"
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(reader)
        os.close(writer)
    found = buffer.read()
    assert [(span.process, span.name) for span in found.spans] == [
        (f"pods-{incarnation}", f"step {number}") for incarnation in range(2) for number in range(SPANS)
    ]
    assert len({span.pid for span in found.spans}) == 2
    buffer.stop()
