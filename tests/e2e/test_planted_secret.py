"""One planted value, used in every way that a pod can use a Secret, and looked for wherever it has no business."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.e2e.agent import Agent
from tests.e2e.manifests import Json, container, pod
from tests.podman_service import podman

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

PLANTED = "planted-4c1fe5d0-by-a-test"
FORMS = (PLANTED.encode(), base64.b64encode(PLANTED.encode()))
READS = "cat /secret/password >/dev/null && touch /has-read && exec sleep 3600"
FROM_SECRET = [{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "planted", "key": "password"}}}]
MOUNT = [{"name": "secret", "mountPath": "/secret"}]
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


@pytest.fixture(scope="module")
def using(agent: Agent) -> Agent:
    """A pod that has it in its environment, in a file and in a probe's request, and one that cannot start for it."""
    uses = container(script=READS, env=FROM_SECRET, volumeMounts=MOUNT)
    probe = {"exec": {"command": ["sh", "-c", "test -e /has-read"]}, "periodSeconds": 1}
    fails = container(env=FROM_SECRET, command=["/nowhere-$(PASSWORD)"], args=[])
    agent.write(secret(), pod("uses", {**uses, "readinessProbe": probe}, volumes=VOLUME), pod("fails", fails))
    agent.until_ready(["uses"])
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


def test_no_file_on_a_disk_has_it(using: Agent) -> None:
    """But the manifest that states it."""
    files = [path for path in using.directory.rglob("*") if path.is_file() and path.parent != using.manifests]
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
