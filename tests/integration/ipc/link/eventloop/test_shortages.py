"""The kernel's own refusals, as they are told apart."""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ipc.link.eventloop.shortages import is_shortage


@contextmanager
def no_descriptors() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_no_descriptor_is_one() -> None:
    with no_descriptors(), pytest.raises(OSError, match="Too many open files") as raised:
        os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    assert is_shortage(raised.value)


def test_no_thread_is_one() -> None:
    before = threading.stack_size(1 << 46)  # more than there is room for
    try:
        with pytest.raises(RuntimeError) as raised:
            threading.Thread(target=len, args=("",)).start()
    finally:
        threading.stack_size(before)
    assert is_shortage(raised.value)
