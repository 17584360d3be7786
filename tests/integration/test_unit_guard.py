"""tests/unit/conftest.py: whoever makes a socket, a thread or a process there fails, whatever catches the error."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

GUARD: Final = Path(__file__).parents[1] / "unit" / "conftest.py"
REFUSED: Final = """\
import asyncio, os, socket, subprocess, threading

import pytest

def suppressed():
    try:
        socket.socket()
    except RuntimeError:
        pass

@pytest.fixture
def listening():
    with socket.socket() as found:
        yield found

def test_a_socket(): socket.socket()
def test_a_pair(): socket.socketpair()
def test_a_thread(): threading.Thread(target=print).start()
def test_a_subprocess(): subprocess.run(["true"])
def test_a_spawned_process(): os.posix_spawn("/bin/true", ["true"], {})
def test_a_fork(): os.fork() or os._exit(0)
def test_a_thread_of_the_loop(): asyncio.run(asyncio.to_thread(print))
def test_a_server_of_the_loop(): asyncio.run(asyncio.start_server(print, "127.0.0.1", 0))
def test_a_fixture(listening): pass
def test_what_is_caught(): suppressed()
"""
ALLOWED: Final = """\
import asyncio

def test_the_loop_wakes_itself(): asyncio.run(asyncio.sleep(0))
"""


def test_it_fails_in_words_and_lets_the_event_loop_be(tmp_path: Path) -> None:
    shutil.copy(GUARD, tmp_path / "conftest.py")
    (tmp_path / "test_refused.py").write_text(REFUSED)
    (tmp_path / "test_allowed.py").write_text(ALLOWED)
    command = [sys.executable, "-m", "pytest", "-rEpf", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)
    expected = set(re.findall(r"def (test_\w+)", REFUSED))
    told = set(re.findall(r"^ERROR test_refused.py::(\w+) - Failed: the test makes a", done.stdout, re.MULTILINE))
    assert told == expected, done.stdout
    assert re.findall(r"^PASSED (.*)", done.stdout, re.MULTILINE)[-1:] == ["test_refused.py::test_what_is_caught"]
    assert "PASSED test_allowed.py::test_the_loop_wakes_itself" in done.stdout
