"""Bandwidth annotations: a pod's traffic is no faster than they say, both ways, in every mode of the pods' network.
Real Podman, real kernel."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any, Final

import pytest

from ipc.host.clock import monotonic
from ipc.k8s.network.network_programs import (
    PASTA,
    PASTA_SINCE,
    SLIRP4NETNS,
    major_version,
    program_problem,
    wanted_program,
)
from ipc.k8s.network.network_settings import BRIDGE
from tests.e2e.agent import Agent
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import container, pod
from tests.support.podman_service import HOST_OF_PASTA, PATIENCE, podman_version
from workers.network.network_programs import find_program

pytestmark = [pytest.mark.e2e, pytest.mark.podman, pytest.mark.slow]

BYTES_PER_S: Final = 250_000
"""An emulated machine is faster without a filter."""
BURST_BYTES: Final = 128 * 1024
PAYLOAD_BYTES: Final = 1_500_000
DEADLINE_S: Final = 60 * PATIENCE
LEAST_S: Final = (PAYLOAD_BYTES - BURST_BYTES) / BYTES_PER_S * 0.9
"""Time that the payload takes at least: this is what a token bucket promises, however slow or fast the machine is. Who
takes the time may be late for the first byte."""
RATE: Final = {
    "kubernetes.io/ingress-bandwidth": f"{8 * BYTES_PER_S}",
    "kubernetes.io/egress-bandwidth": f"{8 * BYTES_PER_S // 1_000_000}M",
}


def annotated(name: str, annotations: dict[str, str], **spec: Any) -> dict[str, Any]:
    made = pod(name, container(), **spec)
    return {**made, "metadata": {**made["metadata"], "annotations": annotations}}


class Server(threading.Thread):
    """Takes what one client sends, measured from its first byte to its end, or sends it the payload."""

    def __init__(self, *, sends: bool) -> None:
        super().__init__(daemon=True)
        self._sends = sends
        self._listener = socket.create_server(("0.0.0.0", 0))
        self._listener.settimeout(DEADLINE_S)
        self.port = self._listener.getsockname()[1]
        self.took_s = 0.0
        self.got_bytes = 0

    def run(self) -> None:
        with self._listener, self._listener.accept()[0] as client:
            client.settimeout(DEADLINE_S)
            if self._sends:
                client.sendall(b"x" * PAYLOAD_BYTES)
                return
            self.got_bytes = len(client.recv(65536))
            began = monotonic()
            while got := client.recv(65536):
                self.got_bytes += len(got)
            self.took_s = monotonic() - began


@pytest.fixture(params=[SLIRP4NETNS, PASTA, BRIDGE])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def program(mode: str) -> str:
    """Program behind that mode of the network."""
    version = podman_version()
    wanted = wanted_program(mode, version)
    if not find_program(wanted):
        pytest.skip(f"this host has no {wanted}")
    if wanted == PASTA and major_version(version) < PASTA_SINCE:
        pytest.skip(f"Podman {version} does not take pasta")
    if problem := program_problem(wanted, version):
        pytest.skip(problem)
    return wanted


@pytest.fixture
def networked(new_agent: NewAgent, mode: str, program: str) -> Iterator[Agent]:
    """An agent whose pods are on a network of that mode."""
    made = new_agent(podNetwork={"mode": mode})
    made.start()
    yield made
    made.stop_pods()


def test_a_pods_traffic_is_held_to_its_annotations(networked: Agent, mode: str, program: str) -> None:
    agent = networked
    agent.run(annotated("shaped", RATE))
    if reasons := agent.messages("shaped", "BandwidthNotLimited"):
        pytest.skip(reasons[0])
    host = HOST_OF_PASTA if program == PASTA else agent.pods()["shaped"]["status"]["hostIP"]
    out, into = Server(sends=False), Server(sends=True)
    out.start()
    into.start()
    said = agent.inside("shaped", f"head -c {PAYLOAD_BYTES} /dev/zero | nc {host} {out.port}")
    out.join(DEADLINE_S)
    assert (out.got_bytes, said) == (PAYLOAD_BYTES, "")
    assert out.took_s >= LEAST_S
    script = f"cut -d' ' -f1 /proc/uptime; nc {host} {into.port} < /dev/null | wc -c; cut -d' ' -f1 /proc/uptime"
    began, count, ended = agent.inside("shaped", script).split()
    assert int(count) == PAYLOAD_BYTES
    took_s = float(ended) - float(began)
    print(f"measured bandwidth: {mode} by {program}: {PAYLOAD_BYTES} bytes out {out.took_s:.2f} s, in {took_s:.2f} s")
    assert took_s >= LEAST_S


def test_in_the_hosts_network_nothing_is_limited_and_an_event_says_so(agent: Agent) -> None:
    agent.run(annotated("unshaped", RATE, hostNetwork=True))
    words = "bandwidth of the pod is not limited: the pod is in the host's network"
    assert agent.messages("unshaped", "BandwidthNotLimited") == [words]


def test_a_rate_that_is_none_is_refused(agent: Agent) -> None:
    agent.write(annotated("rateless", {"kubernetes.io/egress-bandwidth": "10"}))

    def is_told() -> bool:
        return "resource is unreasonably small (< 1kbit)" in agent.cli("get", "events", "-o", "yaml").out

    agent.until(is_told, "the manifest is refused")
    assert "rateless" not in agent.pods()
