"""Updates of the sources, and their parts."""

from __future__ import annotations

import msgspec

from ipc.k8s.api.v1.pod import Pod
from supervisor.protocol.source_updates import PART, ObjectUpdate, PodOperation, PodUpdate, in_parts
from tests.support.dialogue import pod


def made(number: int, **spec: object) -> Pod:
    return msgspec.structs.replace(pod(f"p{number}"), spec=msgspec.structs.replace(pod("x").spec, **spec))


def test_an_update_of_many_pods_comes_in_parts_the_most_important_first() -> None:
    pods = tuple(made(number, priority=number) for number in range(2 * PART + 1))
    update = PodUpdate(op=PodOperation.ADD, source="api", pods=pods)
    parts = [part for part in in_parts(update) if isinstance(part, PodUpdate)]
    assert [len(part.pods) for part in parts] == [PART, PART, 1]
    assert [each for part in parts for each in part.pods] == list(reversed(pods))
    assert {(part.op, part.source) for part in parts} == {(PodOperation.ADD, "api")}


def test_other_updates_stay_whole() -> None:
    few = PodUpdate(op=PodOperation.ADD, source="api", pods=tuple(made(number) for number in range(PART)))
    empty = PodUpdate(op=PodOperation.ADD, source="file")
    for update in (few, empty, ObjectUpdate()):
        assert list(in_parts(update)) == [update]
