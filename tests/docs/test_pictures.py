"""The pictures are those of the code and of the pages, and every line of text fits."""

from __future__ import annotations

from typing import get_args, get_type_hints
from xml.etree import ElementTree

import pytest

from ipc.link.messages.pod_worker import WorkType
from supervisor.config.settings import PodNetworkSettings
from tests.docs.pictures import network_modes
from tests.docs.pictures.drawn import DOCS, drawn
from tests.docs.pictures.pod_life import ACTORS, STEPS

PICTURES = drawn()
MAX_CHARS = 34
"""Longest line in a box of a step."""


@pytest.mark.parametrize("name", PICTURES)
def test_the_committed_picture_is_what_is_drawn_now(name: str) -> None:
    assert (DOCS / name).read_text() == PICTURES[name], "draw it anew: python -m tests.docs.pictures"


@pytest.mark.parametrize("name", PICTURES)
def test_a_page_shows_it(name: str) -> None:
    assert ElementTree.fromstring(PICTURES[name]).tag.endswith("svg")
    assert [page.name for page in DOCS.glob("*.md") if f"]({name})" in page.read_text()]


def test_a_pod_goes_through_every_phase_in_order() -> None:
    phases = [step.phase for step in STEPS]
    assert phases == sorted(phases, key=list(WorkType).index)
    assert set(phases) == set(WorkType)
    assert {step.actor for step in STEPS} == set(ACTORS)
    assert [line for step in STEPS for line in step.does if len(line) > MAX_CHARS] == []


def test_every_network_mode_is_drawn() -> None:
    settable = [mode for mode in get_args(get_type_hints(PodNetworkSettings)["mode"]) if mode]
    drawn_modes = [mode.name for mode in network_modes.modes((DOCS / "network.md").read_text())]
    assert drawn_modes == [*settable, "hostNetwork"]
