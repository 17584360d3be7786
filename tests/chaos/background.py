"""Something that goes on in a thread while the storm is on, and whose errors reach whoever waits for its end."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def meanwhile(work: Callable[[threading.Event], None], name: str) -> Iterator[None]:
    """Work until the end of the block, which sets the event. Raises what the work has raised."""
    end = threading.Event()
    failed: list[Exception] = []

    def run() -> None:
        try:
            work(end)
        except Exception as error:  # of this thread: told by the one that waits
            failed.append(error)

    thread = threading.Thread(target=run, name=name)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()
    for error in failed:
        raise error
