"""Decisions about costly files: whether one is, and which comes first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from supervisor.sources.directory import Heavy, Signature, this_time
from supervisor.sources.heavy_files import next_heavy
from supervisor.sources.objects.apart import LIGHT_BYTES, is_heavy


@pytest.mark.parametrize(
    ("data", "heavy"),
    [
        (b"", False),
        (b"x" * LIGHT_BYTES, False),
        (b"x" * (LIGHT_BYTES + 1), True),
        (b"a: &a [b]\nc: *a\n", True),
        (b"a: &a [b]\nc: [*a,*a]\n", True),
        (b"a: &a {b: c}\nd:\n  <<: *a\n", True),
        (b"a: &a [b]\nc:\n- *a\n", True),
        (b"- &a b\n- *a", True),
        (b"a: &a b\n*a : c\n", True),
        (b"command: [sh, -c, 'a & b; ls a*']\n", False),
        (b"schedule: '*'\n", False),
        (b"c: *a\n", False),
    ],
)
def test_what_may_cost_much(data: bytes, heavy: bool) -> None:
    assert is_heavy(data) is heavy


def queue(**sizes: int) -> Mapping[str, Heavy]:
    return {name: Heavy(Path(name), Signature(1, 1, size, 1, 1)) for name, size in sizes.items()}


@pytest.mark.parametrize(
    ("waiting", "first"),
    [(queue(a=9), "a"), (queue(a=9, b=3, c=7), "b"), (queue(b=3, a=3, c=1000), "a")],
)
def test_the_smallest_file_comes_first(waiting: Mapping[str, Heavy], first: str) -> None:
    assert next_heavy(waiting) == first


@pytest.mark.parametrize(
    ("sizes", "read"),
    [
        ({}, ""),
        ({"a": 3, "b": 4}, "ab"),
        ({"a": 3, "b": 4, "c": 4}, "ab"),
        ({"a": 9, "b": 4, "c": 5}, "bc"),
        ({"a": 99}, "a"),
        ({"b": 10, "a": 10}, "a"),
    ],
)
def test_a_reading_takes_the_smallest_that_fit(sizes: Mapping[str, int], read: str) -> None:
    assert this_time(sizes, 10) == frozenset(read)
