"""`rootlet uninstall`, and `stop --pods` of a dead agent: what was made goes, and nothing else."""

from __future__ import annotations

import pytest

from tests.e2e.agent import Agent
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import container, pod

pytestmark = [pytest.mark.e2e, pytest.mark.podman, pytest.mark.slow]
WRITES = "mkdir -p /data/a && touch /data/a/b && chown -R 33:33 /data && while true; do sleep 1; done"


def busy(new_agent: NewAgent) -> Agent:
    """An agent whose pod has a volume with files of another user."""
    agent = new_agent()
    agent.start()
    mount = {"name": "v", "mountPath": "/data"}
    agent.run(pod("made", container(script=WRITES, volumeMounts=[mount]), volumes=[{"name": "v", "emptyDir": {}}]))
    return agent


def test_it_asks_and_then_removes_all_but_what_is_the_users(new_agent: NewAgent) -> None:
    agent = busy(new_agent)
    uninstall = ("uninstall", "--config", str(agent.config))
    refused = agent.cli(*uninstall, stdin="n\n")
    assert (refused.code, refused.err.endswith("error: nothing was removed\n")) == (1, True)
    assert "1 pods with their containers\n" in refused.out
    assert agent.eye.running("made")
    done = agent.cli(*uninstall, "--yes")
    assert (done.code, done.err) == (0, ""), done
    assert agent.wait_end() == 0
    assert agent.eye.containers("made", infra=True) == []
    assert sorted(path.name for path in agent.directory.iterdir()) == ["agent.log", "manifests", "rootlet.yaml", "run"]
    assert list((agent.directory / "run").iterdir()) == []
    assert not agent.memory.exists()
    assert agent.cli(*uninstall, "--yes").out == f"there is nothing of the instance {agent.instance}\n"


def test_a_dead_agents_pods_are_stopped_by_their_labels(new_agent: NewAgent) -> None:
    agent = new_agent()
    agent.start()
    agent.run(pod("left", container(), terminationGracePeriodSeconds=1))
    agent.process.kill()
    agent.wait_end()
    stop = ("stop", "--pods", "--config", str(agent.config))
    refused = agent.cli(*stop, stdin="n\n")
    assert (refused.code, "  default/left\n" in refused.out) == (1, True), refused
    assert agent.eye.running("left")
    done = agent.cli(*stop, "--yes")
    assert (done.code, done.err) == (0, ""), done
    assert done.out.endswith("pod default/left stopped and removed\n")
    assert agent.eye.containers("left", infra=True) == []
