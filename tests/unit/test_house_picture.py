"""The committed picture of processes, links and phases is what the code's tables say now."""

from __future__ import annotations

from xml.etree import ElementTree

from ipc.link.messages.catalogue import LINKS
from ipc.link.messages.pod_worker import WorkType
from tests.house_picture import PHASES, PICTURE, children, draw, message_names


def test_the_committed_picture_is_what_is_drawn_now() -> None:
    assert PICTURE.read_text() == draw(), "draw it anew: python -m tests.house_picture"


def test_every_child_every_message_and_every_phase_is_drawn() -> None:
    texts = " ".join("".join(element.itertext()) for element in ElementTree.fromstring(draw()).iter())
    names = [spec.name for spec in children()] + [
        name for link in LINKS.values() for union in (link.commands, link.reports) for name in message_names(union)
    ]
    assert [name for name in names if name not in texts] == []
    assert set(PHASES) == set(WorkType)
