"""Bandwidth annotations: a pod's traffic is no faster than they say, both ways. Real Podman, real kernel."""

from __future__ import annotations

import socket
import threading
from typing import Any, Final

import pytest

from ipc.host.clock import monotonic
from tests.e2e.agent import Agent
from tests.e2e.manifests import container, pod

pytestmark = [pytest.mark.e2e, pytest.mark.podman, pytest.mark.slow]

BYTES_PER_S: Final = 1_000_000
BURST_BYTES: Final = 128 * 1024
PAYLOAD_BYTES: Final = 1_500_000
DEADLINE_S: Final = 60
LEAST_S: Final = (PAYLOAD_BYTES - BURST_BYTES) / BYTES_PER_S
"""Time that the payload takes at least: this is what a token bucket promises, however slow or fast the machine is."""
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


def test_a_pods_traffic_is_held_to_its_annotations(agent: Agent) -> None:
    agent.run(annotated("shaped", RATE))
    if reasons := agent.messages("shaped", "BandwidthNotLimited"):
        pytest.skip(reasons[0])
    host = agent.pods()["shaped"]["status"]["hostIP"]
    out, into = Server(sends=False), Server(sends=True)
    out.start()
    into.start()
    agent.inside("shaped", f"head -c {PAYLOAD_BYTES} /dev/zero | nc {host} {out.port}")
    out.join(DEADLINE_S)
    assert out.got_bytes == PAYLOAD_BYTES
    assert out.took_s >= LEAST_S
    script = f"cut -d' ' -f1 /proc/uptime; nc {host} {into.port} < /dev/null | wc -c; cut -d' ' -f1 /proc/uptime"
    began, count, ended = agent.inside("shaped", script).split()
    assert int(count) == PAYLOAD_BYTES
    assert float(ended) - float(began) >= LEAST_S


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
