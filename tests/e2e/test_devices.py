"""Devices of the configuration, on real Podman: harmless nodes of the host under other names."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.agent import Agent
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import STAY, container, pod
from tests.support.podman_service import COMMAND_DEADLINE_S

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

PODMANS_DIRECTORY: Final = Path("/run/cdi")
FUSE: Final = "/dev/fuse"
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


@pytest.mark.slow
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


class PodmansSpec:
    """A spec in a directory in which Podman looks for them, of one device with everything that it can bring into a
    container: a node, a mount, variables, and a hook, because of which it is left to Podman."""

    def __init__(self, directory: Path) -> None:
        self.kind = f"rootlet-test-{os.getpid()}.example.com/fuse"
        self.name = f"{self.kind}=a"
        self.path = PODMANS_DIRECTORY / f"rootlet-test-{os.getpid()}.json"
        self.hooked = directory / "hooked"
        self._file = directory / "file"
        self._file.write_text("of the host\n")

    def write(self, which: str, **changes: Any) -> None:
        edits = {
            "env": [f"WHICH={which}", "OVER=device"],
            "deviceNodes": [{"path": FUSE}],
            "mounts": [{"hostPath": str(self._file), "containerPath": "/file", "options": ["ro", "bind"]}],
            "hooks": [
                {"hookName": "createContainer", "path": "/usr/bin/touch", "args": ["touch", str(self.hooked)]},
            ],
        }
        devices = [{"name": "a", "containerEdits": {**edits, **changes}}]
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps({"cdiVersion": "0.5.0", "kind": self.kind, "devices": devices}))
        new.rename(self.path)


@pytest.fixture
def podmans_spec(tmp_path: Path) -> Iterator[PodmansSpec]:
    if not os.access(PODMANS_DIRECTORY, os.W_OK):
        pytest.skip(f"needs to write CDI specs where Podman looks for them: {PODMANS_DIRECTORY}")
    made = PodmansSpec(tmp_path)
    yield made
    made.path.unlink(missing_ok=True)


SEEN: Final = f"echo $WHICH $OVER; [ -c {FUSE} ] && echo node; cat /file; (echo >>/file) || echo read-only"
"""Prints what a container has of the device: its first line tells the variables."""
HAS_ALL: Final = ["node", "of the host", "read-only"]


def lines_of(seen: str) -> list[str]:
    """Without the shell's own words about the file that it cannot write to."""
    return [line for line in seen.splitlines() if "/file" not in line]


def test_what_podman_brings_in_is_there_for_every_command_of_the_container(
    new_agent: NewAgent, podmans_spec: PodmansSpec
) -> None:
    """For the container's own process, for commands by Podman's API, and for those by the OCI runtime, which probes
    are; in a privileged container, too."""
    podmans_spec.write("a")
    agent = new_agent(devices={ZERO: [podmans_spec.name]})
    agent.start()
    assert amounts(agent, ZERO) == ["1", "1"]
    probe = {"exec": {"command": ["sh", "-c", '[ "$WHICH $OVER" = "a device" ]']}, "periodSeconds": 1}
    for privileged in (False, True):
        name = f"all-{privileged}".lower()
        agent.run(
            pod(
                name,
                asking(
                    f"{{ {SEEN}; }} 2>&1; {STAY}",
                    env=[{"name": "OVER", "value": "own"}],
                    readinessProbe=probe,
                    securityContext={"privileged": privileged},
                ),
            )
        )
        agent.until_ready([name])
        assert lines_of(agent.output(name)) == ["a device", *HAS_ALL]
        assert lines_of(agent.inside(name, SEEN)) == ["a device", *HAS_ALL]
        id = agent.eye.container(name, "main").id
        by_podman = subprocess.run(
            ["podman", "exec", id, "sh", "-c", f"{{ {SEEN}; }} 2>&1"],
            capture_output=True,
            text=True,
            check=True,
            timeout=COMMAND_DEADLINE_S,
        )
        assert lines_of(by_podman.stdout) == ["a device", *HAS_ALL]
        podmans_spec.hooked.unlink()  # it was there: the hook has run
        agent.remove(name)
        agent.until_gone([name])


@pytest.mark.slow
def test_a_spec_of_podmans_that_changes_counts_from_the_next_start_and_one_that_goes_is_waited_for(
    new_agent: NewAgent, podmans_spec: PodmansSpec
) -> None:
    podmans_spec.write("a")
    agent = new_agent(devices={ZERO: [podmans_spec.name]}, crashLoopBackOff={"maxContainerRestartPeriod": "1s"})
    agent.start()
    agent.run(pod("one", asking()))
    podmans_spec.write("b")
    assert agent.inside("one", "echo $WHICH") == "a", "who has it goes on"
    # A node that is not there: what tells that the change was read.
    podmans_spec.write("b", deviceNodes=[{"path": "/dev/rootlet-none"}])
    agent.until(lambda: amounts(agent, ZERO) == ["1", "0"], "a node of it is missing")
    assert "/dev/rootlet-none: No such file or directory" in agent.messages("e2e", "DeviceNotHealthy")[0]
    podmans_spec.write("b")
    agent.until(lambda: amounts(agent, ZERO) == ["1", "1"], "it is there again")
    agent.inside("one", "kill 1")
    agent.until(lambda: agent.inside("one", "echo $WHICH") == "b", "it has restarted with what the spec says now")

    podmans_spec.path.unlink()
    agent.until(lambda: amounts(agent, ZERO) == ["1", "0"], "it is gone")
    agent.inside("one", "kill 1")
    waits = {
        "reason": "CreateContainerConfigError",
        "message": f"device {podmans_spec.name} of {ZERO} is not there: no CDI spec of cdiSpecDirs has it",
    }
    agent.until(lambda: agent.waiting("one") == waits, "it waits, and does not run without its device")
    podmans_spec.write("c")
    agent.until(lambda: agent.inside("one", "echo $WHICH") == "c", "it has gone on")
