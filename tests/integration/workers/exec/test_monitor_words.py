"""Facts that the command line of a container's monitor tells."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.podman_service import wait_until
from tests.support.runtime_values import inspected
from workers.exec.direct import (
    NotDirect,
    find_target,
)
from workers.podman_files.monitor import monitor_words

ID = "c" * 64
DEADLINE_S = 20.0


@pytest.mark.parametrize("runtime", ["/usr/bin/kata", ""])
def test_an_oci_runtime_that_is_not_known(tmp_path: Path, runtime: str) -> None:
    script = tmp_path / "monitor"
    script.write_text("read line; exit")
    words = ["conmon", str(script), "-c", ID, "-b", "/b", *(["-r", runtime] if runtime else [])]
    monitor = subprocess.Popen(words, executable="/bin/sh", stdin=subprocess.PIPE)
    try:
        # Popen returns when exec has closed its files, which is a little before there is a command line to be read.
        wait_until(lambda: bool(monitor_words(monitor.pid)), DEADLINE_S)
        with pytest.raises(NotDirect, match=f"its OCI runtime is {runtime or 'unknown'}"):
            find_target(inspected(ID, conmon_pid=monitor.pid))
        with pytest.raises(NotDirect, match="no monitor"):
            find_target(inspected("d" * 64, conmon_pid=monitor.pid))
    finally:
        monitor.communicate()
