from pathlib import Path

import pytest

from supervisor.config.resolution.resolved_settings import Host, resolve_settings
from supervisor.config.settings import Settings
from supervisor.config.socket_path import admin_socket_path


@pytest.mark.parametrize("environ", [{}, {"XDG_RUNTIME_DIR": ""}, {"XDG_RUNTIME_DIR": "/somewhere"}])
@pytest.mark.parametrize("instance", ["", "rootlet", "two"])
def test_the_cli_looks_where_the_agent_listens(environ: dict[str, str], instance: str) -> None:
    host = Host(home=Path("/home/user"), uid=1000, host_name="node", cpus=2, environment=environ)
    settings = Settings(instance_name=instance or "rootlet")
    listens = resolve_settings(settings, Path("/"), host, "x").admin_socket
    assert admin_socket_path(instance, environ, 1000) == listens
