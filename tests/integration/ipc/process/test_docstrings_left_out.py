"""A process whose modules come without docstrings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_modules_that_are_imported_later_have_none() -> None:
    program = (
        "import abc\n"
        "from ipc.process import docstrings\n"
        "docstrings.leave_out()\n"
        "import colorsys, ipc.host.clock\n"
        "print(abc.__doc__ is not None, colorsys.__doc__, colorsys.rgb_to_yiq.__doc__, ipc.host.clock.__doc__)\n"
    )
    root = Path(__file__).parents[4]
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout == "True None None None\n"
