"""The command line against a running agent."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e.agent import Agent
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import STAY, config_map, container, pod
from tests.support.podman_service import podman

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

TALKS = "n=0; while true; do n=$((n + 1)); echo line $n; sleep 0.1; done"


def read_until(process: subprocess.Popen[str], wanted: str) -> list[str]:
    """Lines up to the first that contains the words; the test's own deadline ends what never comes."""
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        if wanted in line:
            return lines
    raise AssertionError(f"ended without {wanted!r}: {lines}")


def test_apply_wait_get_and_delete(agent: Agent) -> None:
    manifest = json.dumps(pod("applied", labels={"app": "a"}))
    assert agent.cli("apply", "-f", "-", stdin=manifest) == (0, "pod/applied created\n", "")
    assert agent.cli("apply", "-f", "-", stdin=manifest) == (0, "pod/applied unchanged\n", "")
    waited = agent.cli("wait", "--for=condition=Ready", "pod/applied", "--timeout=60s")
    assert waited == (0, "pod/applied condition met\n", "")
    before = agent.eye.pod_table("applied")
    assert len(before) == 2
    listed = json.loads(agent.cli("get", "pods", "-l", "app=a", "-o", "json").out)
    assert (listed["apiVersion"], listed["kind"]) in {("v1", "List"), ("v1", "PodList")}
    (shown,) = listed["items"]
    assert shown["status"]["phase"] == "Running"
    runs = agent.eye.container("applied", "main")
    assert shown["status"]["containerStatuses"][0]["containerID"] == f"podman://{runs.id}"
    row = agent.cli("get", "pod", "applied").out.splitlines()
    assert row[0].split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row[1].split()[:4] == ["applied", "1/1", "Running", "0"]
    # The applied pod is there after a restart of the agent, and the same containers run.
    agent.restart()
    agent.until_ready(["applied"])
    assert agent.eye.pod_table("applied") == before
    assert agent.cli("delete", "pod", "applied") == (0, 'pod "applied" deleted from default namespace\n', "")
    assert agent.eye.containers("applied", infra=True) == []
    assert agent.cli("wait", "--for=delete", "pod/applied").code == 0
    missing = agent.cli("get", "pod", "applied")
    assert (missing.code, missing.err) == (1, 'Error from server (NotFound): pods "applied" not found\n')


def test_an_invalid_apply_changes_nothing(agent: Agent) -> None:
    wrong = pod("wrong")
    wrong["spec"]["conteiners"] = []
    done = agent.cli("apply", "-f", "-", stdin=json.dumps(pod("right")) + "\n---\n" + json.dumps(wrong))
    assert done.code == 1
    assert "document 2" in done.err
    assert "spec.conteiners" in done.err
    assert not {"right", "wrong"} & agent.pods().keys()


def test_an_apply_with_another_kind_says_which_document_and_what_to_do(agent: Agent, tmp_path: Path) -> None:
    file = tmp_path / "app.yaml"
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {}}
    file.write_text("\n---\n".join(map(json.dumps, (config_map("app", a="b"), service, pod("beside")))))
    done = agent.cli("apply", "-f", str(file))
    assert done.code == 1
    assert f'{file}: document 2: kind: Service "web" is not supported here; a manifest holds Pod, ' in done.err
    assert done.err.endswith(f"\nnothing of {file} was applied: mend document 2 or take it out, and apply again\n")
    assert agent.cli("get", "configmap", "app").code == 1
    assert "beside" not in agent.pods()


def test_a_manifests_pod_is_not_deleted_by_name(agent: Agent) -> None:
    agent.run(pod("of-a-file"))
    done = agent.cli("delete", "pod", "of-a-file")
    assert done.code == 1
    assert "of-a-file.yaml" in done.err
    assert len(agent.eye.running("of-a-file")) == 2


