"""`rootlet wait` against a real API server whose master is played by the test."""

from __future__ import annotations

import pytest

from tests.support.api_server import (
    Master,
    pod_changed,
    status_of,
    waiting_client,
)
from tests.support.cli import rootlet

PENDING = status_of(phase="Pending", conditions=[{"type": "Ready", "status": "False"}])


async def test_wait_for_a_condition(master: Master) -> None:
    master.ready(pod_changed(1, "web", status=PENDING), pod_changed(2, "db"))
    async with waiting_client(rootlet(master, "wait", "--for=condition=Ready", "pod/web", "pod/db")) as waiting:
        master.feed(pod_changed(3, "web"))
    found = await waiting
    assert (found.code, found.out, found.err) == (0, "pod/db condition met\npod/web condition met\n", "")


async def test_wait_in_vain(master: Master) -> None:
    master.ready(pod_changed(1, "web", status=PENDING))
    found = await rootlet(master, "wait", "--for=condition=ready", "pod", "web", "nope", "--timeout=0.2s")
    assert found.code == 1
    assert found.err.splitlines() == [
        'Error from server (NotFound): pods "nope" not found',
        "error: timed out waiting for the condition on pods/web",
    ]
    opposite = await rootlet(master, "wait", "--for=condition=Ready=false", "--all", "--timeout=0")
    assert (opposite.code, opposite.out) == (0, "pod/web condition met\n")


async def test_wait_for_the_end(master: Master) -> None:
    master.ready(pod_changed(1, "web"))
    async with waiting_client(rootlet(master, "wait", "--for=delete", "pod/web")) as waiting:
        master.gone(2, "web")
    assert (await waiting).code == 0
    never = await rootlet(master, "wait", "--for=delete", "pod/never", "--timeout=0")
    assert (never.code, never.out) == (0, "")


@pytest.mark.parametrize("goal", ["condition", "condition=", "ready"])
async def test_wait_for_nonsense(master: Master, goal: str) -> None:
    found = await rootlet(master, "wait", f"--for={goal}", "pod/web")
    assert found.code == 1
    assert "unrecognized condition" in found.err


async def test_wait_for_what_a_path_finds(master: Master) -> None:
    master.ready(pod_changed(1, "web", status=PENDING))
    arguments = ("--for=jsonpath={.status.phase}=Running", "pods", "--all")
    async with waiting_client(rootlet(master, "wait", *arguments)) as waiting:
        master.feed(pod_changed(3, "web"))
    found = await waiting
    assert (found.code, found.out, found.err) == (0, "pod/web condition met\n", "")
    there = await rootlet(master, "wait", "--for=jsonpath={.metadata.name}", "pod/web", "--timeout=0")
    assert (there.code, there.out) == (0, "pod/web condition met\n")
    wrong = await rootlet(master, "wait", "--for=jsonpath={.metadata.name}=", "pod/web")
    assert "jsonpath wait format must be" in wrong.err
    nested = await rootlet(master, "wait", "--for=jsonpath={.metadata}=x", "pod/web")
    assert nested.err == "error: jsonpath leads to a nested object or list which is not supported\n"


async def test_wait_for_what_is_not_there_yet(master: Master) -> None:
    master.ready(pod_changed(1, "db"))
    async with waiting_client(rootlet(master, "wait", "--for=create", "pod/web")) as waiting:
        master.feed(pod_changed(3, "web"))
    found = await waiting
    assert (found.code, found.out, found.err) == (0, "pod/web condition met\n", "")
    late = await rootlet(master, "wait", "--for=create", "pod/never", "--timeout=0")
    assert (late.code, late.err) == (1, "error: timed out waiting for the condition on pods/never\n")
    none = await rootlet(master, "wait", "--for=condition=Ready", "-l", "app=none")
    assert (none.code, none.err) == (1, "error: no matching resources found\n")
    node = await rootlet(master, "wait", "--for=jsonpath=metadata.name=node-1", "nodes", "--all", "--timeout=0")
    assert (node.code, node.out) == (0, "node/node-1 condition met\n")
