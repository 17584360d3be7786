"""Images behind a login that only some pods have, by their own Secrets."""

from __future__ import annotations

import base64
import json

import pytest

from ipc.k8s.podobjects.redaction import INSTEAD
from tests.e2e.agent import Agent
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import Json, container, pod
from tests.support import registry
from tests.support.registry import PASSWORD, USER, Registry

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

WRONG_PASSWORD = "battery staple"
FAILURES = frozenset({"ErrImagePull", "ImagePullBackOff"})


@pytest.fixture(scope="module")
def agent(closed_shop: Registry, tmp_path_factory: pytest.TempPathFactory, new_shared_agent: NewAgent) -> Agent:
    """An agent whose Podman speaks plain HTTP with the registry, and whose user has no login for it."""
    made = new_shared_agent()
    made.environment |= registry.registries_conf(tmp_path_factory.mktemp("podman-env"), closed_shop.address)
    made.start()
    return made


def pull_secret(name: str, address: str, password: str) -> Json:
    auth = base64.b64encode(f"{USER}:{password}".encode()).decode()
    logins = json.dumps({"auths": {address: {"auth": auth}}})
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": logins},
    }


def wanting(name: str, image: str, *secrets: str, policy: str = "IfNotPresent") -> Json:
    references = [{"name": secret} for secret in secrets]
    return pod(name, container(image=image, imagePullPolicy=policy), imagePullSecrets=references)


def gets_nothing(agent: Agent, name: str) -> bool:
    return agent.waiting(name).get("reason") in FAILURES


def test_a_pod_pulls_with_its_own_logins_and_others_do_not(agent: Agent, closed_shop: Registry) -> None:
    closed_shop.push("private", "1")
    image = f"{closed_shop.address}/private:1"
    agent.write(
        pull_secret("good", closed_shop.address, PASSWORD), pull_secret("wrong", closed_shop.address, WRONG_PASSWORD)
    )
    agent.write(wanting("has", image, "wrong", "good"))
    agent.until_running(["has"])
    agent.write(
        wanting("lacks", image),
        wanting("wrong-one", image, "wrong"),
        wanting("missing", image, "nobody-has-stated-it"),
        wanting("never", image, policy="Never"),
        wanting("has-too", image, "good", policy="Never"),
    )
    agent.until_running(["has-too"])
    refused = ("lacks", "wrong-one", "missing")
    agent.until(lambda: all(gets_nothing(agent, name) for name in refused), "the registry lets none of them in")
    agent.until(lambda: agent.waiting("never").get("reason") == "ErrImageNeverPull", "nor does it by policy Never")
    assert "does not have the proper credentials" in agent.waiting("never")["message"]
    (told,) = set(agent.messages("missing", "FailedToRetrieveImagePullSecret"))
    assert "image pull secrets (nobody-has-stated-it: there is no such Secret); " in told


def test_the_registry_of_a_refused_login_is_named(agent: Agent) -> None:
    """The registry stands in the Secret, too, all else of which is hidden."""
    registry = "registry-that-nobody-runs.team.invalid:5000"
    agent.write(pull_secret("far", registry, PASSWORD))
    agent.write(wanting("far-away", f"{registry}/app:1", "far"))
    agent.until(lambda: bool(agent.messages("far-away", "Failed")), "the pull has failed")
    told = agent.messages("far-away", "Failed")[0]
    assert told.startswith(f'Failed to pull image "{registry}/app:1": ')
    assert told.count(registry) > 1, "the reason names it as well"
    assert INSTEAD not in told


def test_nobody_tells_the_passwords(agent: Agent) -> None:
    auth = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    told = [agent.log_text(), json.dumps(agent.events()), json.dumps(agent.pods())]
    told += [path.read_text(errors="replace") for path in agent.state.rglob("*") if path.is_file()]
    for secret in (PASSWORD, WRONG_PASSWORD, auth):
        assert not [text for text in told if secret in text]
