"""What is let go of after a start, and what must not be."""

from __future__ import annotations

import subprocess
import sys

from ipc.code_pages import untouched_files

SMAPS = """\
55d0c0000000-55d0c0001000 r--p 00000000 08:01 77                         /usr/bin/python3.11
Rss:                   4 kB
Anonymous:             0 kB
VmFlags: rd mr mw me
55d0c0001000-55d0c0004000 r-xp 00001000 08:01 77                         /usr/bin/python with spaces (deleted)
Anonymous:             0 kB
55d0c0004000-55d0c0005000 r--p 00004000 08:01 77                         /usr/lib/relocated.so
Anonymous:             4 kB
55d0c0005000-55d0c0006000 rw-p 00005000 08:01 77                         /usr/lib/data.so
Anonymous:             0 kB
55d0c0006000-55d0c0007000 r--s 00000000 00:01 9                          /memfd:board (deleted)
Anonymous:             0 kB
55d0c0007000-55d0c0008000 r--p 00000000 00:00 0
Anonymous:             0 kB
7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0                          [vdso]
Anonymous:             0 kB
"""
LET_GO = """
import decimal, json, ssl, sys
from ipc.code_pages import let_go_of_code

def mapped():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssFile:"))

before = mapped()
let_go_of_code()
after = mapped()
assert json.loads(json.dumps([str(decimal.Decimal("1.5") ** 20)])) and ssl.create_default_context()
print(before, after)
"""


def test_only_what_equals_its_file_and_cannot_be_written_to() -> None:
    assert list(untouched_files(SMAPS.splitlines())) == [
        (0x55D0C0000000, 0x55D0C0001000),
        (0x55D0C0001000, 0x55D0C0004000),
    ]


def test_a_process_goes_on_with_less_of_its_libraries_mapped() -> None:
    done = subprocess.run([sys.executable, "-c", LET_GO], capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert after < before / 2, "kB of files"
