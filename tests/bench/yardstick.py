"""A yardstick of the machine: CPU time of one small piece of work, done again and again beside what is measured.

A machine that is one of several on a host gets faster and slower by half within a minute, and says so nowhere: it takes
more CPU time for the same. Two figures of moments that are minutes apart are compared by what the yardstick took then.
"""

from __future__ import annotations

import contextlib
import statistics
import threading
from collections.abc import Iterator
from time import thread_time
from typing import Final

ROUNDS: Final = 50_000
"""Some 3 ms."""
EVERY_S: Final = 1.0


class Yardstick:
    """Samples of the work so far, in ms of CPU time."""

    def __init__(self) -> None:
        self.samples = [_work_ms()]

    @property
    def median_ms(self) -> float:
        return statistics.median(self.samples)


@contextlib.contextmanager
def yardstick() -> Iterator[Yardstick]:
    """A block beside which the work is done once a second."""
    taken, over = Yardstick(), threading.Event()

    def measure() -> None:
        while not over.wait(EVERY_S):
            taken.samples.append(_work_ms())

    thread = threading.Thread(target=measure, daemon=True)
    thread.start()
    try:
        yield taken
    finally:
        over.set()
        thread.join()


def _work_ms() -> float:
    began, sum_ = thread_time(), 0
    for number in range(ROUNDS):
        sum_ += number * number % 7
    return 1000 * (thread_time() - began)
