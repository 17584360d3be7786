"""Agents for the end-to-end tests. Whatever a test does to them, nothing of them stays."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bench.own_storage import VARIABLE, own_config
from tests.e2e.agent import MEMORY, Agent
from tests.e2e.cluster import Cluster, running_cluster
from tests.e2e.pod_servers import PodServers
from tests.podman_service import PodmanService, ensure_image, podman

NewAgent = Callable[..., Agent]


@contextlib.contextmanager
def _agents(service: PodmanService) -> Iterator[NewAgent]:
    with contextlib.ExitStack() as stack:

        def new_agent(**changes: Any) -> Agent:
            agent = Agent(service.new_instance(), changes)
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
    """The same for all tests of a file."""
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
def in_memory() -> Iterator[Path]:
    """A directory on a file system that is memory."""
    MEMORY.mkdir(parents=True, exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="pressure-", dir=MEMORY))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def store_in_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A Podman storage of its own on a file system that is memory, for this process and its children."""
    store = Path(tempfile.mkdtemp(prefix="rootlet-store-", dir="/dev/shm"))
    run = Path(tempfile.mkdtemp(prefix="store-", dir=os.environ["XDG_RUNTIME_DIR"]))
    with monkeypatch.context() as environment:
        environment.setenv(VARIABLE, str(own_config(store, store / "graph", run)))
        ensure_image(store)
        yield store
    podman("unshare", "rm", "-rf", str(store), str(run))


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
