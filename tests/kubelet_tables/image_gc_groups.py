"""Adapters of the groups about image garbage. Nanoseconds of the tables are our seconds, after a zero of their own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ipc.k8s.kubecontainer.image_gc import ImageGcPolicy, policy_problem
from tests.kubelet_tables.later import Later, Result
from tests.kubelet_tables.translate import Json
from workers.images.garbage import (
    Candidate,
    Disk,
    ImageRecord,
    Removal,
    bytes_to_free,
    detect,
    free_old,
    free_space,
    in_eviction_order,
)

ZERO: Final = 1e12
"""A time for 0 ns of a table: null is before everything."""
NS_PER_S: Final = 1e9


def _time(ns: float | None) -> float:
    return 0.0 if ns is None else ZERO + ns


def _policy(case: Json) -> ImageGcPolicy:
    policy = case["policy"]
    return ImageGcPolicy(
        high_threshold_percent=policy["high_threshold_percent"],
        low_threshold_percent=policy["low_threshold_percent"],
        min_age_s=policy["min_age_s"] * NS_PER_S,
        max_age_s=policy["max_age_s"] * NS_PER_S,
    )


def _records(case: Json) -> dict[str, ImageRecord]:
    return {
        id: ImageRecord(first_detected=_time(record["first_detected_ns"]), last_used=_time(record["last_used_ns"]))
        for id, record in case["records"].items()
    }


def _in_use(case: Json) -> set[str]:
    return {container["image_id"] for container in case["containers"]}


def _images(case: Json) -> dict[str, Json]:
    """By id, the last one of each."""
    return {image["id"]: image for image in case["images"]}


def _detect(case: Json) -> Result:
    if case["runtime_handlers"]:
        raise Later("images by runtime handler: Podman has one storage for all runtimes")
    images, now = _images(case), _time(case["now_ns"])
    found = detect(images, _in_use(case), _records(case), _time(case["detect_time_ns"]), now)
    records = {
        id: {
            "first_detected_ns": _ns(record.first_detected),
            "last_used_ns": _ns(record.last_used),
            "size": images[id]["size"],
            "pinned": images[id]["pinned"],
        }
        for id, record in found.items()
    }
    return (case["expected_in_use"], case["expected_records"]), (sorted(_in_use(case)), records)


def _ns(time: float) -> int | None:
    return int(time - ZERO) if time else None


def _order(case: Json) -> list[Candidate]:
    """imagesInEvictionOrder."""
    images, in_use, now = _images(case), _in_use(case), _time(case["free_time_ns"])
    found = detect(images, in_use, _records(case), now, now)
    return in_eviction_order(
        _candidate(id, record, images[id]["size"])
        for id, record in found.items()
        if id not in in_use and not images[id]["pinned"]
    )


def _candidate(id: str, record: ImageRecord, size: int) -> Candidate:
    return Candidate(
        id=id, first_detected=record.first_detected, last_used=record.last_used, size_bytes=size, names=(id,)
    )


def _eviction_order(case: Json) -> Result:
    ties = [set(tied) for tied in case["ties"]]

    def merged(ids: Iterable[str]) -> list[Any]:
        return [next((sorted(tied) for tied in ties if id in tied), id) for id in ids]

    return merged(case["expected"]), merged(image.id for image in _order(case))


def _candidates(case: Json) -> list[Candidate]:
    return [
        _candidate(
            image["id"],
            ImageRecord(first_detected=_time(image["first_detected_ns"]), last_used=_time(image["last_used_ns"])),
            image["size"],
        )
        for image in case["images"]
    ]


def _removed(work: Removal) -> tuple[list[str], int]:
    """Ids of the images that go, and the bytes, when each frees its size."""
    removed = []
    try:
        image = next(work)
        while True:
            removed.append(image.id)
            image = work.send(image.size_bytes)
    except StopIteration as end:
        return removed, end.value


def _free_space(case: Json) -> Result:
    images, now = _candidates(case), _time(case["free_time_ns"])
    removed, freed = _removed(free_space(images, case["bytes_to_free"], case["min_age_s"] * NS_PER_S, now))
    looked_at = images[: images.index(next(i for i in images if i.id == removed[-1])) + 1] if removed else images
    skipped = [image.id for image in looked_at if image.id not in removed]
    left = [id for id in case["expected_left"] if id not in removed]
    return (case["expected_freed"], case["expected_skipped"], case["expected_left"]), (freed, skipped, left)


def _free_old(case: Json) -> Result:
    images, now = _candidates(case), _time(case["free_time_ns"])
    removed, _ = _removed(free_old(images, case["max_age_s"] * NS_PER_S, _time(case["began_gc_ns"]), now))
    remaining = [image.id for image in images if image.id not in removed]
    left = [id for id in case["expected_left"] if id not in removed]
    return (case["expected_remaining"], case["expected_left"]), (remaining, left)


def _garbage_collect(case: Json) -> Result:
    policy, images, now = _policy(case), _order(case), _time(case["free_time_ns"])
    old, _ = _removed(free_old(images, policy.max_age_s, _time(case["began_gc_ns"]), now))
    rest = [image for image in images if image.id not in old]
    wanted = bytes_to_free(Disk(case["fs"]["capacity_bytes"], case["fs"]["available_bytes"]), policy)
    removed, freed = _removed(free_space(rest, wanted, policy.min_age_s, now)) if wanted else ([], 0)
    left = sorted(_images(case).keys() - {*old, *removed})
    error = None if freed >= wanted else "too little"
    return (case["expected_error"], case["expected_left"]), (error, left)


def _delete_unused(case: Json) -> Result:
    images, now = _order(case), _time(case["free_time_ns"])
    removed, _ = _removed(free_space(images, math.inf, _policy(case).min_age_s, now))
    listed = [image["id"] for image in case["images"]]
    for id in removed:
        listed.remove(id)  # Podman lists no id twice, the fake runtime of these cases does
    return case["expected_left"], listed


def _valid(case: Json) -> Result:
    return case["expected_error"], policy_problem(_policy(case))


ADAPTERS: Final[Mapping[str, Callable[[Json], Result]]] = {
    "image_gc_delete_unused": _delete_unused,
    "image_gc_detect": _detect,
    "image_gc_eviction_order": _eviction_order,
    "image_gc_free_old": _free_old,
    "image_gc_free_space": _free_space,
    "image_gc_garbage_collect": _garbage_collect,
    "image_gc_policy": _valid,
}
