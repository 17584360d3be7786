from __future__ import annotations

from ipc.link.messages.pod_worker import PullFailure
from ipc.link.messages.sync_error import SyncError
from workers.images.pull_backoff import MAX_FAILURES, MAX_MESSAGE_CHARS, PullBackoff

NOW = 1_800_000_000.0


def failure(image: str = "a", backoff_s: float = 10.0, updated_at: float = NOW) -> PullFailure:
    return PullFailure(image=image, backoff_s=backoff_s, updated_at=updated_at, message="no such thing")


def test_what_was_remembered_counts_as_if_it_had_happened_here() -> None:
    known = failure(backoff_s=40.0)
    backoff = PullBackoff("u1", [known])
    assert backoff.waits_for("a", NOW + 39.9) == (known, NOW + 40.0)
    assert backoff.waits_for("a", NOW + 40.0) is None
    assert backoff.waits_for("b", NOW) is None
    assert backoff.failed("a", SyncError.IMAGE_PULL, "again", NOW + 40.0) == NOW + 40.0 + 80.0
    again = PullFailure(image="a", backoff_s=80.0, updated_at=NOW + 40.0, message="again")
    assert backoff.remembered(NOW + 40.0) == (again,)


def test_a_clock_that_was_set_back_is_not_waited_for() -> None:
    backoff = PullBackoff("u1", [failure(backoff_s=40.0)])
    assert backoff.waits_for("a", NOW - 3 * 3600.0) is None
    assert backoff.waits_for("a", NOW - 39.0) is not None


def test_nothing_is_remembered_for_longer_than_twice_the_maximum() -> None:
    backoff = PullBackoff("u1", [failure("old", updated_at=NOW - 601.0), failure("new")])
    assert [known.image for known in backoff.remembered(NOW)] == ["new"]
    assert backoff.failed("old", SyncError.IMAGE_PULL, "again", NOW) == NOW + 10.0


def test_a_long_reason_is_cut() -> None:
    backoff = PullBackoff("u1")
    backoff.failed("a", SyncError.IMAGE_PULL, "x" * 5000, NOW)
    (known,) = backoff.remembered(NOW)
    assert known.message == "x" * MAX_MESSAGE_CHARS


def test_success_forgets() -> None:
    backoff = PullBackoff("u1", [failure()])
    backoff.succeeded("a")
    backoff.succeeded("never seen")
    assert backoff.remembered(NOW) == ()


def test_of_too_many_images_the_newest_failures_are_remembered() -> None:
    backoff = PullBackoff("u1")
    for n in range(MAX_FAILURES + 5):
        backoff.failed(f"i{n}", SyncError.IMAGE_PULL, "no", NOW + n)
    backoff.failed("i7", SyncError.IMAGE_PULL, "no", NOW + 100)
    images = [known.image for known in backoff.remembered(NOW + 100)]
    assert (len(images), images[-1], "i6" in images) == (MAX_FAILURES, "i7", True)
    assert not {"i0", "i4"} & set(images)
