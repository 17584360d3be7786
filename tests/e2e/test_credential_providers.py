"""Images behind a login that only a program of the node knows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.agent import Agent
from tests.e2e.conftest import NewAgent
from tests.e2e.credential_provider import ANSWER, CONFIG, install_provider
from tests.e2e.test_pull_secrets import WRONG_PASSWORD, gets_nothing, pull_secret, wanting
from tests.support import registry
from tests.support.registry import PASSWORD, Registry

pytestmark = [pytest.mark.e2e, pytest.mark.podman]


@pytest.fixture(scope="module")
def programs(closed_shop: Registry, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a provider, its configuration, and ``asked``, where it keeps what it was asked."""
    directory = tmp_path_factory.mktemp("providers")
    script = f'cat >> {directory}/asked\ntest "$1" = get || exit 1\ncat "$ANSWER"'
    install_provider(
        directory,
        closed_shop.address,
        script,
        cache_key_type="Image",
        images=f"{closed_shop.address}/known",
        args=["get"],
        env=[{"name": "ANSWER", "value": str(directory / ANSWER)}],
    )
    return directory


@pytest.fixture(scope="module")
def agent(
    closed_shop: Registry, programs: Path, tmp_path_factory: pytest.TempPathFactory, new_shared_agent: NewAgent
) -> Agent:
    """An agent whose user has no login for the registry."""
    made = new_shared_agent(
        imageCredentialProviderConfig=str(programs / CONFIG), imageCredentialProviderBinDir=str(programs)
    )
    made.environment |= registry.registries_conf(tmp_path_factory.mktemp("podman-env"), closed_shop.address)
    made.start()
    return made


def test_a_pod_without_a_secret_gets_the_images_that_the_program_has_logins_for(
    agent: Agent, closed_shop: Registry, programs: Path
) -> None:
    for name in ("known/one", "known/two", "unknown"):
        closed_shop.push(name, "1")
    known = f"{closed_shop.address}/known/one:1"
    agent.write(
        wanting("plain", known, policy="Always"),
        wanting("stranger", f"{closed_shop.address}/unknown:1"),
        pull_secret("wrong", closed_shop.address, WRONG_PASSWORD),
        wanting("after-a-secret", f"{closed_shop.address}/known/two:1", "wrong"),
    )
    agent.until_running(["plain", "after-a-secret"])
    agent.until(lambda: gets_nothing(agent, "stranger"), "the program is not asked for other images")
    agent.write(wanting("again", known, policy="Always"), wanting("never", known, policy="Never"))
    agent.until_running(["again", "never"])
    asked = [json.loads(line)["image"] for line in (programs / "asked").read_text().splitlines()]
    assert sorted(asked) == [f"{closed_shop.address}/known/one", f"{closed_shop.address}/known/two"], (
        "its answers are kept"
    )


def test_nobody_tells_the_passwords(agent: Agent) -> None:
    told = [agent.log_text(), json.dumps(agent.events()), json.dumps(agent.pods()), agent.cli("config", "show").out]
    told += [path.read_text(errors="replace") for path in agent.state.rglob("*") if path.is_file()]
    assert not [text for text in told if PASSWORD in text or WRONG_PASSWORD in text]


def test_an_agent_whose_provider_is_not_there_does_not_start(new_agent: NewAgent, tmp_path: Path) -> None:
    (tmp_path / CONFIG).write_text("kind: CredentialProviderConfig\napiVersion: kubelet.config.k8s.io/v1\n")
    agent = new_agent(imageCredentialProviderConfig=str(tmp_path / CONFIG), imageCredentialProviderBinDir=str(tmp_path))
    agent.respawn()
    assert agent.wait_end() == 2
    assert "providers: at least 1 item in plugins is required" in agent.log_text()
