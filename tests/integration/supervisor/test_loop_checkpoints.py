"""Knowledge of the sync loop over a restart of the agent, on a real disk."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

from ipc.host.clock import SystemClock
from ipc.link.messages import event_reasons
from ipc.link.messages.base import node_event
from supervisor.loop_checkpoints import LoopCheckpoints
from supervisor.protocol.events import (
    BindingsRestored,
    ContainerRestartsRestored,
    EndsRestored,
    EventsRestored,
    EvictionsRestored,
    LoopEvent,
    ProbeResultsRestored,
    ResourcesRestored,
)
from supervisor.state.ended_containers_file import EndedContainersFile
from tests.support.dialogue import Talk

DEADLINE_S = 30.0


def checkpoints_of(talk: Talk) -> LoopCheckpoints:
    return LoopCheckpoints(talk.settings, talk.loop.durable, SystemClock())


def restored(directory: Path) -> Mapping[type[LoopEvent], LoopEvent]:
    """Events that the next agent's loop gets, in their order."""
    return {type(event): event for event in checkpoints_of(Talk(state_dir=directory)).restore()}


def test_the_history_of_events_is_restored_before_anything_that_adds_to_it(tmp_path: Path) -> None:
    assert list(restored(tmp_path)) == [
        EventsRestored,
        EvictionsRestored,
        ProbeResultsRestored,
        ResourcesRestored,
        ContainerRestartsRestored,
        EndsRestored,
        BindingsRestored,
    ]


async def test_the_last_of_it_is_there_for_the_next_agent(tmp_path: Path) -> None:
    talk = Talk(state_dir=tmp_path)
    talk.start("a")
    talk.say(node_event("n1", event_reasons.PREFLIGHT, "no cgroups"))
    await checkpoints_of(talk).close()
    events, resources = restored(tmp_path)[EventsRestored], restored(tmp_path)[ResourcesRestored]
    assert isinstance(events, EventsRestored)
    assert "no cgroups" in [event.message for event in events.events]
    assert isinstance(resources, ResourcesRestored)
    assert list(resources.pods) == ["a"]


async def test_allocations_do_not_wait_for_the_next_second(tmp_path: Path) -> None:
    talk = Talk(state_dir=tmp_path)
    talk.start("a")
    checkpoints_of(talk).keep_at_once()
    async with asyncio.timeout(DEADLINE_S):
        while not (tmp_path / "allocated_pods_state").exists():  # noqa: ASYNC110 - a file is written
            await asyncio.sleep(0.01)
    assert not (tmp_path / "events.jsonl").exists()


async def test_signs_of_life_of_this_agent_are_not_those_of_the_one_before_it(tmp_path: Path) -> None:
    file = tmp_path / "ended_containers"
    EndedContainersFile(file).write({}, {})
    os.utime(file, (1, 1))
    checkpoints = checkpoints_of(Talk(state_dir=tmp_path))
    found = []
    for event in checkpoints.restore():
        found.append(event)
        checkpoints.keep_at_once()  # as after every event
        async with asyncio.timeout(DEADLINE_S):
            while file.stat().st_mtime == 1:  # noqa: ASYNC110 - a file is written
                await asyncio.sleep(0.01)
    assert [event.alive_at for event in found if isinstance(event, EndsRestored)] == [1]
