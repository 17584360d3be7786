"""One planted value, used in every way that a pod can use a Secret, and looked for wherever it has no business."""

from __future__ import annotations

import base64
import json
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.e2e.agent import Agent
from tests.e2e.manifests import Json, container, pod
from tests.support.podman_service import podman

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

PLANTED = "planted-4c1fe5d0-by-a-test"
FORMS = (PLANTED.encode(), base64.b64encode(PLANTED.encode()), base64.b64encode(f"ab:{PLANTED}".encode())[4:-4])
READS = "cat /secret/password >/dev/null && touch /has-read && exec sleep 3600"
FROM_SECRET = [{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "planted", "key": "password"}}}]
MOUNT = [{"name": "secret", "mountPath": "/secret"}]
SPOKEN = 'echo "$PASSWORD"; echo -n "$PASSWORD" | base64; echo -n "ab:$PASSWORD" | base64'
"""Raw, in base64, and within what was encoded."""
VOLUME = [{"name": "secret", "secret": {"secretName": "planted"}}]


def secret() -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "planted"},
        "stringData": {"password": PLANTED},
    }


def holds(data: bytes) -> bool:
    return any(form in data for form in FORMS)


def saying() -> dict[str, Json]:
    """Containers by the name of their pods."""
    says = container(script="exec sleep 3600", env=FROM_SECRET)
    words = {"exec": {"command": ["sh", "-c", f"{SPOKEN}; exit 1"]}, "periodSeconds": 1}
    ends = container(script=f"({SPOKEN}) > /dev/termination-log; exit 1", env=FROM_SECRET)
    return {
        "says-exec": {**says, "readinessProbe": words},
        "says-moved": answering("302 Found", "Location: http://elsewhere/[$PASSWORD"),
        "says-body": answering("302 Found", "Location: http://elsewhere/", f"Content-Length: {len(PLANTED)}"),
        "says-end": ends,
    }


def answering(status: str, *headers: str) -> Json:
    """A server that says it in a header or in the body of each answer, and a probe that asks."""
    head = "".join(rf"{line}\r\n" for line in (f"HTTP/1.0 {status}", *headers, ""))
    script = f'while true; do {{ printf "{head}"; {SPOKEN}; }} | nc -l -p 8080; done'
    probe = {"httpGet": {"port": 8080}, "periodSeconds": 1}
    return {**container(script=script, env=FROM_SECRET), "readinessProbe": probe}


def unhealthy(agent: Agent, name: str) -> bool:
    """Whether the pod's probe has said so, in words that had the value in them."""
    said = [*agent.messages(name, "Unhealthy"), *agent.messages(name, "ProbeWarning")]
    return any("<secret>" in message for message in said)


def crash_trace(agent: Agent) -> str:
    [status] = agent.pods()["says-end"]["status"].get("containerStatuses") or [{}]
    return str(status.get("state", {}).get("terminated", {}).get("message", ""))


@pytest.fixture(scope="module")
def using(agent: Agent) -> Agent:
    """A pod that has it in its environment, in a file and in a probe's request, one that cannot start for it, and four
    that say it wherever a container is listened to."""
    uses = container(script=READS, env=FROM_SECRET, volumeMounts=MOUNT)
    probe = {"exec": {"command": ["sh", "-c", "test -e /has-read"]}, "periodSeconds": 1}
    fails = container(env=FROM_SECRET, command=["/nowhere-$(PASSWORD)"], args=[])
    agent.write(
        secret(),
        pod("uses", {**uses, "readinessProbe": probe}, volumes=VOLUME),
        pod("fails", fails),
        *(pod(name, says, restartPolicy="Never") for name, says in saying().items()),
    )
    agent.until_ready(["uses"])
    for name in ("says-exec", "says-moved", "says-body"):
        agent.until(partial(unhealthy, agent, name), f"{name} was probed")
    agent.until(lambda: crash_trace(agent) != "", "the last one has ended")
    agent.until(lambda: "Failed" in {event["reason"] for event in agent.events("fails")}, "the other one fails")
    return agent


def test_it_is_where_the_pod_has_it(using: Agent) -> None:
    """Otherwise the other tests would show nothing."""
    done = using.cli("exec", "uses", "--", "sh", "-c", 'test "$PASSWORD" = "$(cat /secret/password)" && echo same')
    assert done.out == "same\n"


def test_nobody_answers_it(using: Agent) -> None:
    paths = ("/api/v1/pods", "/api/v1/events", "/rootlet/v1/secrets", "/rootlet/v1/workers")
    answers = [json.dumps(using.get(path)) for path in paths]
    for command in ("get pods -o yaml", "get events", "get secrets -o json", "logs uses"):
        done = using.cli(*command.split())
        answers += [done.out, done.err]
    answers += [using.describe("uses"), using.describe("fails"), using.log_text()]
    assert [answer for answer in answers if holds(answer.encode())] == []


def test_what_a_container_says_is_told_without_it(using: Agent) -> None:
    """Otherwise silence would do, too."""
    assert crash_trace(using).startswith("<secret>\n<secret>")
    for name in ("says-exec", "says-moved", "says-body"):
        assert unhealthy(using, name)


def test_no_file_on_a_disk_has_it(using: Agent) -> None:
    """But the manifest that states it, and the file that its container writes itself."""
    found = [path for path in using.directory.rglob("*") if path.is_file() and path.parent != using.manifests]
    files = [path for path in found if path.suffix != ".termination-log"]
    assert [path for path in files if holds(_content(path))] == []


def test_no_title_of_a_process_has_it(using: Agent) -> None:
    titles = {process.pid: process.info["cmdline"] or () for process in psutil.process_iter(["cmdline"])}
    assert [pid for pid, words in titles.items() if holds(" ".join(words).encode())] == []


def test_podman_shows_it_in_the_environment_of_the_pods_own_container_only(using: Agent) -> None:
    """And none of its labels, names and mounts says it."""
    ids = [seen.id for (of, _), seen in using.eye.running().items() if of == "uses"]
    shown: list[dict[str, Any]] = json.loads(podman("inspect", *ids))
    in_environment = [holds(json.dumps(each["Config"].pop("Env")).encode()) for each in shown]
    assert any(in_environment)
    assert not all(in_environment), "the sandbox has none of it"
    assert not holds(json.dumps(shown).encode())


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
