"""A message goes to the one handler of its type; the sync loop has one for each of its events."""

from __future__ import annotations

import random
from typing import get_args

import pytest

from supervisor.config.settings import Settings
from supervisor.loop.loop import SyncLoop
from supervisor.protocol.dispatch import DispatchTable
from supervisor.protocol.events import LoopEvent


class Parent:
    pass


class Child(Parent):
    pass


def test_a_message_goes_to_the_handler_of_exactly_its_type() -> None:
    table = DispatchTable[[int], str]()
    table.on(Parent, lambda message, number: f"parent {number}")
    table.on(Child, lambda message, number: f"child {number}")
    assert (table(Parent(), 1), table(Child(), 2)) == ("parent 1", "child 2")


def test_a_type_has_one_handler() -> None:
    table = DispatchTable[[], None]()
    table.on(Parent, lambda message: None)
    with pytest.raises(ValueError, match="two handlers of Parent"):
        table.on(Parent, lambda message: None)


def test_a_message_that_no_handler_takes_is_an_error() -> None:
    table = DispatchTable[[], None]()
    table.on(Parent, lambda message: None)
    with pytest.raises(KeyError):
        table(Child())


def test_the_sync_loop_handles_every_event_and_nothing_else() -> None:
    loop = SyncLoop(Settings(), 1, (), random.Random(0))
    assert loop.handlers.kinds == set(get_args(LoopEvent))
