"""Blocks that are freed go back to the kernel: glibc itself, in processes of their own."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from ipc.host.process.spare_memory import KEPT_BYTES

TREE = Path(__file__).parents[5]
GLIBC = platform.libc_ver()[0] == "glibc"
FREED_BYTES = 11 << 20
PROGRAM = """
import ctypes, sys
from pathlib import Path
from ipc.host.process import spare_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
if sys.argv[1] == "fixed":
    spare_memory.fix_limits()
bytearray(16 << 20)  # freed at once, it raises glibc's limits
blocks = [libc.malloc(1 << 20) for _ in range(12)]
for block in blocks:
    ctypes.memset(block, 1, 1 << 20)
full = resident()
blocks.pop()  # behind the free ones
for block in blocks:
    libc.free(block)
if sys.argv[1] == "trimmed":
    spare_memory.trim()
print(full - resident())
"""


def freed_bytes(how: str) -> int:
    """Bytes that 11 MiB of freed blocks give back to the kernel, in a process of its own."""
    command = [sys.executable, "-c", PROGRAM, how]
    return int(subprocess.run(command, cwd=TREE, env={}, check=True, capture_output=True, timeout=30).stdout)


@pytest.mark.skipif(not GLIBC, reason="only glibc has these limits")
def test_blocks_that_are_freed_go_back_to_the_kernel_with_fixed_limits_and_when_they_are_trimmed() -> None:
    assert freed_bytes("as it is") < FREED_BYTES / 2
    assert freed_bytes("fixed") > FREED_BYTES - KEPT_BYTES
    assert freed_bytes("trimmed") > FREED_BYTES - KEPT_BYTES
