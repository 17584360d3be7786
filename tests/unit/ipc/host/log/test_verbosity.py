"""Levels of all lines and of areas."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from ipc.host.log.verbosity import DEFAULT, MAX_AREAS, Verbosity, apply, area_problem, level_named
from ipc.link.shm.board import Board
from ipc.link.shm.followed_verbosity import FollowedVerbosity


@pytest.fixture(autouse=True)
def _levels() -> Iterator[None]:
    before = logging.getLogger().level
    yield
    apply(Verbosity())
    logging.getLogger().setLevel(before)


def level_of(name: str) -> int:
    return logging.getLogger(name).getEffectiveLevel()


@pytest.mark.parametrize(("text", "level"), [("warning", "warning"), ("0", "info"), ("3", "info"), ("4", "debug")])
def test_a_level_is_named_or_a_number(text: str, level: str) -> None:
    assert level_named(text) == level


@pytest.mark.parametrize("text", ["", "loud", "11", "-1", "4.0", "٤", "9" * 10_000, "\x1b[2J"])
def test_what_is_no_level_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no level") as refused:
        level_named(text)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("area", ["pleg", "pleg.observer", "loop", "api_server.handlers", "master", "wire"])
def test_rooms_and_modules_are_areas(area: str) -> None:
    assert area_problem(area) == ""


@pytest.mark.parametrize(
    "area", ["", "plg", "..", "pleg.", "../etc", "pleg/observer", "a" * 10_000, "pleg\n", "__pycache__"]
)
def test_nothing_else_is(area: str) -> None:
    assert "is no area" in area_problem(area)


def test_an_area_has_its_own_level_in_all_packages_and_below_it() -> None:
    apply(Verbosity("warning", {"pleg": "debug", "api_server": "error"}))
    assert level_of("workers.pleg.observer") == logging.DEBUG
    assert level_of("workers.api_server.middleware") == logging.ERROR
    assert level_of("supervisor.loop.x") == logging.WARNING


def test_what_is_not_named_any_more_has_the_common_level() -> None:
    apply(Verbosity("info", {"pleg": "debug"}))
    apply(Verbosity("error"))
    assert level_of("workers.pleg.observer") == logging.ERROR


def test_changes() -> None:
    verbosity = Verbosity().changed("", "warning").changed("pleg", "5").changed("libpod", "error")
    assert verbosity.words == ("warning", "libpod=error", "pleg=debug")
    assert verbosity.changed("pleg", DEFAULT).words == ("warning", "libpod=error")


@pytest.mark.parametrize(("area", "level"), [("", "default"), ("nowhere", "info"), ("pleg", "loud"), ("pleg", "")])
def test_a_wrong_change_is_refused(area: str, level: str) -> None:
    with pytest.raises(ValueError, match="is no"):
        Verbosity().changed(area, level)


def test_areas_are_bounded() -> None:
    full = Verbosity("info", {f"a{n}": "info" for n in range(MAX_AREAS)})
    with pytest.raises(ValueError, match="at most"):
        full.changed("pleg", "debug")


def test_a_process_follows_the_board() -> None:
    board = Board.create(worker_slots=1, pod_rows=1)
    follower = FollowedVerbosity(board)
    apply(Verbosity("error"))
    follower.look()
    assert level_of("workers.pleg") == logging.INFO
    board.record_verbosity(Verbosity("warning", {"pleg": "debug"}))
    follower.look()
    assert (level_of("workers.pleg"), level_of("workers.libpod")) == (logging.DEBUG, logging.WARNING)


def test_a_look_without_news_changes_nothing() -> None:
    board = Board.create(worker_slots=1, pod_rows=1)
    board.record_verbosity(Verbosity("warning"))
    follower = FollowedVerbosity(board)
    follower.look()
    apply(Verbosity("debug"))
    follower.look()
    assert level_of("workers.pleg") == logging.DEBUG


def test_the_largest_verbosity_fits_on_the_board() -> None:
    long = "a" * 31
    largest = Verbosity("warning", {f"{long}.{long}.{long}{n}": "warning" for n in range(MAX_AREAS)})
    board = Board.create(worker_slots=1, pod_rows=1)
    board.record_verbosity(largest)
    assert board.read_verbosity() == largest
