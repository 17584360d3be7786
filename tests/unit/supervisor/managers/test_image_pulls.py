"""The arbiter of pulls as a conversation: who says what, and what goes out because of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ipc.link.messages.base import PullEnded, PullProgress
from ipc.link.messages.node_worker import CancelPull, StartPull
from ipc.link.messages.pod_worker import AbandonPull, PullImage
from supervisor.config.settings import Settings
from supervisor.managers.image_pulls import ADOPTION_S, MAX_PARALLEL, MAX_PULLS, ImagePulls, PullLimits, pull_limits
from supervisor.processes.worker_pool import NODE_SLOT
from supervisor.protocol.commands import Send

ONE, TWO = 3, 4
"""Slots of pod workers."""
SERIAL = PullLimits(parallel=1, per_s=0, burst=1)


class Talk:
    """Words for the arbiter's methods; its commands as short words. Time stands still unless it is told otherwise."""

    def __init__(self, limits: PullLimits = SERIAL, *, up: bool = True) -> None:
        self.pulls = ImagePulls(limits)
        self.now = 100.0
        if up:
            self.up()

    def want(self, image: str, uid: str = "u1", slot: int = ONE) -> list[str]:
        return words(self.pulls.wanted(slot, PullImage(uid=uid, reference=image), self.now))

    def abandon(self, image: str, uid: str = "u1", slot: int = ONE) -> list[str]:
        return words(self.pulls.abandoned(slot, AbandonPull(uid=uid, reference=image), self.now))

    def end(self, image: str, error: str = "") -> list[str]:
        return words(self.pulls.ended(PullEnded(reference=image, error=error), self.now))

    def progress(self, image: str, text: str = "copying") -> list[str]:
        return words(self.pulls.progressed(PullProgress(reference=image, words=text)))

    def up(self) -> list[str]:
        return words(self.pulls.node_up(self.now))

    def down(self) -> list[str]:
        return words(self.pulls.node_down())

    def worker_down(self, slot: int = ONE) -> list[str]:
        return words(self.pulls.worker_down(slot, self.now))

    def tick(self, after_s: float = 0.0) -> list[str]:
        self.now += after_s
        return words(self.pulls.break_off_deserted(self.now))


def words(commands: list[Send]) -> list[str]:
    return [_word(command) for command in commands]


def _word(command: Send) -> str:
    match command:
        case Send(slot=slot, message=StartPull(reference=image)) if slot == NODE_SLOT:
            return f"start {image}"
        case Send(slot=slot, message=CancelPull(reference=image)) if slot == NODE_SLOT:
            return f"cancel {image}"
        case Send(slot=slot, message=PullProgress(reference=image, words=text)):
            return f"{slot}: {image} {text}"
        case Send(slot=slot, message=PullEnded(reference=image, error=error, message=text)):
            return f"{slot}: {image} ended {error} {text}".rstrip()
    raise AssertionError(command)


# --- one pull for all ---


def test_pods_of_all_workers_share_one_pull() -> None:
    talk = Talk()
    assert talk.want("a", "u1", ONE) == ["start a"]
    assert talk.want("a", "u2", ONE) == []
    assert talk.want("a", "u3", TWO) == []
    assert talk.progress("a") == ["3: a copying", "4: a copying"]
    assert talk.end("a") == ["3: a ended", "4: a ended"]
    assert talk.want("a", "u1", ONE) == ["start a"], "what has ended is no answer to whoever asks later"


def test_a_wish_that_is_sent_twice_is_one() -> None:
    talk = Talk()
    talk.want("a")
    talk.want("a")
    assert talk.abandon("a") == ["cancel a"]


@pytest.mark.parametrize("say", [lambda talk: talk.end("b"), lambda talk: talk.progress("b")])
def test_news_of_a_pull_that_nobody_asked_for_is_dropped(say: Callable[[Talk], list[str]]) -> None:
    talk = Talk()
    talk.want("a")
    assert say(talk) == []


# --- turns ---


def test_images_are_pulled_one_after_the_other_in_the_order_of_arrival() -> None:
    talk = Talk()
    assert talk.want("a") == ["start a"]
    assert talk.want("b", "u2") == ["3: b waiting for its turn, 1 before it"]
    assert talk.want("c", "u3", TWO) == ["4: c waiting for its turn, 2 before it"]
    assert talk.end("a", "Pull") == ["3: a ended Pull", "start b"]
    assert talk.end("b") == ["3: b ended", "start c"]


def test_so_many_at_a_time_and_no_more() -> None:
    talk = Talk(PullLimits(parallel=2, per_s=0, burst=1))
    assert [talk.want(image)[0] for image in "ab"] == ["start a", "start b"]
    assert talk.want("c") == ["3: c waiting for its turn, 2 before it"]
    assert talk.end("b") == ["3: b ended", "start c"]


@pytest.mark.parametrize(
    ("serialize", "most", "parallel"), [(True, 0, 1), (True, 5, 1), (False, 5, 5), (False, 0, MAX_PARALLEL)]
)
def test_the_settings_say_how_many(serialize: bool, most: int, parallel: int) -> None:
    settings = Settings(serialize_image_pulls=serialize, max_parallel_image_pulls=most)
    assert pull_limits(settings) == PullLimits(parallel=parallel, per_s=5, burst=10)


