"""`rootlet load-test` as a user runs it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.e2e.agent import Agent
from tests.e2e.manifests import pod
from tests.support.podman_service import IMAGE

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

PODS = 300
FEW_PODS = 6
DEADLINE_S = 900.0


def load_test(agent: Agent, pods: int, *options: str) -> subprocess.CompletedProcess[str]:
    command = agent.command("load-test", "--pods", str(pods), "--image", IMAGE, "--json", *options)
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)


@pytest.mark.parametrize(
    "pods",
    [FEW_PODS, pytest.param(PODS, marks=[pytest.mark.slow, pytest.mark.timeout(1000)])],
)
def test_all_become_ready_and_nothing_is_left_behind(agent: Agent, pods: int, tmp_path: Path) -> None:
    agent.run(pod("bystander"))
    before, house = agent.eye.pod_table(), agent.house()
    page = tmp_path / "report.html"
    done = load_test(agent, pods, "--floor", "--report", str(page))
    assert done.returncode == 0, f"{done.stderr}\n{done.stdout}"
    report = json.loads(done.stdout)
    assert (report["pods"], report["ready"], report["problems"]) == (pods, pods, [])
    assert report["podsPerSecond"] > 0
    assert report["floorSeconds"] > 0
    assert "Podman alone starts them at" in page.read_text()
    assert report["deletedPerSecond"] > 0
    assert {usage["name"] for usage in report["agent"]} >= {"master", "pods-0", "pods-1", "node", "api"}
    assert report["timeToReadySeconds"]["samples"] == pods
    # As it was, for the agent, in Podman and on disk.
    assert agent.pods().keys() == {"bystander"}
    assert agent.eye.pod_table() == before
    assert len(agent.eye.containers(infra=True)) == len(before)
    assert list((agent.directory / "state" / "applied").iterdir()) == []
    assert [path.name.split("_")[1] for path in (agent.directory / "logs").iterdir() if path.is_dir()] == ["bystander"]
    agent.until(lambda: agent.house() == house, f"{agent.house()} is as before: {house}")


@pytest.mark.slow
def test_a_trace_tells_what_each_process_did_for_each_pod(agent: Agent, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    done = load_test(agent, FEW_PODS, "--trace", str(file))
    assert done.returncode == 0, f"{done.stderr}\n{done.stdout}"
    text = file.read_text()
    assert str(agent.directory) not in text
    assert "sleep 3600" not in text, "what a container runs is no name"
    trace = json.loads(text)
    assert trace["otherData"] == {"droppedSpans": 0}
    spans = [event for event in trace["traceEvents"] if event["ph"] != "M"]
    told = {(event["cat"].partition("-")[0], event["name"]) for event in spans}
    assert told >= {
        ("load", "start"),
        ("load", "restart"),
        ("load", "stop"),
        ("master", "handles PodUpdate"),
        ("master", "its worker has it"),
        ("master", "handles SyncDone"),
        ("pods", "sync: sync"),
        ("pods", "Podman: create pod"),
        ("pods", "Podman: start container"),
        ("node", "observes"),
        ("node", "the monitor has recorded an end"),
        ("api", "takes PodChanged"),
        ("api", "a watcher is told"),
    }
    pods = {event["args"]["pod"] for event in spans if event["name"] == "restart"}
    assert len(pods) == FEW_PODS
    for name in ("start", "stop", "Podman: create container"):
        assert {event["args"]["pod"] for event in spans if event["name"] == name} == pods
    # Nobody traces any more.
    assert agent.get("/rootlet/v1/trace") == {"spans": [], "dropped": 0}
