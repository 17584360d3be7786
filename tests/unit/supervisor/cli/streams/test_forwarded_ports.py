from __future__ import annotations

import socket
from typing import Any

import pytest

from supervisor.cli.options import Failure
from supervisor.cli.printers.containers import default_container
from supervisor.cli.streams.forwarded_ports import ForwardedPort, ListenAddress, forwarded_port, listen_addresses

POD: dict[str, Any] = {
    "metadata": {"name": "web"},
    "spec": {
        "initContainers": [{"name": "side", "ports": [{"name": "admin", "containerPort": 9000}]}],
        "containers": [
            {"name": "app", "ports": [{"name": "http", "containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}]},
            {"name": "dns", "ports": [{"containerPort": 54, "protocol": "UDP"}, {"containerPort": 54}]},
        ],
    },
}


@pytest.mark.parametrize(
    ("text", "port"),
    [
        ("8080:80", ForwardedPort(8080, 80)),
        ("80", ForwardedPort(80, 80)),
        (":80", ForwardedPort(0, 80)),
        ("0:80", ForwardedPort(0, 80)),
        ("http", ForwardedPort(80, 80)),
        ("8080:http", ForwardedPort(8080, 80)),
        (":admin", ForwardedPort(0, 9000)),
        (":54", ForwardedPort(0, 54)),
        (":65535", ForwardedPort(0, 65535)),
    ],
)
def test_ports(text: str, port: ForwardedPort) -> None:
    assert forwarded_port(text, POD) == port


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1:2:3", "error: invalid port format '1:2:3'"),
        ("8080:", "error: remote port cannot be empty"),
        ("", "error: remote port cannot be empty"),
        ("8080:0", "error: remote port must be > 0"),
        (":65536", "error: error parsing remote port '65536': it is none of 0..65535"),
        ("x:80", "error: error parsing local port 'x': it is none of 0..65535"),
        ("65536:80", "error: error parsing local port '65536': it is none of 0..65535"),
        (":none", "error: Pod 'web' does not have a named port 'none'"),
        (":-1", "error: Pod 'web' does not have a named port '-1'"),
        (":53", "error: UDP protocol is not supported for 53"),
        (":²", "error: error parsing remote port '²': it is none of 0..65535"),
    ],
)
def test_what_is_no_port(text: str, words: str) -> None:
    with pytest.raises(Failure) as failed:
        forwarded_port(text, POD)
    assert str(failed.value) == words


def test_addresses() -> None:
    v4, v6 = ListenAddress("127.0.0.1", socket.AF_INET, True), ListenAddress("::1", socket.AF_INET6, True)
    assert listen_addresses(["localhost"]) == [v4, v6]
    assert listen_addresses(["::,10.1.2.3", "localhost"]) == [
        ListenAddress("10.1.2.3", socket.AF_INET),
        v4,
        ListenAddress("::", socket.AF_INET6),
        v6,
    ]


@pytest.mark.parametrize("text", ["here", "", "1.2.3", "127.0.0.1,"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(Failure, match="is not a valid IP"):
        listen_addresses([text])


def test_the_default_container_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert default_container(POD) == "app"
    assert capsys.readouterr().err == 'Defaulted container "app" out of: app, dns, side (init)\n'
    assert default_container(POD, quiet=True) == "app"
    assert capsys.readouterr().err == ""


def test_the_annotated_container_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    key = "kubectl.kubernetes.io/default-container"
    annotated = {**POD, "metadata": {"name": "web", "annotations": {key: "side"}}}
    assert default_container(annotated) == "side"
    assert capsys.readouterr().err == ""
    wrong = {**POD, "metadata": {"name": "web", "annotations": {key: "gone"}}}
    assert default_container(wrong) == "app"
    assert 'Default container name "gone" not found in pod web' in capsys.readouterr().err
