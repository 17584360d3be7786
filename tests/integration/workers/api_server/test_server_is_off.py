"""A server that nobody has switched on is not in anybody's memory."""

from __future__ import annotations

import subprocess
import sys

SHOW = "import sys; print(*sorted(name for name in sys.modules if name in {unwanted} or name.startswith({prefixes})))"


def loaded(module: str, unwanted: set[str], *prefixes: str) -> str:
    code = f"import {module}; " + SHOW.format(unwanted=unwanted, prefixes=prefixes)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_an_api_server_without_ports_has_nothing_of_them() -> None:
    assert (
        loaded("workers.api_server.server", {"cryptography", "workers.api_server.ports"}, "workers.api_server.access")
        == ""
    )


def test_a_certificate_is_the_only_reason_for_cryptography() -> None:
    assert loaded("workers.api_server.ports", {"cryptography"}) == ""


def test_a_master_without_a_url_has_no_http_client() -> None:
    assert loaded("supervisor.master", {"supervisor.sources.url_reader", "h11", "cryptography"}, "aiohttp") == ""
