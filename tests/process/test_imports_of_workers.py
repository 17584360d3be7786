"""A whole agent on the simulated Podman service: which of its processes have imported podman-py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ipc.link.wire.boot import Role
from tests.bench.simulated import SimulatedNode, manifests, simulated_node
from tests.fakes.libpod_server import IMAGE
from tests.support.module_lists import DIRECTORY_VARIABLE, read_lists

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]

PODS = 2
DEADLINE_S = 60.0
PODMAN_PY = {"podman", "requests", "urllib3"}


@pytest.fixture
def lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path))
    return tmp_path


def modules_once(lists: Path, image: str, condition: Callable[[SimulatedNode], bool]) -> dict[Role, set[str]]:
    with simulated_node(PODS, instant=True) as node:
        node.start(module="tests.support.module_lists")
        node.state_pods(manifests(PODS, image=image))
        node.until(lambda: condition(node), DEADLINE_S)
        node.stop()
    return read_lists(lists)


def test_pods_are_started_without_podman_py_and_opentelemetry(lists: Path) -> None:
    found = modules_once(lists, IMAGE, lambda node: node.ready_pods() == PODS)
    assert found.keys() >= {Role.POD_WORKER, Role.NODE_WORKER, Role.API_SERVER}
    unwanted = {*PODMAN_PY, "opentelemetry", "click"}
    assert {role: modules & unwanted for role, modules in found.items()} == {role: set() for role in found}
    assert "httptools" in found[Role.POD_WORKER]
    assert "aiohttp.web" in found[Role.API_SERVER]
    assert "psutil" not in found[Role.API_SERVER]
    metrics = {"workers.statsapi.metrics", "workers.api_server.metrics.exposition"}
    assert {role for role, modules in found.items() if modules & metrics} == set(), "nobody has scraped"


def test_only_the_process_that_pulls_imports_podman_py(lists: Path) -> None:
    found = modules_once(lists, "registry.example/a:1", lambda node: node.service().calls.get("pull image", 0) > 0)
    assert found[Role.NODE_WORKER] >= PODMAN_PY
    assert found[Role.POD_WORKER] & PODMAN_PY == set()
