"""Attacks that one file, one container or one stranger makes on everybody: the canary beside notices nothing,
the agent and its workers live on."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.e2e.agent import Agent, restart_count
from tests.e2e.manifests import Json, container, pod
from tests.e2e.pod_servers import PodServers
from tests.support.podman_service import IMAGE, podman
from tests.support.servers.local_servers import answering, response
from tests.support.variants import seldom

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

CANARY = "canary"
PROBED = "/probed"
EVERY_SECOND: Json = {"periodSeconds": 1, "failureThreshold": 1}
PROBES_MORE = 5
"""So many probes of the canary have to come after an attack."""
PORT = 8080


@pytest.fixture(scope="module")
def canary(agent: Agent) -> Agent:
    """Probed every second, and never ready again for a while when one fails."""
    probe = {"exec": {"command": ["sh", "-c", f"echo x >> {PROBED}"]}, **EVERY_SECOND}
    agent.run(pod(CANARY, container(readinessProbe=probe)))
    agent.until(lambda: probes(agent) > 0, "the canary is probed")
    return agent


@pytest.fixture
def unharmed(canary: Agent) -> Iterator[Agent]:
    """Attack it: in the end the agent and its workers are the same processes, and the canary was ready all the time."""
    before, since = canary.processes(), ready_since(canary)
    yield canary
    done = probes(canary)
    canary.until(lambda: probes(canary) >= done + PROBES_MORE, "the canary is probed")
    assert canary.processes() == before
    assert ready_since(canary) == since
    assert restart_count(canary.pods()[CANARY]) == 0
    canary.assert_works(pod("afterwards"))


def probes(agent: Agent) -> int:
    return agent.inside(CANARY, f"cat {PROBED}").count("x")


def ready_since(agent: Agent) -> str:
    conditions = {found["type"]: found for found in agent.pods()[CANARY]["status"]["conditions"]}
    assert conditions["Ready"]["status"] == "True"
    return str(conditions["Ready"]["lastTransitionTime"])


def put(directory: bytes, name: bytes, content: bytes) -> bytes:
    path = os.path.join(directory, name)
    with open(path, "wb") as file:
        file.write(content)
    return path


# --- a file's name -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [b"\xff\xfe.yaml", seldom(b"\xff\xfe"), seldom(b"evil-\xc3\x28.json")])
def test_a_name_that_is_no_text_in_the_manifest_directory(unharmed: Agent, name: bytes) -> None:
    path = put(os.fsencode(unharmed.manifests), name, b"{")
    unharmed.run(pod("beside"))
    os.unlink(path)
    unharmed.remove("beside")
    unharmed.until_gone(["beside"])


@pytest.mark.slow
def test_a_name_that_is_no_text_in_its_parent(unharmed: Agent) -> None:
    paths = [put(os.fsencode(unharmed.manifests.parent), b"\xff-%d" % number, b"") for number in range(10)]
    unharmed.run(pod("child"))
    for path in paths:
        os.unlink(path)
    unharmed.remove("child")
    unharmed.until_gone(["child"])


@pytest.mark.slow
def test_a_link_to_what_the_kernel_makes_up_as_it_is_read(unharmed: Agent) -> None:
    link = unharmed.manifests / "environ.yaml"
    link.symlink_to("/proc/self/environ")
    words = "environ.yaml: lies on a file system of type proc"
    unharmed.until(lambda: words in unharmed.log_text(), "it is refused in words")
    unharmed.run(pod("beside-link"))
    assert unharmed.log_text().count(words) == 1
    link.unlink()


# --- what a container answers --------------------------------------------------------------------------------------


def test_an_answer_to_a_probe_that_has_no_encoding(unharmed: Agent) -> None:
    """The pod is probed on, and what it said is told as far as that goes."""
    probe = {"httpGet": {"port": PORT}, **EVERY_SECOND}
    unharmed.run(pod("answers", container(livenessProbe={**probe, "initialDelaySeconds": 3, "failureThreshold": 1000})))
    servers = PodServers(unharmed)
    try:
        hostile = response(b"", "302 Found", ("Location: http://[\xff",)).replace("\xff".encode(), b"\xff")
        servers.serve("answers", PORT, answering(hostile))
        counted = [0]

        def is_told_again() -> bool:
            told = [e["count"] for e in unharmed.events("answers") if e["reason"] in ("Unhealthy", "ProbeWarning")]
            counted[0] = max(told, default=0)
            return counted[0] >= PROBES_MORE

        unharmed.until(is_told_again, "its answers are told")
    finally:
        servers.close()
    unharmed.remove("answers")
    unharmed.until_gone(["answers"])


# --- labels of a stranger ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("digits", [23, 5000])
def test_a_strangers_container_with_our_labels(unharmed: Agent, digits: int) -> None:
    uid = f"stranger-{digits}"
    labels = {
        "rootlet.dev/instance": unharmed.instance,
        "io.kubernetes.pod.uid": uid,
        "io.kubernetes.pod.name": "stranger",
        "io.kubernetes.pod.namespace": "default",
        "io.kubernetes.container.name": "main",
        "rootlet.dev/attempt": "1" * digits,
    }
    arguments = [part for key, value in labels.items() for part in ("--label", f"{key}={value}")]
    id = podman("create", *arguments, IMAGE, "true").strip()
    try:
        podman("start", id)
        unharmed.run(pod("beside-stranger"))
    finally:
        podman("rm", "--force", "--ignore", id)
    unharmed.remove("beside-stranger")
    unharmed.until_gone(["beside-stranger"])
