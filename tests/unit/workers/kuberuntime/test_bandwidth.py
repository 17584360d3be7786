"""The lines by which a pod's network is shaped, and when that is done."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ipc.k8s.network.bandwidth import EGRESS, Bandwidth
from tests.fakes.clock import simulate
from tests.support.pods import pod
from tests.support.sync import FakeHost
from workers.kuberuntime.bandwidth import IFB, LEAST_BURST_BYTES, _batches, _devices

TABLE = "Inter-| Receive\n face |bytes\n    lo: 1 2\n  eth0:3 4\n"
SHAPED = f"tbf rate 8000000bit burst {LEAST_BURST_BYTES}b latency 400ms"
FAST = "tbf rate 1000000000bit burst 6250000b latency 400ms"
EVERY = "protocol all prio 1 handle 800::1 u32 match u32 0 0"


@pytest.mark.parametrize(
    ("wanted", "devices", "batches"),
    [
        (Bandwidth(egress=8_000_000), ["lo", "tap0"], [("tc", [f"qdisc replace dev tap0 root {SHAPED}"])]),
        (Bandwidth(egress=10**9), ["lo", "tap0"], [("tc", [f"qdisc replace dev tap0 root {FAST}"])]),
        (
            Bandwidth(ingress=8_000_000),
            ["lo", "a", "b"],
            [
                ("ip", [f"link add {IFB} type ifb", f"link set {IFB} up"]),
                (
                    "tc",
                    [
                        f"qdisc replace dev {IFB} root {SHAPED}",
                        "qdisc replace dev a ingress",
                        f"filter replace dev a parent ffff: {EVERY} action mirred egress redirect dev {IFB}",
                        "qdisc replace dev b ingress",
                        f"filter replace dev b parent ffff: {EVERY} action mirred egress redirect dev {IFB}",
                    ],
                ),
            ],
        ),
    ],
)
def test_the_lines_of_a_network(wanted: Bandwidth, devices: list[str], batches: list[tuple[str, list[str]]]) -> None:
    assert [(program, list(lines)) for program, lines in _batches(wanted, devices)] == batches


def test_a_second_time_the_device_is_there() -> None:
    (_, lines), *_ = _batches(Bandwidth(ingress=8_000_000), ["lo", "a", IFB])
    assert lines == [f"link set {IFB} up"]


def test_the_names_of_devices() -> None:
    assert _devices(TABLE) == ["lo", "eth0"]


def test_a_pod_in_the_hosts_network_is_told_once_that_nothing_is_limited(tmp_path: Path) -> None:
    plain = pod("p", host_network=True)
    metadata = msgspec.structs.replace(plain.metadata, annotations={EGRESS: "1M"})
    made = msgspec.structs.replace(plain, metadata=metadata)

    async def scenario() -> None:
        host = FakeHost(tmp_path / "logs")
        for _ in range(2):
            assert (await host.sync(made)).error == ""
        words = "bandwidth of the pod is not limited: the pod is in the host's network"
        assert [event.message for event in host.events if event.reason == "BandwidthNotLimited"] == [words]

    simulate(scenario)
