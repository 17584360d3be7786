"""Containers that Podman cannot inspect, or not in so few bytes as are read: what a list tells of them is enough to
observe and to remove them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Final

import msgspec
import pytest

from tests.contract.target import PodmanTarget, eventually, running
from tests.support.podman_service import PodmanService
from workers.kubecontainer.runtime import ErrorKind, InspectedContainer, RuntimeCallError
from workers.libpod import client

pytestmark = pytest.mark.podman

UNLISTED: Final = (
    "stop_signal",
    "image_digest",
    "resolv_conf",
    "hostname_file",
    "config_path",
    "layer",
    "log_path",
    "ips",
)
"""Only an inspect tells these."""


@pytest.fixture
async def target(podman_service: PodmanService) -> AsyncIterator[PodmanTarget]:
    made = PodmanTarget(podman_service)
    yield made
    await made.clean()


def as_listed(inspected: InspectedContainer) -> InspectedContainer:
    """As a list can tell it."""
    return msgspec.structs.replace(
        inspected,
        **{name: () if name == "ips" else "" for name in UNLISTED},
        user=None,
        created_at=float(int(inspected.created_at)),
        started_at=float(int(inspected.started_at)),
        finished_at=float(int(inspected.finished_at)),
    )


def comparable(inspected: InspectedContainer) -> InspectedContainer:
    return msgspec.structs.replace(inspected, created_at=float(int(inspected.created_at)))


async def test_a_running_container_is_known_by_the_list(target: PodmanTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    inspected = await running(target)
    monkeypatch.setattr(client, "MAX_ANSWER_BYTES", 1000)
    for reference in (inspected.id, inspected.name):
        assert comparable(await target.runtime.inspect_container(reference)) == as_listed(inspected)
    assert inspected.start_ticks
    assert inspected.conmon_pid


async def test_the_end_of_one_is_seen_and_it_is_removed(target: PodmanTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = await running(target, ("sh", "-c", "exit 3"))
    ended = await eventually(lambda: target.runtime.inspect_container(begun.id), lambda c: c.state == "exited")
    monkeypatch.setattr(client, "MAX_ANSWER_BYTES", 1000)
    found = await target.runtime.inspect_container(begun.id)
    assert comparable(found) == as_listed(ended)
    assert found.exit_code == 3
    await target.runtime.remove_container(begun.id)
    with pytest.raises(RuntimeCallError, match=re.escape(begun.id[:12])) as gone:
        await target.runtime.inspect_container(begun.id)
    assert gone.value.kind is ErrorKind.NOT_FOUND


async def test_one_of_somebody_else_stays_unknown(target: PodmanTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    inspected = await running(target)
    monkeypatch.setattr(client, "MAX_ANSWER_BYTES", 1000)
    with pytest.raises(RuntimeCallError, match="an answer of more than 1000 bytes"):
        await target.stranger().inspect_container(inspected.id)
