"""Images of a cluster's pods behind logins that a program of the node gives to some service accounts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.agent import Agent
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import NewAgent
from tests.e2e.credential_provider import ANSWER, CONFIG, install_provider
from tests.e2e.manifests import Json
from tests.e2e.test_pull_secrets import gets_nothing, wanting
from tests.support import registry
from tests.support.registry import Registry

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

AUDIENCE: Final = "registry.example"
TEAM: Final = "registry.example/team"


@pytest.fixture(scope="module")
def programs(closed_shop: Registry, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a provider that gives nothing without a token, its configuration, and what it was ``asked``."""
    directory = tmp_path_factory.mktemp("providers")
    script = f"tee -a {directory}/asked | grep -q serviceAccountToken && cat {directory}/{ANSWER}"
    token = {
        "serviceAccountTokenAudience": AUDIENCE,
        "requireServiceAccount": True,
        "cacheType": "ServiceAccount",
        "requiredServiceAccountAnnotationKeys": [TEAM],
    }
    shop = closed_shop.address
    install_provider(directory, shop, script, cache_key_type="Registry", images=shop, tokenAttributes=token)
    return directory


@pytest.fixture(scope="module")
def node(
    cluster: Cluster,
    closed_shop: Registry,
    programs: Path,
    tmp_path_factory: pytest.TempPathFactory,
    new_shared_agent: NewAgent,
) -> Agent:
    """A node whose user has no login for the registry."""
    made = new_shared_agent(
        imageCredentialProviderConfig=str(programs / CONFIG), imageCredentialProviderBinDir=str(programs)
    )
    made.environment |= registry.registries_conf(tmp_path_factory.mktemp("podman-env"), closed_shop.address)
    cluster.join(made, tmp_path_factory.mktemp("kubeconfig"))
    made.start()
    return made


def account(name: str, **annotations: str) -> Json:
    metadata = {"name": name, "annotations": annotations}
    return {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": metadata}


def as_account(name: str, manifest: Json) -> Json:
    manifest["spec"]["serviceAccountName"] = name
    return manifest


def test_pods_of_an_account_that_the_program_knows_get_its_images(
    cluster: Cluster, node: Agent, closed_shop: Registry, programs: Path
) -> None:
    closed_shop.push("team/app", "1")
    image = f"{closed_shop.address}/team/app:1"
    cluster.create(account("builder", **{TEAM: "red"}), account("stranger"))
    cluster.schedule(as_account("builder", wanting("mine", image)))
    node.until(lambda: cluster.is_ready("mine"), "the pod has its image")
    (asked,) = (json.loads(line) for line in (programs / "asked").read_text().splitlines())
    assert (asked["image"], asked["serviceAccountAnnotations"]) == (f"{closed_shop.address}/team/app", {TEAM: "red"})
    user = cluster.do(lambda server: server.tokens.user(asked["serviceAccountToken"], AUDIENCE))
    assert user is not None
    assert user.name == "system:serviceaccount:default:builder"
    cluster.schedule(as_account("builder", wanting("again", image)))
    cluster.schedule(as_account("stranger", wanting("foreign", image)))
    node.until(lambda: cluster.is_ready("again"), "the image is the account's")
    node.until(lambda: gets_nothing(node, "foreign"), "and no other's, though it is there")
    assert len((programs / "asked").read_text().splitlines()) == 1, "an account without the annotation is not asked for"
    assert asked["serviceAccountToken"] not in node.log_text()
