"""Environment files while directories are renamed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.podman_service import wait_until
from workers.env.env_files import read_env_file
from workers.userns.unshare import Unshare

NOBODY = Unshare(podman="/nonexistent/podman")


def test_renames_elsewhere_do_not_keep_a_path_from_being_opened(tmp_path: Path) -> None:
    """The kernel gives up on ``..`` whenever something is renamed meanwhile, wherever on the host."""
    (tmp_path / "volume" / "a").mkdir(parents=True)
    (tmp_path / "volume" / "file.env").write_text("K='v'\n")
    (tmp_path / "x").touch()
    script = "import os, sys\nwhile True:\n    os.rename(sys.argv[1], sys.argv[2]); os.rename(sys.argv[2], sys.argv[1])"
    renaming = subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "x"), str(tmp_path / "y")])
    try:
        wait_until((tmp_path / "y").exists, 10.0)
        for _ in range(2000):
            assert read_env_file(tmp_path / "volume", "a/../a/../file.env", NOBODY).value("K") == "v"
    finally:
        renaming.kill()
        renaming.wait()