def test_describe(agent: Agent) -> None:
    agent.run(pod("described"))
    text = agent.describe("described")
    for words in ("Name:", "described", "Status:", "Running", "podman://", "Started", "Conditions:", "Events:"):
        assert words in text, text
    sandbox = agent.eye.container("described", "main").podman_pod
    assert re.search(r"^Worker: +pods-[01]$", text, re.MULTILINE), text
    assert re.search(rf"^Sandbox: +{sandbox} \(attempt 0, ready\)$", text, re.MULTILINE), text


def test_logs(agent: Agent) -> None:
    spoken = container("spoken", f"echo line 1; echo line 2; echo line 3; {STAY}")
    agent.run(pod("talks", container(script=TALKS), container("silent", STAY), spoken))
    with agent.following("logs", "-f", "talks", "-c", "main") as process:
        lines = read_until(process, "line 20")
    assert lines[:3] == ["line 1\n", "line 2\n", "line 3\n"]
    agent.until(lambda: "line 3" in agent.cli("logs", "talks", "-c", "spoken").out, "all is in the log")
    assert agent.cli("logs", "talks", "-c", "spoken", "--tail", "2").out == "line 2\nline 3\n"
    assert agent.cli("logs", "talks", "-c", "silent").out == ""
    assert agent.cli("logs", "talks", "-c", "nobody").code == 1


def test_logs_of_the_life_before(agent: Agent) -> None:
    agent.run(pod("speaks", container(script=f"echo born $$ $HOSTNAME; {STAY}")))
    agent.until(lambda: "born" in agent.cli("logs", "speaks").out, "it has spoken")
    podman("kill", agent.eye.container("speaks", "main").id)
    agent.until(lambda: agent.cli("logs", "speaks", "--previous").out.startswith("born"), "the log before is kept")
    agent.until_ready(["speaks"])


def test_watching_pods_and_events_over_a_death_of_the_api_server(agent: Agent) -> None:
    with agent.following("get", "pods", "-w") as pods, agent.following("get", "events", "-w") as events:
        agent.run(pod("seen-first"))
        read_until(pods, "seen-first")
        read_until(events, "seen-first")
        agent.kill_and_recover("api")
        agent.run(pod("seen-then"))
        read_until(pods, "seen-then")
        read_until(events, "seen-then")


def test_workers_table(agent: Agent) -> None:
    lines = agent.cli("get", "workers").out.splitlines()
    assert {line.split()[0] for line in lines[1:]} == {"pods-0", "pods-1", "node", "api", "dialer", "podman"}
    wide = agent.cli("get", "workers", "-o", "wide").out
    assert "PSS" in wide


def test_version(agent: Agent) -> None:
    about = json.loads(agent.cli("version", "-o", "json").out)["agent"]
    assert about["instance"] == agent.instance
    assert about["pid"] == agent.process.pid
    assert about["runtimeHealthy"] is True


def test_stop_leaves_the_pods_and_stop_pods_takes_them(new_agent: NewAgent) -> None:
    agent = new_agent()
    agent.start()
    agent.run(pod("stays"))
    before = agent.eye.pod_table()
    assert agent.cli("stop") == (0, "agent stopped\n", "")
    assert agent.wait_end() == 0
    assert agent.marked_processes() == []
    assert agent.house().files <= {"agent.lock"}
    assert agent.eye.pod_table() == before
    agent.start()
    agent.until_ready(["stays"])
    assert agent.eye.pod_table() == before
    agent.stop_pods()
    assert agent.eye.containers(infra=True) == []
    assert agent.eye.podman_pods() == []


@pytest.mark.slow
def test_sigterm_leaves_the_pods(new_agent: NewAgent) -> None:
    agent = new_agent()
    agent.start()
    agent.run(pod("stays"))
    before = agent.eye.pod_table()
    agent.process.send_signal(signal.SIGTERM)
    assert agent.wait_end() == 0
    assert agent.marked_processes() == []
    assert agent.eye.pod_table() == before
