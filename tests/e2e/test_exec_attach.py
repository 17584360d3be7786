"""`rootlet exec` and `rootlet attach` against real containers: streams, exit codes, terminals, ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.agent import Agent
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import container, pod

pytestmark = [pytest.mark.e2e, pytest.mark.podman]


@pytest.fixture(scope="module")
def agent(new_shared_agent: NewAgent) -> Iterator[Agent]:
    """An agent with one pod of two containers."""
    shared = new_shared_agent()
    shared.start()
    shared.run(pod("web", container(), container("side")))
    return shared


def test_exit_codes_are_the_commands(agent: Agent) -> None:
    done = agent.cli("exec", "web", "-c", "main", "--", "sh", "-c", "echo out; echo err >&2; exit 42")
    assert (done.code, done.out) == (42, "out\n")
    assert done.err == "err\ncommand terminated with exit code 42\n"
    assert agent.cli("exec", "web", "-c", "main", "--", "true") == (0, "", "")
