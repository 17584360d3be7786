"""Agents for the end-to-end tests. Whatever a test does to them, nothing of them stays."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.agent import Agent
from tests.e2e.booted_host import BootedHost, booted_host
from tests.e2e.cluster import Cluster, running_cluster
from tests.e2e.pod_servers import PodServers
from tests.e2e.short_node import directory_in_memory, storage_in_memory
from tests.support import registry
from tests.support.podman_service import STORE, PodmanService, podman_version
from tests.support.registry import Registry

NewAgent = Callable[..., Agent]


@contextlib.contextmanager
def _agents(service: PodmanService) -> Iterator[NewAgent]:
    with contextlib.ExitStack() as stack:

        def new_agent(**changes: Any) -> Agent:
            agent = Agent(service.new_instance(), changes)
            agent.is_warm = True
            stack.callback(agent.close)
            stack.callback(lambda: print(agent.story()))
            return agent

        yield new_agent


@pytest.fixture
def new_agent(podman_service: PodmanService) -> Iterator[NewAgent]:
    """Makes agents, not yet started, for one test. Keywords are settings."""
    with _agents(podman_service) as make:
        yield make


@pytest.fixture(scope="module")
def new_shared_agent(podman_service: PodmanService) -> Iterator[NewAgent]:
    """Maker of agents for all tests of a file."""
    with _agents(podman_service) as make:
        yield make


@pytest.fixture(scope="module")
def agent(new_shared_agent: NewAgent) -> Agent:
    """One running agent for all tests of a file: each has pods with names of its own."""
    shared = new_shared_agent()
    shared.start()
    return shared


@pytest.fixture
def servers(agent: Agent) -> Iterator[PodServers]:
    """Servers of the test in the agent's pods."""
    made = PodServers(agent)
    yield made
    made.close()


@pytest.fixture
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Podman's store of the agents of a test: the transient one, where it asks for no other."""
    name: str = getattr(request, "param", "transient")
    if name == "transient" and podman_version().startswith("4."):
        pytest.skip("Podman's transient store is used from 5.0 on")
    monkeypatch.setenv(STORE, name)
    return name


@pytest.fixture
def host(store: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[BootedHost]:
    """A host that can go down, whose agents have that store."""
    with booted_host(monkeypatch) as made:
        yield made


@pytest.fixture
def in_memory() -> Iterator[Path]:
    """A directory on a file system that is memory."""
    with directory_in_memory() as directory:
        yield directory


@pytest.fixture
def store_in_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A Podman storage of its own on a file system that is memory, for this process and its children."""
    with storage_in_memory(monkeypatch) as store:
        yield store


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """A registry for all tests of a file."""
    yield from _registry(tmp_path_factory, login=False)


@pytest.fixture(scope="module")
def closed_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """One that wants a login."""
    yield from _registry(tmp_path_factory, login=True)


def _registry(tmp_path_factory: pytest.TempPathFactory, *, login: bool) -> Iterator[Registry]:
    if reason := registry.why_not():
        pytest.skip(reason)
    with registry.registry(tmp_path_factory.mktemp("shop"), login=login) as made:
        yield made


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A cluster without any object, for all tests of a file."""
    with running_cluster() as made:
        yield made


@pytest.fixture(scope="module")
def node(cluster: Cluster, new_shared_agent: NewAgent, tmp_path_factory: pytest.TempPathFactory) -> Agent:
    """A running agent that is a node of the cluster, for all tests of a file."""
    joined = new_shared_agent()
    cluster.join(joined, tmp_path_factory.mktemp("kubeconfig"))
    joined.start()
    return joined
