"""Loops for the tests of links."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from tests.support.channels import LoopFactory, run_on


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Run a coroutine to its end on a fresh loop, within DEADLINE_S."""
    factory: LoopFactory = request.param
    return lambda coroutine: run_on(factory, coroutine)
