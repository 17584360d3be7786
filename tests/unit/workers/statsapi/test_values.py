"""Snapshots as they lie in shared memory, and as people see them."""

from __future__ import annotations

from workers.statsapi.values import (
    ContainerSample,
    Cpu,
    NodeSample,
    PodSample,
    Snapshot,
    Source,
    decode_snapshot,
    encode_snapshot,
    with_names,
)

CPU = Cpu(source=Source.PROCESSES, time=5.0, usage_ns=7)


def snapshot(pods: int = 1) -> Snapshot:
    main = ContainerSample(id="1", name="main", started_at=1.0, cpu=CPU)
    found = (PodSample(uid=f"u{n}", name=f"p{n}", namespace="default", containers=(main,)) for n in range(pods))
    return Snapshot(time=1.0, mono=2.0, node=NodeSample(name="n"), pods=tuple(found))


def test_a_snapshot_comes_back_as_it_was() -> None:
    assert decode_snapshot(encode_snapshot(snapshot(), 10_000)) == snapshot()


def test_pods_without_room_are_left_out_and_counted() -> None:
    whole = encode_snapshot(snapshot(100), 1_000_000)
    packed = encode_snapshot(snapshot(100), len(whole) // 2)
    assert len(packed) <= len(whole) // 2
    found = decode_snapshot(packed)
    assert len(found.pods) >= 30
    assert found.omitted_pods == 100 - len(found.pods)


def test_a_snapshot_with_names_has_only_what_is_known() -> None:
    (pod,) = with_names(snapshot())["pods"]
    assert pod["containers"][0]["cpu"] == {"source": "processes", "time": 5.0, "usage_ns": 7}
    assert "volumes" not in pod
