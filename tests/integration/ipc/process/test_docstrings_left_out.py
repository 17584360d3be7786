"""A process whose modules come without docstrings."""

from __future__ import annotations

import marshal
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]


def test_modules_that_are_imported_later_have_none() -> None:
    program = (
        "import abc\n"
        "from ipc.process import docstrings\n"
        "docstrings.leave_out()\n"
        "import colorsys, ipc.host.clock\n"
        "print(abc.__doc__ is not None, colorsys.__doc__, colorsys.rgb_to_yiq.__doc__, ipc.host.clock.__doc__)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "True None None None\n"


def imported(directory: Path) -> str:
    """Output of a process that leaves docstrings out and imports the module in that directory."""
    program = (
        "import sys\n"
        f"sys.path.insert(0, {str(directory)!r})\n"
        "from ipc.process import docstrings\n"
        "docstrings.leave_out()\n"
        "import told\n"
        "print(told.__doc__, told.VALUE, told.__file__)\n"
    )
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(directory / "kept")}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_what_is_kept_of_a_module_serves_the_next_process_as_long_as_the_source_is_the_same(tmp_path: Path) -> None:
    source = tmp_path / "told.py"
    source.write_text("'told'\nVALUE = 1\n")
    for _ in range(2):
        assert imported(tmp_path) == f"None 1 {source}"
    (kept,) = (tmp_path / "kept").rglob("told.*nodoc*.pyc")
    data = kept.read_bytes()
    old = marshal.dumps(compile("VALUE = 2", str(source), "exec"))
    kept.write_bytes(data[:16] + old)
    assert imported(tmp_path) == f"None 2 {source}", "it is what is read"
    source.write_text("'told anew'\nVALUE = 3\n")
    assert imported(tmp_path) == f"None 3 {source}"


@pytest.mark.parametrize(
    "damaged",
    [
        lambda data: b"",
        lambda data: data[:16],
        lambda data: data[:-10],
        lambda data: data[:16] + marshal.dumps("no code"),
        lambda data: data[:16] + marshal.dumps(compile("VALUE = 2", "elsewhere.py", "exec")),
        lambda data: b"older" + data[5:],
    ],
    ids=["empty", "cut off", "cut short", "no code", "of another file", "of another Python"],
)
def test_what_is_kept_and_cannot_be_used_is_made_anew(tmp_path: Path, damaged: Callable[[bytes], bytes]) -> None:
    source = tmp_path / "told.py"
    source.write_text("'told'\nVALUE = 1\n")
    imported(tmp_path)
    (kept,) = (tmp_path / "kept").rglob("told.*nodoc*.pyc")
    useless = damaged(kept.read_bytes())
    kept.write_bytes(useless)
    assert imported(tmp_path) == f"None 1 {source}"
    assert kept.read_bytes() != useless, "it was replaced"