def test_beyond_the_rate_a_pull_fails_when_its_turn_comes() -> None:
    talk = Talk(PullLimits(parallel=5, per_s=2, burst=2))
    assert [talk.want(image)[0] for image in "ab"] == ["start a", "start b"]
    assert talk.want("c") == ["3: c ended Pull pull QPS exceeded"]
    talk.now += 0.5
    assert talk.want("c") == ["start c"]
    assert talk.want("d") == ["3: d ended Pull pull QPS exceeded"]
    talk.now += 60.0
    assert [talk.want(image, "u2")[0][:5] for image in "defg"] == ["start", "start", "3: f ", "3: g "], "the burst"


def test_a_rate_of_zero_is_no_limit() -> None:
    talk = Talk(PullLimits(parallel=50, per_s=0, burst=1))
    assert [talk.want(f"i{n}")[0] for n in range(50)] == [f"start i{n}" for n in range(50)]


def test_the_queue_is_bounded() -> None:
    talk = Talk()
    for n in range(MAX_PULLS):
        talk.want(f"i{n}", f"u{n}")
    assert talk.want("x") == [f"3: x ended Pull more than {MAX_PULLS} images wait to be pulled"]
    assert talk.want("i7") == ["3: i7 waiting for its turn, 7 before it"], "one that waits already takes no room"


# --- giving up ---


def test_the_last_one_who_gives_up_breaks_the_pull_off() -> None:
    talk = Talk()
    talk.want("a", "u1", ONE)
    talk.want("a", "u2", TWO)
    assert talk.abandon("a", "u1", ONE) == []
    assert talk.abandon("a", "u2", ONE) == [], "that pod waits in another worker"
    assert talk.abandon("a", "u2", TWO) == ["cancel a"]
    assert talk.end("a", "Pull") == []


def test_a_pull_that_waits_for_its_turn_is_just_forgotten() -> None:
    talk = Talk()
    talk.want("a")
    talk.want("b")
    assert talk.abandon("b") == []
    assert talk.end("a") == ["3: a ended"]


def test_the_next_turn_comes_when_the_pull_is_really_over() -> None:
    talk = Talk()
    talk.want("a")
    talk.want("b")
    assert talk.abandon("a") == ["cancel a"]
    assert talk.end("a", "Pull") == ["start b"]


@pytest.mark.parametrize(("error", "then"), [("Pull", ["start a"]), ("", ["3: a ended"])])
def test_who_comes_while_it_is_broken_off_gets_another_unless_it_succeeded(error: str, then: list[str]) -> None:
    talk = Talk()
    talk.want("a")
    talk.abandon("a")
    assert talk.want("a", "u2") == []
    assert talk.end("a", error) == then


# --- deaths ---


def test_a_dead_workers_pods_wait_no_more() -> None:
    talk = Talk()
    talk.want("a", "u1", ONE)
    talk.want("a", "u2", TWO)
    talk.want("b", "u1", ONE)
    assert talk.worker_down(ONE) == []
    assert talk.end("a") == ["4: a ended"], "b, which had not begun, is forgotten"


def test_a_pull_that_only_the_dead_waited_for_is_adopted_when_its_pods_ask_again() -> None:
    talk = Talk()
    talk.want("a")
    talk.worker_down()
    assert talk.tick(ADOPTION_S - 1) == []
    assert talk.want("a") == [], "it is under way"
    assert talk.tick(ADOPTION_S) == []
    assert talk.end("a") == ["3: a ended"]


@pytest.mark.parametrize("error", ["", "Pull"])
def test_the_end_of_a_pull_is_kept_for_those_who_will_ask_again(error: str) -> None:
    talk = Talk()
    talk.want("a")
    talk.want("b", "u2", TWO)
    talk.worker_down()
    assert talk.end("a", error) == ["start b"]
    assert talk.want("a") == [f"3: a ended {error}".rstrip()]
    assert talk.want("a") == ["3: a waiting for its turn, 1 before it"]


def test_what_nobody_adopts_is_broken_off_or_forgotten() -> None:
    talk = Talk()
    talk.want("a")
    talk.worker_down()
    assert talk.tick(ADOPTION_S) == ["cancel a"]
    assert talk.tick() == []
    talk.end("a", "Pull")
    talk.want("b")
    talk.worker_down()
    talk.end("b")
    assert talk.tick(ADOPTION_S) == []
    assert talk.want("b") == ["start b"]


def test_the_node_worker_s_death_begins_pulls_anew_and_costs_nothing() -> None:
    talk = Talk(PullLimits(parallel=2, per_s=1, burst=2))
    talk.want("a")
    talk.want("b")
    assert talk.down() == []
    assert talk.end("a") == [], "a late word of the dead"
    assert talk.want("c") == ["3: c waiting for its turn, 2 before it"]
    assert talk.up() == ["start a", "start b"]
    assert talk.end("a") == ["3: a ended", "3: c ended Pull pull QPS exceeded"]


def test_what_was_being_broken_off_ends_with_the_node_worker() -> None:
    talk = Talk()
    talk.want("a")
    talk.want("b")
    talk.abandon("a")
    talk.down()
    assert talk.up() == ["start b"]


def test_a_pull_of_the_dead_ends_with_the_node_worker() -> None:
    talk = Talk()
    talk.want("a")
    talk.worker_down()
    talk.down()
    assert talk.up() == []
    assert talk.want("a") == ["start a"]


def test_nothing_begins_before_the_node_worker_is_there() -> None:
    talk = Talk(up=False)
    assert talk.want("a") == ["3: a waiting for its turn, 0 before it"]
    assert talk.up() == ["start a"]
