"""Libraries that cost megabytes, and that the process which speaks to a cluster does without."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[4]
PROGRAM: Final = "import sys; import workers.main, workers.cluster.agent; print(*sys.modules)"
HEAVY: Final = {"aiohttp", "cryptography", "podman", "requests", "h2"}


def test_the_process_of_a_cluster_imports_no_http_server_and_no_library_for_certificates() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    modules = set(done.stdout.split())
    assert "workers.kubeclient.client" in modules
    assert modules & HEAVY == set()
