"""Memory that the C library keeps is given back when work is over."""

from __future__ import annotations

import weakref

import pytest

from ipc.host.process import spare_memory
from ipc.host.process.spare_memory import HEAPS, KEPT_BYTES, RESTS_S, WORKED_S, SpareMemory


class Worked:
    """CPU time of a process, and how often it has given memory back."""

    def __init__(self) -> None:
        self.cpu_s = 5.0
        self.given = 0
        self.spare = SpareMemory(lambda: self.cpu_s, self._give)

    def _give(self) -> None:
        self.given += 1
        self.cpu_s += 0.002

    def look(self, worked_s: float) -> int:
        """After so much CPU time since the last look."""
        self.cpu_s += worked_s
        self.spare.look()
        return self.given


def test_memory_is_given_back_once_when_work_is_over() -> None:
    process = Worked()
    assert process.look(WORKED_S) == 0, "it still works"
    assert process.look(RESTS_S / 2) == 1
    assert process.look(RESTS_S / 2) == 1, "there is nothing more"
    assert process.look(WORKED_S) == 1
    assert process.look(0.0) == 2


def test_a_process_that_does_little_gives_back_when_that_adds_up() -> None:
    process = Worked()
    looks = round(WORKED_S / RESTS_S * 2)
    assert process.look(RESTS_S / 2) == 0
    for _ in range(looks):
        process.look(RESTS_S / 2)
    assert process.given == 1


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("MALLOC_MMAP_THRESHOLD_", [HEAPS]),
        ("MALLOC_TRIM_THRESHOLD_", [HEAPS]),
        ("MALLOC_ARENA_MAX", [KEPT_BYTES, KEPT_BYTES]),
        ("GLIBC_TUNABLES", []),
    ],
)
def test_limits_that_an_operator_has_set_stay(name: str, left: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    set_to: list[tuple[int, int]] = []
    monkeypatch.setattr(spare_memory, "_of_glibc", lambda _: lambda *limit: set_to.append(limit))
    monkeypatch.setenv(name, "1")
    spare_memory.fix_limits()
    assert [value for _, value in set_to] == left
    set_to.clear()
    monkeypatch.delenv(name)
    spare_memory.fix_limits()
    assert [value for _, value in set_to] == [KEPT_BYTES, KEPT_BYTES, HEAPS]


def test_another_c_library_has_nothing_to_give_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spare_memory, "_of_glibc", lambda _: None)
    spare_memory.fix_limits()
    spare_memory.trim()


def test_what_only_holds_itself_is_given_back_too() -> None:
    class Circle:
        def __init__(self) -> None:
            self.itself = self

    gone = weakref.ref(Circle())
    spare_memory.trim()
    assert gone() is None
