"""The log of a whole agent on the simulated Podman service, as a log collector reads it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.bench.simulated import SimulatedNode, manifests, simulated_node

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]

DEADLINE_S = 60.0


def lines(node: SimulatedNode) -> list[dict[str, Any]]:
    """All that are whole."""
    text = node.log.read_text().rpartition("\n")[0]
    return [json.loads(line) for line in text.splitlines()]


def test_every_line_of_every_process_is_json_and_names_its_pod() -> None:
    settings = {"logging": {"format": "json", "vmodule": [{"filePattern": "shm", "verbosity": 4}]}}
    with simulated_node(1, instant=True, settings=settings) as node:
        node.start()
        node.state_pods(manifests(1))
        node.until(lambda: any("started main" in line["msg"] for line in lines(node)), DEADLINE_S)
        node.stop()
        found = lines(node)
    (started,) = (line for line in found if "started main" in line["msg"])
    assert started["pod"] == {"name": "pod-00000", "namespace": "default"}
    assert (started["v"], started["caller"].partition(":")[0], len(started["podUID"])) == (
        0,
        "supervisor/master.py",
        36,
    )
    assert started["logger"] == "supervisor.loop"
    assert all({"ts", "caller", "msg", "level", "process", "logger"} <= line.keys() for line in found)
    processes = {line["process"].partition("-")[0] for line in found if line["logger"].startswith("ipc.link.shm")}
    assert processes == {"node", "api", "dial", "pods"}, "each says at its birth how it logs"
