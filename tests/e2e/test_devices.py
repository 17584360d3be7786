"""Devices of the configuration, on real Podman: harmless nodes of the host under other names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.agent import Agent
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import STAY, container, pod

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

ZERO: Final = "example.com/zero"
NULL: Final = "example.com/null"
READ: Final = "echo $WHICH; ls /dev/own-*; head -c 3 /dev/own-$WHICH | od -An -tx1"
REFUSED: Final = (
    f"Allocate failed due to requested number of devices unavailable for {ZERO}. Requested: 1, Available: 0, "
    "which is unexpected"
)


def cdi_spec(directory: Path) -> None:
    """Two devices, each of which says in a variable which one it is."""
    devices = [
        {
            "name": name,
            "containerEdits": {
                "env": [f"WHICH={name}"],
                "deviceNodes": [{"path": f"/dev/own-{name}", "hostPath": "/dev/zero"}],
            },
        }
        for name in ("a", "b")
    ]
    (directory / "zero.json").write_text(json.dumps({"cdiVersion": "0.5.0", "kind": ZERO, "devices": devices}))


def asking(script: str = STAY, number: int = 1, **fields: Any) -> dict[str, Any]:
    return container(script=script, resources={"limits": {ZERO: str(number)}}, **fields)


def device_of(agent: Agent, name: str) -> str:
    """The device that a running container has, and that it works."""
    which, node, content = agent.inside(name, READ).split("\n")[:3]
    assert (node, content.split()) == (f"/dev/own-{which}", ["00"] * 3)
    return which


def test_devices_are_given_out_one_by_one(new_agent: NewAgent, tmp_path: Path) -> None:
    cdi_spec(tmp_path)
    devices = {ZERO: [f"{ZERO}=a", f"{ZERO}=b"], NULL: ["/dev/null", "/dev/rootlet-none"]}
    agent = new_agent(devices=devices, cdiSpecDirs=[str(tmp_path)])
    agent.start()
    node = agent.get("/api/v1/nodes")["items"][0]["status"]
    assert [node[what][ZERO] for what in ("capacity", "allocatable")] == ["2", "2"]
    assert [node[what][NULL] for what in ("capacity", "allocatable")] == ["2", "1"]
    assert f"{ZERO}:" in agent.cli("describe", "node").out

    assert "/dev/rootlet-none: No such file or directory: no pod is given it" in agent.log_text()

    zero = {"name": "zero", "hostPath": {"path": "/dev/zero", "type": "CharDevice"}}
    mount = {"name": "zero", "mountPath": "/host-zero"}
    agent.run(pod("one", asking(volumeMounts=[mount]), volumes=[zero]))
    assert agent.inside("one", "head -c 1 /host-zero | od -An -tx1").split() == ["00"]
    agent.run(pod("two", asking(securityContext={"privileged": True}), initContainers=[asking("exit 0", name="init")]))
    given = {name: device_of(agent, name) for name in ("one", "two")}
    assert given == {"one": "a", "two": "b"}
    assert [line.split() for line in agent.cli("describe", "node").out.splitlines() if ZERO in line][-1] == [
        ZERO,
        "2",
        "2",
    ]
    agent.write(pod("three", asking()))
    agent.until(lambda: agent.reasons("three").get("UnexpectedAdmissionError") == REFUSED, "there is none left")
    assert agent.pods()["three"]["status"]["reason"] == "UnexpectedAdmissionError"
    assert agent.messages("one", "UnsupportedField") == []

    # Over an agent's death, with its record and without; what runs counts more.
    agent.remove("three")
    agent.process.kill()
    agent.wait_end()
    (agent.state / "allocated_pods_state").unlink()
    agent.start()
    agent.until_running(["one", "two"])
    agent.write(pod("three", asking()))
    agent.until(lambda: agent.reasons("three").get("UnexpectedAdmissionError") == REFUSED, "there is none left")
    agent.inside("one", "kill 1")
    agent.until(lambda: agent.pods()["one"]["status"]["containerStatuses"][0]["restartCount"] == 1, "it is restarted")
    agent.until_running(["one", "two"])
    assert {name: device_of(agent, name) for name in ("one", "two")} == given

    agent.remove("three", "two")
    agent.run(pod("four", asking()))
    assert device_of(agent, "four") == "b"
    agent.write(pod("none", container(resources={"limits": {NULL: "2"}})))
    agent.until(lambda: "UnexpectedAdmissionError" in agent.reasons("none"), "one of them is not there")


def amounts(agent: Agent, resource: str) -> list[str]:
    """Capacity and allocatable."""
    status = agent.get("/api/v1/nodes")["items"][0]["status"]
    return [status[what][resource] for what in ("capacity", "allocatable")]


def test_a_device_that_is_plugged_in_is_given_out_and_one_that_is_pulled_is_not(
    new_agent: NewAgent, tmp_path: Path
) -> None:
    """A CDI spec comes, as a vendor's tool writes it when it has found the hardware, and goes again."""
    agent = new_agent(devices={ZERO: [f"{ZERO}=a", f"{ZERO}=b"]}, cdiSpecDirs=[str(tmp_path)])
    agent.start()
    assert amounts(agent, ZERO) == ["2", "0"]
    agent.write(pod("early", asking()))
    agent.until(lambda: "UnexpectedAdmissionError" in agent.reasons("early"), "there is none")
    agent.remove("early")
    cdi_spec(tmp_path)
    agent.until(lambda: amounts(agent, ZERO) == ["2", "2"], "both are there")
    agent.run(pod("one", asking()))
    assert device_of(agent, "one") == "a"
    before = agent.eye.container("one", "main").id
    (tmp_path / "zero.json").unlink()
    agent.until(lambda: amounts(agent, ZERO) == ["2", "0"], "they are gone")
    assert "no CDI spec of cdiSpecDirs has it" in agent.messages("e2e", "DeviceNotHealthy")[0]
    assert device_of(agent, "one") == "a", "who has it goes on"
    agent.write(pod("late", asking()))
    agent.until(lambda: "UnexpectedAdmissionError" in agent.reasons("late"), "none is given out")
    agent.remove("late")
    cdi_spec(tmp_path)
    agent.until(lambda: amounts(agent, ZERO) == ["2", "2"], "both are there again")
    agent.run(pod("two", asking()))
    assert (device_of(agent, "two"), agent.eye.container("one", "main").id) == ("b", before)
