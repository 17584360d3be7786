"""The agent's log of a normal life, its audit log, and the commands about the agent itself."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.version import VERSION
from tests.e2e.agent import Agent
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import pod, secret

pytestmark = [pytest.mark.e2e, pytest.mark.podman]
DEMO: Final = Path(__file__).parents[2] / "configs" / "demo"


def lines(agent: Agent, words: str) -> list[str]:
    return [line for line in agent.log_text().splitlines() if words in line]


def audit(agent: Agent) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (agent.state / "audit.log").read_text().splitlines()]


def test_a_normal_start_is_told_in_a_line_and_has_no_error(agent: Agent) -> None:
    agent.run(pod("normal"))
    (start,) = lines(agent, " starts: ")
    for words in (
        f"Rootlet v{VERSION}",
        str(agent.config),
        f"instance {agent.instance}",
        str(agent.socket),
        "of its own",
    ):
        assert words in start
    (adopted,) = lines(agent, "of this agent from before")
    assert re.search(r"Podman \S+ runs 0 pods of this agent from before: they go on", adopted)
    assert [line for line in agent.log_text().splitlines() if re.search(r" (ERROR|CRITICAL) ", line)] == []


@pytest.mark.slow
def test_a_normal_start_with_the_demos_pods_has_no_warning_and_lines_for_programs(new_agent: NewAgent) -> None:
    subprocess.run([DEMO / "image"], check=True, timeout=60)
    agent = new_agent(
        staticPodPath=str(DEMO / "manifests"), evictionHard={}, logging={"format": "json", "verbosity": "debug"}
    )
    agent.start()
    agent.until_ready({path.stem for path in (DEMO / "manifests").iterdir()})
    told = [json.loads(line) for line in agent.log_text().splitlines()]
    of_host = "preflight: "  # what `rootlet doctor` finds on this host
    louder = (line for line in told if line["level"] not in ("debug", "info"))
    assert [line for line in louder if not line["msg"].startswith(of_host)] == []
    (started,) = (line for line in told if "created sandbox 0, started httpd (0)" in line["msg"])
    assert (started["pod"], started["duration"] > 0.0) == ({"namespace": "default", "name": "web"}, True)
    assert f"pods-{started['slot']}" in {line["process"] for line in told}
    assert any(line["msg"] == "readiness probe: success" and line["duration"] > 0.0 for line in told)


def test_status(agent: Agent) -> None:
    agent.run(pod("counted"))
    done = agent.cli("status")
    assert done.code == 0, done
    assert re.match(rf"Agent:          v{VERSION}, instance {agent.instance}, pid \d+, up \d+s\n", done.out)
    for line in (f"Configuration:  {agent.config}", f"Socket:         {agent.socket}", "Node:           e2e"):
        assert f"{line}\n" in done.out
    assert re.search(r"^Podman:         \d+\.\d+\.\d+$", done.out, re.MULTILINE)
    assert re.search(r"^Pods:           \d+: .*\d+ Running", done.out, re.MULTILINE)
    assert json.loads(agent.cli("status", "-o", "json").out)["configFile"] == str(agent.config)


def test_reload_says_what_changed(agent: Agent) -> None:
    assert agent.cli("reload") == (0, "nothing in the configuration changed\n", "")
    agent.configure({"maxPods": 400, "relistPeriod": "4s"})
    done = agent.cli("reload")
    assert (done.code, done.out) == (0, "maxPods: 500 -> 400\nrelistPeriod: needs a restart\n")
    assert lines(agent, "configuration reloaded: maxPods: 500 -> 400; relistPeriod: needs a restart")
    agent.configure({"maxPods": "many"})
    wrong = agent.cli("reload")
    assert (wrong.code, wrong.out) == (1, "")
    assert f"the configuration in effect stays: {agent.config}: maxPods: must be a whole number, not text" in wrong.err
    agent.configure({"maxPods": 500, "relistPeriod": "3s"})
    assert "maxPods: 400 -> 500" in agent.cli("reload").out


def test_view_is_the_configuration_in_effect(agent: Agent) -> None:
    found = json.loads(agent.cli("config", "view", "-o", "json").out)
    assert found["instanceName"] == agent.instance
    of_file = json.loads(agent.cli("config", "view", "--file", "--config", str(agent.config), "-o", "json").out)
    assert of_file == found


def test_every_change_is_a_line_of_the_audit_log_and_nothing_secret_is_in_it(agent: Agent) -> None:
    assert agent.cli("apply", "-f", "-", stdin=json.dumps(pod("audited"))).code == 0
    assert agent.cli("apply", "-f", "-", stdin=json.dumps(secret("hush", word="lemon-tree"))).code == 0
    agent.until_ready(["audited"])
    assert agent.cli("exec", "audited", "--", "sh", "-c", "echo lemon-tree").code == 0
    assert agent.cli("get", "pods").code == 0
    assert agent.cli("delete", "pod", "nosuch").code == 1
    assert agent.cli("delete", "pod", "audited").code == 0
    found = [line for line in audit(agent) if "/reload" not in line["path"]]
    assert [(line["verb"], line["code"], line["result"]) for line in found] == [
        ("apply", 200, "pod/audited created"),
        ("apply", 200, "secret/hush created"),
        ("exec", 101, "Switching Protocols"),
        ("delete", 404, 'pods "nosuch" not found'),
        ("delete", 200, "OK"),
    ]
    for line in found:
        assert (line["uid"], line["program"]) == (os.getuid(), "rootlet")
        assert line["pid"] > 0
    (entered,) = (line for line in found if line["verb"] == "exec")
    assert (entered["path"], entered["runs"]) == ("/api/v1/namespaces/default/pods/audited/exec", "sh")
    text = (agent.state / "audit.log").read_text()
    assert "lemon-tree" not in text
    assert (agent.state / "audit.log").stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
def test_an_agent_that_comes_back_says_how_many_pods_go_on(agent: Agent) -> None:
    agent.run(pod("kept"))
    running = agent.pods()
    agent.process.send_signal(signal.SIGKILL)
    agent.wait_end()
    agent.start()
    assert f"runs {len(running)} pods of this agent" in lines(agent, "of this agent from before")[-1]
