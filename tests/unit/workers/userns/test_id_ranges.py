"""Ranges of ids."""

from __future__ import annotations

import pytest

from workers.userns.id_ranges import IdRange, has_id, merged, shown


@pytest.mark.parametrize(
    ("ranges", "expected", "words"),
    [
        ([], (), "none"),
        ([IdRange(1, 65536), IdRange(0, 1)], (IdRange(0, 65537),), "0-65536"),
        ([IdRange(0, 1), IdRange(5, 2)], (IdRange(0, 1), IdRange(5, 2)), "0, 5-6"),
        ([IdRange(0, 10), IdRange(2, 3)], (IdRange(0, 10),), "0-9"),
    ],
)
def test_they_are_put_together(ranges: list[IdRange], expected: tuple[IdRange, ...], words: str) -> None:
    assert merged(ranges) == expected
    assert shown(merged(ranges)) == words
    for id in range(12):
        assert has_id(expected, id) == has_id(ranges, id)
