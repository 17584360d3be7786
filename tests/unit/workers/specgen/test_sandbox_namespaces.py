"""A sandbox's namespaces and network, and what a container does not have from it."""

from __future__ import annotations

from typing import Any

import pytest

from ipc.k8s.network.network_settings import NetworkSettings
from tests.support.pods import pod
from workers.specgen.sandbox_namespaces import container_namespaces, leaves_processes, sandbox_namespaces

HOST = {"nsmode": "host"}
TARGET = {"pidns": {"nsmode": "path", "value": "/proc/7/ns/pid"}}


@pytest.mark.parametrize(
    ("spec", "shared", "container", "with_target"),
    [
        ({}, ["ipc", "net", "uts"], {}, TARGET),
        ({"share_process_namespace": False}, ["ipc", "net", "uts"], {}, TARGET),
        ({"share_process_namespace": True}, ["ipc", "net", "uts", "pid"], {}, {}),
        ({"host_pid": True}, ["ipc", "net", "uts"], {"pidns": HOST}, {"pidns": HOST}),
        ({"host_ipc": True}, ["net", "uts"], {"ipcns": HOST}, {"ipcns": HOST, **TARGET}),
        ({"host_network": True}, ["ipc", "net"], {}, TARGET),
    ],
)
def test_namespaces(
    spec: dict[str, Any], shared: list[str], container: dict[str, Any], with_target: dict[str, Any]
) -> None:
    of = pod(**spec)
    assert sandbox_namespaces(of, NetworkSettings())["shared_namespaces"] == shared
    assert container_namespaces(of, 0) == container
    assert container_namespaces(of, 7) == with_target
    assert leaves_processes(of) == (spec.get("share_process_namespace") or spec.get("host_pid") or False)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {}),
        ({"mode": "pasta"}, {"netns": {"nsmode": "pasta"}}),
        ({"mode": "slirp4netns"}, {"netns": {"nsmode": "slirp4netns"}}),
        ({"mode": "bridge"}, {"netns": {"nsmode": "bridge"}}),
        (
            {"mode": "bridge", "bridge": "pods", "cluster_domain": "cluster.test"},
            {
                "netns": {"nsmode": "bridge"},
                "Networks": {"pods": {"aliases": ["web", "web.team.default.svc.cluster.test"]}},
            },
        ),
    ],
)
def test_network_modes(settings: dict[str, Any], expected: dict[str, Any]) -> None:
    spec = sandbox_namespaces(pod(subdomain="team"), NetworkSettings(**settings))
    assert {key: spec[key] for key in ("netns", "Networks") if key in spec} == expected
    of_host = sandbox_namespaces(pod(host_network=True), NetworkSettings(**settings))
    assert of_host["netns"] == HOST
    assert not {"Networks", "portmappings"} & of_host.keys()
