"""Work of a process that is short of something is passed over; every other failure is raised."""

from __future__ import annotations

import errno
import logging

import pytest

from ipc.link.eventloop.shortages import Patient


class Work:
    def __init__(self) -> None:
        self.error: Exception | None = None
        self.done = 0

    def __call__(self) -> None:
        if self.error is not None:
            raise self.error
        self.done += 1


def test_a_shortage_is_told_once_and_passes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    work = Work()
    patient = Patient("the work", work)
    for work.error in (None, OSError(errno.EMFILE, "Too many open files"), MemoryError(), None, None):
        patient()
    assert work.done == 3
    assert [record.getMessage() for record in caplog.records] == [
        "the work is passed over: [Errno 24] Too many open files",
        "the work goes on",
    ]


@pytest.mark.parametrize("error", [ValueError("a fault"), OSError(errno.EACCES, "not a shortage"), RuntimeError("no")])
def test_every_other_error_is_raised(error: Exception) -> None:
    work = Work()
    work.error = error
    with pytest.raises(type(error)):
        Patient("the work", work)()
