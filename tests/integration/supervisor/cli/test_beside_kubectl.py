"""The same words to `rootlet` and to the real kubectl, which asks the same API server: the same answer."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.api_server import Master, container_status, event_changed, pod_changed, status_of
from tests.support.cli import rootlet
from tests.support.kubectl import Kubectl, kubectl_at, needs_new_kubectl

pytestmark = needs_new_kubectl

_AGES: Final = re.compile(r"\b[0-9]+y([0-9]+d)?\b|\b[0-9]+(s|d|h|m([0-9]+s)?)\b")
"""Both are asked one after the other."""
_SUGGESTION: Final = re.compile(r": did you mean .*\?")
COLUMNS: Final = "NAME:.metadata.name,IMAGES:.spec.containers[*].image,LABELS:.metadata.labels,NONE:.x"


@pytest.fixture
async def told(master: Master) -> Master:
    crashing = container_status("app", ready=False, restartCount=3, state={"waiting": {"reason": "CrashLoopBackOff"}})
    master.ready(
        pod_changed(1, "web", labels={"app": "web", "example.org/tier": "front"}, containers=("app", "log")),
        pod_changed(2, "db", uid="uid-db", status=status_of(phase="Running", containerStatuses=[crashing])),
        pod_changed(3, "far", namespace="test", uid="uid-far", status=status_of(phase="Pending")),
        event_changed(4, "web.1", "web"),
        event_changed(5, "web.2", "web", reason="Failed", type="Warning", count=3),
    )
    return master


@pytest.fixture
async def kubectl(told: Master, tmp_path: Path) -> AsyncIterator[Kubectl]:
    async with kubectl_at(told.socket_path, tmp_path) as found:
        yield found


@pytest.mark.parametrize(
    "words",
    [
        "get pods",
        "get pod web",
        "get pods -A",
        "get pods -A -o wide",
        "get po,ev",
        "get po/web ev/web.1",
        "get all",
        "get no,ns",
        "get pods -L app,example.org/tier --show-labels",
        "get pods --show-kind",
        "get pods --no-headers",
        "get pods -o name",
        "get pods,events -o=name",
        "get pods -ojson",
        "get pod web -o json",
        "get pods -A -o yaml",
        "get pods -l app=web -o name",
        "get pods -l app=none",
        "get pods -A -l app=none",
        "get nodes -l app=none",
        "get pods --field-selector status.phase=Running -o name",
        "get pods --sort-by .metadata.name",
        "get pods -A --sort-by {.status.phase}",
        "get pod web nope",
        "get pod nope",
        "get pod nope --ignore-not-found",
        "get nope",
        "get pods -A web",
        "get pods web -l app=web",
        "get pod/web db",
        "get pod/web ev/web.1 -w",
        "get pods -o jsonpath={.items[*].metadata.name}",
        "get pods -o jsonpath={range.items[*]}{.metadata.name}={.status.phase};{end}",
        'get pods -o jsonpath={.items[?(@.metadata.name=="web")].metadata.labels}',
        "get pods -o jsonpath={..image}",
        "get pods -o jsonpath={.items[*]['metadata.name','status.phase']}",
        "get pods -o jsonpath={.items[-1:].metadata.name}{.nope}",
        "get pod web -o jsonpath={.spec.containers}",
        "get pod web -o jsonpath={.metadata.labels.example\\.org/tier}",
        "get pods -o jsonpath-as-json={.items[*].metadata.name}",
        f"get pods -o custom-columns={COLUMNS}",
        "get pods -o custom-columns=NAME",
        "get events --field-selector type=Warning -o wide",
        "-n test get pods",
        "-n=test get pods -o=name",
        "get --raw /api/v1/namespaces/test/pods",
        "get --raw /api/v1/namespaces/test/pods/nope",
        "events --for pod/web",
        "events --types=Warning --no-headers",
        "events -A",
        "events -n test",
        "wait --for=condition=Ready pod/nope --timeout=1s",
        "wait --for=jsonpath={.status.phase}=Running pod/web --timeout=5s",
        "wait --for=condition=Ready pods -l app=none",
        "logs",
        "logs web -c zz",
        "logs -l app=none",
    ],
)
async def test_both_say_the_same(told: Master, kubectl: Kubectl, words: str) -> None:
    ours, (code, out, err) = await rootlet(told, *words.split()), await kubectl.run(*words.split())
    assert _comparable(ours.out) == _comparable(out.decode())
    assert _comparable(ours.err) == _comparable(err.decode())
    assert ours.code == code


def _comparable(text: str) -> str:
    """Without how long ago things were, what may have been meant, and the program's own name."""
    aged = _AGES.sub("AGE", _SUGGESTION.sub("", text)).replace("rootlet", "kubectl")
    return re.sub(r" +", " ", aged)
