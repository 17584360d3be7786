"""Outputs that people see and read of a pod: its status, `describe`, and the log."""

from __future__ import annotations

import msgspec

from ipc.link.messages.sync_error import SyncError
from supervisor.podcontrol.pod_reporter import VIEW_S
from tests.support.dialogue import PULL, STARTED, WALL, Talk, absent, pod, restless, running

# --- what people see ---------------------------------------------------------------------------------------------


def test_why_a_start_failed_is_told_until_one_succeeds() -> None:
    talk = Talk()
    talk.relist()
    talk.add("a")
    talk.done("a", results=(PULL,), error=SyncError.NONE, changed=False)
    [main] = talk.told["a"].status.container_statuses
    assert main.state.waiting is not None
    assert main.state.waiting.reason == "ErrImagePull"
    talk.tick(after_s=20.0)
    talk.see(absent("a"))
    talk.done("a", results=(STARTED,), changed=True)
    talk.see(running("a"))
    [main] = talk.told["a"].status.container_statuses
    assert main.state.running is not None


def test_the_log_and_describe_follow_a_sync_that_fails_although_it_changes_nothing() -> None:
    talk = Talk()
    talk.relist()
    talk.add("a")
    tried = msgspec.structs.replace(PULL, retry_at=WALL + 200.0)
    talk.done("a", results=(PULL,), summary="made it, main: ErrImagePull", changed=True)
    for summary, result in (("first wait", tried), ("the same wait", tried), ("next wait", PULL)):
        talk.see(absent("a"))
        talk.update(pod("a", image=summary))
        talk.done("a", results=(result,), summary=summary)
        assert talk.told["a"].summary == summary
    assert [line.partition(": ")[2] for line in talk.logs] == ["made it, main: ErrImagePull", "first wait", "next wait"]


def test_only_what_will_be_tried_has_a_next_try() -> None:
    talk = Talk()
    talk.start("a")
    waiting = msgspec.structs.replace(PULL, error=SyncError.IMAGE_PULL_BACK_OFF, retry_at=WALL + 1000.0)
    talk.update(pod("a", image="v2"))
    talk.see(running("a"))
    talk.done("a", results=(waiting, msgspec.structs.replace(waiting, target="was-renamed")))
    assert list(talk.told["a"].next_try) == ["main"]
    talk.remove("a")
    assert talk.told["a"].next_try == {}, "it goes down"


def test_an_unchanged_status_is_not_told_again() -> None:
    talk = Talk()
    talk.start("a")
    version = talk.told["a"].resource_version
    talk.update("a")
    talk.see(running("a"))
    talk.done("a")
    assert talk.told["a"].resource_version == version


def test_a_start_is_two_statuses() -> None:
    talk = Talk()
    talk.relist()
    talk.add("a")
    pending = talk.told["a"].resource_version
    talk.done("a", results=(STARTED,), summary="made it", changed=True)
    assert talk.told["a"].resource_version == pending, "the observation that is due shows more"
    talk.see(running("a"))
    assert talk.told["a"].resource_version == pending + 1
    assert (talk.told["a"].summary, talk.phase("a")) == ("made it", "Running")


def test_the_end_of_a_sync_is_told_with_an_observation_that_shows_nothing_new() -> None:
    talk = Talk()
    talk.start("a")
    talk.update(pod("a", image="v2"))
    talk.see(running("a"))
    talk.done("a", summary="another one", changed=True)
    assert talk.told["a"].summary != "another one"
    talk.see(running("a"))
    assert talk.told["a"].summary == "another one"


def test_the_end_of_a_sync_is_told_when_no_observation_comes() -> None:
    talk = Talk()
    talk.start("a")
    talk.update(pod("a", image="v2"))
    talk.see(running("a"))
    talk.done("a", summary="another one", changed=True)
    assert talk.told["a"].summary != "another one"
    talk.tick(after_s=VIEW_S)
    assert talk.told["a"].summary == "another one"


# --- what the log says of Podman's absence -------------------------------------------------------------------------


def test_a_sync_that_fails_again_for_the_same_reason_is_no_news() -> None:
    talk = Talk()
    talk.start(restless("a"))
    before = len(talk.logs)
    for _ in range(5):
        talk.tick(100.0)
        talk.relist()
        talk.done("a", error=SyncError.TIMEOUT, message="no answer within 15 s")
    assert len(talk.logs) == before + 1
    talk.tick(100.0)
    talk.relist()
    talk.done("a")
    talk.tick(100.0)
    talk.relist()
    talk.done("a", error=SyncError.TIMEOUT, message="no answer within 15 s")
    assert len(talk.logs) == before + 3, "that it went well is news, too"


def test_that_podman_is_away_is_no_line_for_every_pod() -> None:
    talk = Talk()
    pods = ("a", "b", "c")
    talk.start(*map(restless, pods))
    talk.levels.clear()
    talk.tick(200.0)
    talk.relist()
    for uid in pods:
        talk.done(uid, error=SyncError.UNAVAILABLE, message="Podman does not answer")
    assert talk.levels == ["debug"] * len(pods)
    talk.tick(200.0)
    talk.relist()
    talk.done("a", error=SyncError.UNAVAILABLE, message="it went away over it", changed=True)
    assert talk.levels[-1] == "warning", "it has done something"
