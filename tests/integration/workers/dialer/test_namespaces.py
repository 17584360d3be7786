"""Network namespaces entered and left, by a process that is root in a user namespace of its own."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from workers.dialer import namespaces

TREE = Path(__file__).parents[4]
ROUND_TRIP = """
import os
from workers.dialer.namespaces import enter_network, leave_network, open_network

def here():
    return os.stat("/proc/self/ns/net").st_ino

home = open_network(os.getpid())
seen = [here()]
leave_network()
seen.append(here())
enter_network(home)
seen.append(here())
print(*seen)
"""


def test_a_network_is_left_and_entered_again() -> None:
    command = ("unshare", "--user", "--map-root-user", "--net", sys.executable, "-I", "-S", "-c")
    program = f"import sys; sys.path.append({str(TREE)!r})\n{ROUND_TRIP}"
    done = subprocess.run((*command, program), capture_output=True, text=True, timeout=30, check=True)
    first, empty, last = done.stdout.split()
    assert first == last
    assert empty not in (first, str(os.stat("/proc/self/ns/net").st_ino))


def test_what_is_no_namespace_is_an_error_with_its_number(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(OSError, match="Invalid argument") as failed:
            namespaces.enter_network(fd)
    finally:
        os.close(fd)
    assert failed.value.errno == errno.EINVAL


def test_the_network_of_a_process_that_has_ended() -> None:
    with pytest.raises(ProcessLookupError):
        namespaces.open_network(2**22 + 1)
